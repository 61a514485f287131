"$HUMCHECK" --help || exit 9
"$HUMCHECK" help >again && "$HUMCHECK" --help | cmp - again || exit 9
