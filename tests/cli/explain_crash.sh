# A kernel that crashes takes the explanation along, not the program that asked for it.
cp "$HERE/small.yaml" .
provider=$(dirname "$HUMCHECK")/kernels/wrong_provider.so
HUMCHECK_WRONG=crash "$HUMCHECK" explain small.yaml --provider "$provider" --filter 'small/f16/b_dtype=uint4,m=16' 2>/dev/null
echo $?
