# The command names the provider as it was given, in words of a shell, and the seed of the suite where a case has its own.
mkdir "a b"
cp "$(dirname "$HUMCHECK")/kernels/wrong_provider.so" "a b/it's.so"
{
    echo "suite: words"
    echo "seed: 7"
    echo "entries:"
    echo "  - {name: e, a_dtype: f16, b_dtype: [uint2, uint3, uint4], m: [1, 2, 3, 16], n: [64, 128], k: 128, fill: E2, check: exact,"
    echo "     seed: 5, combine: {random: 4}}"
} >"a b/-s.yaml"
cd "a b" || exit 9
export HUMCHECK_WRONG=nan
"$HUMCHECK" kernels --quiet --no-timing --provider "./it's.so" --out jsonl:all.jsonl -- -s.yaml >said
PATH=$(dirname "$HUMCHECK"):$PATH
sed -n 's/.*"repro":"\([^"]*\)".*/\1/p' all.jsonl | sed 's/\\\\/\\/g' >lines
sed -n 1p lines
while read -r command; do
    eval "$command --quiet --no-timing --out jsonl:one.jsonl" >said
    cut -d , -f 2- one.jsonl
done <lines >again
cut -d , -f 2- all.jsonl | cmp - again && wc -l <again | tr -d ' '
