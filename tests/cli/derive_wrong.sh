# What is not known is said with its place, and nothing is printed: a model, its weights, a GPU's formats.
mkdir -p configs/gsm8k && cp -r "$HERE/../../configs/models" configs/models
cd configs/gsm8k
printf 'model_name: org/model\naccuracy_threshold: 0.86\nnum_questions: 1319\nnum_fewshot: 5\n' >model.yaml
cp "$HERE/../../configs/gsm8k/Qwen3-30B-A3B-Fp8-v1-humming.yaml" .
cp "$HERE/../../configs/gsm8k/gpt-oss-20b-humming-act-fp8.yaml" .
sed 's/float8e4m3/float8e4m4/; s/parallel-size 1/parallel-size 7/' gpt-oss-20b-humming-act-fp8.yaml >typo.yaml
"$HUMCHECK" derive model.yaml
echo $?
"$HUMCHECK" derive Qwen3-30B-A3B-Fp8-v1-humming.yaml
echo $?
"$HUMCHECK" derive gpt-oss-20b-humming-act-fp8.yaml --gpu 'NVIDIA A100-SXM4-80GB'
echo $?
"$HUMCHECK" derive typo.yaml
echo $?
sed -i 's/hidden_size: 2880/hidden_size: big/; s/swiglu_limit/swiglu_limits/' ../models/openai/gpt-oss-20b.yaml
"$HUMCHECK" derive gpt-oss-20b-humming-act-fp8.yaml
echo $?
"$HUMCHECK" run gpt-oss-20b-humming-act-fp8.yaml model.yaml --kernels-only
