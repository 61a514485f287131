cp "$HERE/small.yaml" "$HERE/other.yaml" .
"$HUMCHECK" kernels --filter '*uint8*' small.yaml other.yaml --list
