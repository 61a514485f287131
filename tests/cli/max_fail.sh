# A run stops after so many cases that do not pass, in plan order whatever the jobs, and what it
# wrote until then is whole.
cat >s.yaml <<'Y'
suite: s
entries:
  - {name: e, a_dtype: bf16, b_dtype: uint4, m: [1, 16, 33, 40, 50, 60], n: 192, k: 128, check: exact}
Y
run() {
    HUMCHECK_WRONG=nan "$HUMCHECK" kernels s.yaml --provider "$(dirname "$HUMCHECK")/kernels/wrong_provider.so" \
        --out jsonl:out.jsonl --no-timing "$@" | grep -E '^(stopped|fail:|total)' |
        sed 's/, provider.*//'
    wc -l <out.jsonl | tr -d ' '
}
run --max-fail 1 --jobs 1
run --max-fail 2 --jobs 2
run --max-fail 2 --in-process
run --max-fail 100
"$HUMCHECK" kernels s.yaml --max-fail 1 --quiet --no-timing | tail -1
"$HUMCHECK" kernels s.yaml --max-fail 0
