cp "$HERE/small.yaml" .
"$HUMCHECK" kernels small.yaml --quiet --seed 0xabc --filter '*uint4,m=16' --out jsonl:r.jsonl >said
grep -o '"seed":"[^"]*"' r.jsonl
grep -o 'seed 0x.*' said
