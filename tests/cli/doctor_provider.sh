"$HUMCHECK" doctor --provider ./missing.so >/dev/null 2>said
code=$?
[ "$(wc -l <said)" = 1 ] && grep -q missing.so said || exit 9
exit $code
