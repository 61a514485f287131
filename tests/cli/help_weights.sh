"$HUMCHECK" help weights
