export HOME="$PWD"
unset XDG_CACHE_HOME
"$HUMCHECK" data fetch
echo $?
"$HUMCHECK" data fetch gsm8
echo $?
"$HUMCHECK" data arith gsm8k
echo $?
"$HUMCHECK" data arith --count 0
echo $?
"$HUMCHECK" data check x --data y
echo $?
"$HUMCHECK" data fetch gsm8k --url gopher://x --data .
echo $?
HOME= "$HUMCHECK" data check
