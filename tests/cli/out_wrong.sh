cp "$HERE/small.yaml" .
"$HUMCHECK" kernels small.yaml --out foo:bar --out jsonl:q --out junit:q --out jsonl
code=$?
ls
exit $code
