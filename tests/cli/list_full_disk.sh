"$HUMCHECK" list axes >/dev/full
