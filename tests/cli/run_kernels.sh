# Kernels alone: the derived suite is kept, run as kernels runs it, and reported entry by entry.
cat >c.yaml <<'END'
model_name: "org/model"
accuracy_threshold: 0.86
num_questions: 1319
num_fewshot: 5
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
"$HUMCHECK" run c.yaml --kernels-only --jobs 1 2>/dev/null | sed 's/ in [0-9.]* s, [0-9]* cases.min//; s/([0-9a-f]*):/(C):/'
ls humcheck-runs
tail -n 13 humcheck-runs/report.md
"$HUMCHECK" run c.yaml --kernels-only --filter '*attn.o*' --run other >/dev/null 2>&1 && wc -l <other/kernels.jsonl
