# A help text that was not written is an error.
"$HUMCHECK" --help >/dev/full
