"$HUMCHECK" help data
