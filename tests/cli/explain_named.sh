# A repro is rerun, shrunk, located and named; in one argument or in words.
cp "$HERE/small.yaml" .
provider=$(dirname "$HUMCHECK")/kernels/wrong_provider.so
HUMCHECK_WRONG=drop_k "$HUMCHECK" explain "humcheck kernels small.yaml --provider $provider --filter 'small/f16/b_dtype=uint4,m=16'" \
    --seconds 300 --out yaml:least.yaml >said
echo $?
sed -n 's/^\(rerun *[a-z]*\):.*/\1/p; s/; bit for bit.*//; /^cause/p' said
HUMCHECK_WRONG=drop_k "$HUMCHECK" kernels least.yaml --provider "$provider" --quiet --no-timing >/dev/null
echo $?
HUMCHECK_WRONG=drop_k "$HUMCHECK" explain humcheck kernels small.yaml --provider "$provider" \
    --filter 'small/f16/b_dtype=uint8,m=40' --seconds 300 | sed -n 's/; bit for bit.*//; /^cause/p'
"$HUMCHECK" explain small.yaml --filter 'small/f16/b_dtype=uint4,m=16'
echo $?
