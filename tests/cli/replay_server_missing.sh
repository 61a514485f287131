"$HUMCHECK" replay-server nowhere.sqlite
