"$HUMCHECK" list checks
