"$HUMCHECK" help mutate
