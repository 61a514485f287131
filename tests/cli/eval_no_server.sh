# A command that is not there: infrastructure, with a sentence, and no store left open.
printf 'model_name: m\naccuracy_threshold: 0.9\nnum_questions: 1000\nnum_fewshot: 1\nx-humcheck:\n  data: arith\n  server_command: no-such-server\n' >c.yaml
"$HUMCHECK" eval c.yaml 2>/dev/null | sed 's/ --port [0-9]*$//; s/[0-9]*[.][0-9]* s/T s/g'
"$HUMCHECK" eval c.yaml >/dev/null 2>&1
