# Options that need each other, and files that cannot be used.
cp "$HERE/small.yaml" .
"$HUMCHECK" kernels small.yaml --history a.jsonl --changed b.c
"$HUMCHECK" kernels small.yaml --touches t.yaml
"$HUMCHECK" kernels small.yaml --budget 10
"$HUMCHECK" kernels small.yaml --budget 1m --budget 2m
"$HUMCHECK" kernels small.yaml --out left:x
"$HUMCHECK" kernels small.yaml --budget 1m --against cpu
echo '{"case": 1}' >bad.jsonl
"$HUMCHECK" kernels small.yaml --budget 1m --history bad.jsonl --history none.jsonl
"$HUMCHECK" kernels small.yaml --budget 1m --changed x.c
printf 'touches:\n  - {file: x, where: famly == pack, reason: r}\n' >t.yaml
"$HUMCHECK" kernels small.yaml --budget 1m --changed x.c --touches t.yaml
printf 'touches: []\n' >t.yaml
"$HUMCHECK" kernels small.yaml --budget 1m --changed @no-list --touches t.yaml
