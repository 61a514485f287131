# Opening a pipe would wait for its other end.
cp "$HERE/small.yaml" .
mkfifo pipe.so
"$HUMCHECK" kernels small.yaml --provider ./pipe.so
