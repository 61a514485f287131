# A run with --budget: enough time, no time, and what is left out is told; the same with workers and without.
cp "$HERE/small.yaml" .
for how in --in-process --jobs=2; do
    "$HUMCHECK" kernels small.yaml --quiet --no-timing $how --budget 1m --out jsonl:all.jsonl --out left:left.json
    echo "$?"
    wc -l <all.jsonl | tr -d ' '
    tr -d '\n\t' <left.json && echo
    "$HUMCHECK" kernels small.yaml --quiet --no-timing $how --budget 0.000001s --out left:none.json
    echo "$?"
    tr -d '\n\t' <none.json.part && echo
done
# Three of many: stopped by --max-fail, not by time.
HUMCHECK_WRONG=nan "$HUMCHECK" kernels small.yaml --quiet --no-timing --budget 1m --max-fail 1 \
    --provider "$(dirname "$HUMCHECK")/kernels/wrong_provider.so" | grep '^left'
