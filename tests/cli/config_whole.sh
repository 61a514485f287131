# A server_command with {port} in it is shown as it is: nothing is added to it but the environment.
printf 'model_name: m\naccuracy_threshold: 0.9\nnum_questions: 1000\nnum_fewshot: 1\nserver_args: --x\nx-humcheck:\n  data: arith\n  server_command: "serve -m {model} -p {port}"\n' >c.yaml
"$HUMCHECK" config check c.yaml
