# Results on standard output have it to themselves.
cp "$HERE/small.yaml" .
"$HUMCHECK" kernels small.yaml --quiet --out jsonl:- 2>said | cut -c 1-9
tail -n 1 said | cut -d : -f 1
