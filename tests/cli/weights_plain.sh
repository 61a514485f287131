# Without a config tensors are described, not converted; a hostile name does no harm.
. "$HERE/weights_make"
make x.safetensors '{"a\u001b[31m\u202e":{"dtype":"F16","shape":[1,2],"data_offsets":[0,4]},"s":{"dtype":"F32","shape":[],"data_offsets":[4,8]}}' '\000\074\000\074\000\000\000\000'
"$HUMCHECK" weights x.safetensors
