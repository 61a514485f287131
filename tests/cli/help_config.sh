"$HUMCHECK" help config
