# Known faults: a run is green while all its fails are known, red when one is not, and red when a known one passes.
cp "$HERE/small.yaml" .
wrong=$(dirname "$HUMCHECK")/kernels/wrong_provider.so
run() {
    HUMCHECK_WRONG=$1 "$HUMCHECK" kernels small.yaml --no-timing --known "$2" --provider "$3" --out jsonl:out.jsonl \
        --jobs 1 | sed 's/^  repro: .*/  repro: .../; s/^humcheck [^:]*/humcheck/'
    grep -o '"verdict":"[a-z]*"\|"known":"[^"]*"' out.jsonl | paste -sd ' '
}
row() {
    printf '  - provider: "%s *"\n    case: "%s"\n    finding: https://example.org/1\n    first_seen: 2026-11-30\n' "$1" "$2"
    printf '    last_seen: 2026-11-30\n    reason: an example\n'
}
{ echo known: && row wrong '*'; } >all.yaml
run nan all.yaml "$wrong"
{ echo known: && row wrong '*m=16' && row wrong '*m=999*' && row other '*'; } >some.yaml
run nan some.yaml "$wrong"
{ echo known: && row cpu '*'; } >passes.yaml
run '' passes.yaml cpu
for provider in "$wrong" cpu; do
    HUMCHECK_WRONG=nan "$HUMCHECK" kernels small.yaml --quiet --known all.yaml --provider "$provider" >out
    echo "$?"
done
"$HUMCHECK" kernels small.yaml --quiet --known passes.yaml >out
echo "$?"
"$HUMCHECK" kernels small.yaml --known none.yaml
