"$HUMCHECK" help eval
