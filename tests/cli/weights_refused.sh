# What has no standard form is described as far as it goes and refused.
. "$HERE/weights_make"
gptq m '\041\001\001\001' '\167\167\167\163' ', "desc_act": true'
"$HUMCHECK" weights m
