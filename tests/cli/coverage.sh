# How much of the support matrix: of the plan, and of records; refusals.
cat >small.yaml <<'YAML'
suite: small
entries:
  - name: one
    a_dtype: [f16, bf16]
    b_dtype: [uint4, uint8]
    m: 33
    n: 64
    k: 128
    check: exact
  - name: other
    family: pack
    m: 16
    k: 64
    check: exhaustive
YAML
"$HUMCHECK" coverage small.yaml --sm 80
"$HUMCHECK" kernels small.yaml --filter '*f16,b_dtype=uint4*' --quiet --no-timing --out jsonl:records >/dev/null
"$HUMCHECK" coverage small.yaml --records records | head -12
"$HUMCHECK" coverage small.yaml --sm 70
echo "status $?"
"$HUMCHECK" coverage small.yaml --records nothing
echo "status $?"
"$HUMCHECK" coverage small.yaml --records small.yaml
echo "status $?"
