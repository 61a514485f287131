# NaN codes and a NaN scale are for exit code 1.
. "$HERE/weights_make"
make model.safetensors '{"l.weight":{"dtype":"F8_E4M3","shape":[2,4],"data_offsets":[0,8]},"l.weight_scale":{"dtype":"BF16","shape":[2,1],"data_offsets":[8,12]}}' \
    '\177\070\070\070\000\000\000\000\300\177\200\077'
echo '{"quantization_config": {"quant_method": "fp8"}}' >config.json
"$HUMCHECK" weights model.safetensors
