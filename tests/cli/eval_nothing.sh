"$HUMCHECK" eval --limit 5
