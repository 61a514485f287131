"$HUMCHECK" weights
echo $?
"$HUMCHECK" weights a b c
