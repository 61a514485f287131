# One code, the zero points (v1 read as v2) and a tensor in one file only.
. "$HERE/weights_make"
gptq one '\041\001\001\001' '\167\167\167\163' ''
gptq two '\061\001\001\001' '\167\167\167\163' ', "checkpoint_format": "gptq_v2"'
"$HUMCHECK" weights one two
echo $?
make two/model.safetensors '{"norm.weight":{"dtype":"BF16","shape":[2],"data_offsets":[0,4]},"other":{"dtype":"U8","shape":[1],"data_offsets":[4,5]}}' '\200\077\200\100\001'
"$HUMCHECK" weights one two
