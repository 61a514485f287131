"$HUMCHECK" list --help
