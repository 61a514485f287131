# The suite of a configuration is printed, says what is cut and left out, and is one that kernels takes.
mkdir -p configs/gsm8k && cp -r "$HERE/../../configs/models" configs/models
cp "$HERE/../../configs/gsm8k/gpt-oss-20b-humming-act-fp8.yaml" configs/gsm8k
"$HUMCHECK" derive configs/gsm8k/gpt-oss-20b-humming-act-fp8.yaml --gpu h100 | tee suite.yaml
"$HUMCHECK" kernels suite.yaml --list | wc -l
"$HUMCHECK" derive configs/gsm8k/gpt-oss-20b-humming-act-fp8.yaml --full | grep -c '# of'
