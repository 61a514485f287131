# The first failing cases say why, unless they are not to.
cp "$HERE/small.yaml" .
provider=$(dirname "$HUMCHECK")/kernels/wrong_provider.so
run() {
    HUMCHECK_WRONG=drop_k "$HUMCHECK" kernels small.yaml --provider "$provider" --filter '*uint4,m=16' "$@"
}
run --diagnose-seconds 600 --out jsonl:all.jsonl | sed -n 's/; .*//; /diagnosis/p'
sed -n 's/.*"diagnosis":"\([^:"]*\):.*/\1/p' all.jsonl
run --no-diagnosis | grep diagnosis
run --no-timing | grep diagnosis
echo done
