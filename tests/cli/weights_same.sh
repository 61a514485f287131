# The same numbers: zero points less one (v1) and as they are (v2).
. "$HERE/weights_make"
gptq one '\041\001\001\001' '\167\167\167\163' ''
gptq two '\041\001\001\001' '\210\210\210\204' ', "checkpoint_format": "gptq_v2"'
"$HUMCHECK" weights one two
