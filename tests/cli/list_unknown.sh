"$HUMCHECK" list format
echo $?
"$HUMCHECK" list everything
echo $?
"$HUMCHECK" list
echo $?
"$HUMCHECK" list axes rules
