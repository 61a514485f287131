# A folder that is wrong in several ways: all of it is said, and what is right is still shown.
mkdir set set/lists
cp "$HERE/../../configs/gsm8k/Qwen3-4B-FP8-humming.yaml" set/good.yaml
sed 's/num_fewshot/num_fewshots/; s/0.85/85 %/' set/good.yaml >set/bad.yaml
cp set/good.yaml set/forgotten.yaml
printf '../good.yaml\n../bad.yaml\n../gone.yaml\n' >set/lists/h100.txt
: >set/lists/b200.txt
"$HUMCHECK" config check set
