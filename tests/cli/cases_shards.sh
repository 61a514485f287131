# The shards are the whole, each case once.
cp "$HERE/small.yaml" "$HERE/other.yaml" .
"$HUMCHECK" kernels small.yaml other.yaml --list 2>/dev/null | sort >whole
for i in 1 2 3; do
    "$HUMCHECK" kernels small.yaml other.yaml --list --shard $i/3 2>/dev/null
done | sort | cmp - whole
