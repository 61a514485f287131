"$HUMCHECK" help list doctor
