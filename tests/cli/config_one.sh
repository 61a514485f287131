# One configuration is printed in full: what is asked, what starts the server, what vLLM adds.
cp "$HERE/../../configs/gsm8k/gpt-oss-20b-humming-act-fp8.yaml" .
"$HUMCHECK" config check gpt-oss-20b-humming-act-fp8.yaml
