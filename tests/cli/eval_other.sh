# Answers of another run are refused before any server starts, those of all configurations at once.
for name in a b c; do
    printf 'model_name: m\naccuracy_threshold: 0.9\nnum_questions: 1000\nnum_fewshot: 1\nx-humcheck:\n  data: arith\n  server_command: no-such-server\n' >$name.yaml
done
"$HUMCHECK" eval a.yaml b.yaml >/dev/null 2>&1
echo $?
sed -i 's/num_fewshot: 1/num_fewshot: 2/; s/model_name: m/model_name: n/' a.yaml b.yaml
"$HUMCHECK" eval c.yaml a.yaml b.yaml 2>said
echo $?
sed 's/now .*//; s/there .*//' said
ls humcheck-runs/*.sqlite
