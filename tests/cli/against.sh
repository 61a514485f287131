# What is other than at another provider, or in an earlier run's records: bits that pass on both sides too.
cat >s.yaml <<'Y'
suite: s
entries:
  - {name: e, a_dtype: bf16, b_dtype: uint4, m: [16, 33], n: 192, k: 512, weight_scale_type: group, check: [exact, bound], has_bias: false}
Y
wrong=$(dirname "$HUMCHECK")/kernels/wrong_provider.so
run() { # HUMCHECK_WRONG ARGUMENT...
    HUMCHECK_WRONG=$1
    export HUMCHECK_WRONG
    shift
    "$HUMCHECK" kernels s.yaml --jobs 2 --no-timing "$@" 2>err | sed -E 's/[0-9a-f]{16}/HASH/g' | grep -E '^(changed|against|pass|fail)'
    grep -E '^(humcheck: |[a-z]+\.jsonl)' err
}
echo '== the same'
run none --against cpu
run none --provider "$wrong" --against cpu --fail-on-change
echo '== inside the interval'
run smallest --provider "$wrong" --filter '*bound' --against cpu
"$HUMCHECK" kernels s.yaml --filter '*bound' --provider "$wrong" --against cpu --quiet >/dev/null 2>&1
echo $?
"$HUMCHECK" kernels s.yaml --filter '*bound' --provider "$wrong" --against cpu --quiet --fail-on-change >/dev/null 2>&1
echo $?
echo '== from wrong to right'
run one_ulp --against "$wrong" --filter '*m=16*' --out jsonl:new.jsonl --out junit:new.xml
sed -E 's/.*("output_hash".*"bits":"[a-z_]*").*/\1/; s/[0-9a-f]{16}/HASH/g' new.jsonl
sed -nE 's/[0-9a-f]{16}/HASH/g; s/ *(<system-out>.*)/\1/p' new.xml
echo '== records of an earlier run'
run none --quiet --out jsonl:old.jsonl
run none --against jsonl:old.jsonl --fail-on-change --in-process
run none --against jsonl:old.jsonl --seed 0x5
sed 's/"output_hash":"[^"]*",//' old.jsonl >older.jsonl
run none --against jsonl:older.jsonl --fail-on-change
head -2 old.jsonl >half.jsonl
run none --against jsonl:half.jsonl
run no_bf16 --provider "$wrong" --against jsonl:old.jsonl --filter '*m=16*'
echo '== what cannot be'
printf '{"index":0}\n' >bad.jsonl
for a in jsonl: jsonl:bad.jsonl jsonl:none.jsonl cup hummin:x; do
    "$HUMCHECK" kernels s.yaml --against "$a"
    echo $?
done
"$HUMCHECK" kernels s.yaml --fail-on-change
echo $?
"$HUMCHECK" kernels s.yaml --against cpu --out xml:x
echo $?
ls
