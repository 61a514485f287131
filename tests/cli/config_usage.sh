"$HUMCHECK" config
echo $?
"$HUMCHECK" config cheek
echo $?
"$HUMCHECK" config keys x
echo $?
"$HUMCHECK" config check
