# Both files appear, whole; two runs, with and without workers, give the same bytes.
cp "$HERE/small.yaml" "$HERE/other.yaml" .
"$HUMCHECK" kernels small.yaml other.yaml --no-timing --quiet --jobs 2 --out jsonl:1.jsonl --out junit:1.xml >1.txt || exit 9
"$HUMCHECK" kernels small.yaml other.yaml --no-timing --quiet --in-process --out jsonl:2.jsonl --out junit:2.xml >2.txt || exit 9
cmp 1.jsonl 2.jsonl && cmp 1.xml 2.xml && cmp 1.txt 2.txt || exit 9
wc -l <1.jsonl | tr -d ' '
grep -c '<testcase ' 1.xml
grep -c '"verdict":"pass"' 1.jsonl
ls
