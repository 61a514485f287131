"$HUMCHECK" help replay-server
