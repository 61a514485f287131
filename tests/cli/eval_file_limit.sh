# A file that may not grow is an error with a sentence, not the end of the program by a signal.
printf 'model_name: m\naccuracy_threshold: 0.9\nnum_questions: 1000\nnum_fewshot: 1\nx-humcheck:\n  data: arith\n  server_command: no-such-server\n' >c.yaml
ulimit -f 8
"$HUMCHECK" eval c.yaml
