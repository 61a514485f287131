# Floors of GPUs have rows of their own; warnings do not fail.
cat >own.yaml <<'END'
model_name: "org/model"
accuracy_threshold: 0.925
tolerance: 0.02
num_questions: 1000
num_fewshot: 0
max_model_len: 4096
server_args: --trust-remote-code
x-humcheck:
  protocol: lm-eval
  data: arith
  server_command: python3 -m 'my server'
  floors: {h100: 0.93, b200: {accuracy: 0.95, tolerance: 0.005}}
END
"$HUMCHECK" config check own.yaml
