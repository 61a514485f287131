# Without workers, too, an interrupt leaves the cases after this one.
{
    echo "suite: long"
    echo "entries:"
    echo "  - {name: e, a_dtype: f16, b_dtype: uint4, m: {from: 1, to: 2000, step: 1}, n: 1024, k: 1024, check: exact}"
} >long.yaml
"$HUMCHECK" kernels long.yaml --quiet --in-process --out jsonl:r.jsonl >said &
pid=$!
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30; do
    [ -s r.jsonl.part ] && break
    sleep 0.1
done
kill -TERM $pid
wait $pid
code=$?
[ "$(wc -l <r.jsonl.part)" -lt 2000 ] && tail -n 1 said | cut -d : -f 1
exit $code
