# --budget: what failed before comes first, then what changed, then coverage; --list shows the order. Equal input,
# equal order.
cat >s.yaml <<'Y'
suite: s
entries:
  - {name: e, a_dtype: bf16, b_dtype: [uint4, uint8], m: 16, n: 64, k: [128, 256], check: exact}
  - {name: pack, family: pack, bits: 4, m: 64, k: 64, check: exhaustive}
Y
cat >old.jsonl <<'J'
{"case":"s/e/b_dtype=uint8,k=256","verdict":"fail"}
J
cat >new.jsonl <<'J'
{"case":"s/e/b_dtype=uint8,k=128","verdict":"untrusted"}
{"case":"s/e/b_dtype=uint4,k=128","verdict":"pass","kernel_us":5000000}
J
cat >touches.yaml <<'Y'
touches:
  - {file: "*/pack.c", where: family == pack, reason: codes to words}
  - {file: "*.md", where: none, reason: documents}
Y
printf 'README.md\nsrc/pack.c\n' >changed
"$HUMCHECK" kernels s.yaml --list --budget 1m
"$HUMCHECK" kernels s.yaml --list --budget 1m --history new.jsonl --history old.jsonl --touches touches.yaml --changed @changed
"$HUMCHECK" kernels s.yaml --list --budget 1m --touches touches.yaml --changed a.c --changed b.c
