# Files that are no checkpoints: all mistakes as sentences, exit code 2.
. "$HERE/weights_make"
make hole.safetensors '{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"U8","shape":[1],"data_offsets":[2,3]}}' 'xyz'
make twice.safetensors '{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}' 'x'
printf 'short' >short.safetensors
for file in hole twice short nothing; do
    "$HUMCHECK" weights $file.safetensors
    echo $?
done
"$HUMCHECK" weights hole.safetensors twice.safetensors
