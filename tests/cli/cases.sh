# --list: ids on standard output, counts on standard error.
cp "$HERE/small.yaml" "$HERE/other.yaml" .
"$HUMCHECK" kernels small.yaml other.yaml --list
