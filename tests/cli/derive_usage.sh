"$HUMCHECK" derive
echo $?
"$HUMCHECK" derive gone.yaml
echo $?
"$HUMCHECK" run c.yaml --kernels-only --eval-only --no-such
echo $?
"$HUMCHECK" run gone.yaml --kernels-only --eval-only
echo $?
"$HUMCHECK" run gone.yaml --server http://localhost:1/ --replay x
