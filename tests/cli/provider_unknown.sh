cp "$HERE/small.yaml" .
"$HUMCHECK" kernels small.yaml --provider nobody 2>said
code=$?
wc -l <said | tr -d ' '
exit $code
