# The output that could be opened leaves nothing either.
cp "$HERE/small.yaml" .
"$HUMCHECK" kernels small.yaml --out junit:y.xml --out jsonl:no/such/run.jsonl
code=$?
ls
exit $code
