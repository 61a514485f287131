"$HUMCHECK" config keys
