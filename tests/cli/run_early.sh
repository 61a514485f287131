# What the evaluation needs and lacks is said before kernels take their time.
cat >c.yaml <<'END'
model_name: "org/model"
accuracy_threshold: 0.86
num_questions: 1000
num_fewshot: 1
server_args: --quantization humming
env:
  VLLM_HUMMING_ONLINE_QUANT_CONFIG: '{"dtype":"int5"}'
x-humcheck:
  dims: m.yaml
END
cat >m.yaml <<'END'
model_name: org/model
dtype: bf16
hidden_size: 256
num_hidden_layers: 2
num_attention_heads: 4
num_key_value_heads: 2
head_dim: 64
intermediate_size: 256
activation: silu
activation_form: split
quantization: none
END
"$HUMCHECK" run c.yaml --jobs 1 --data nowhere
code=$?
ls
exit $code
