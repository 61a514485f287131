"$HUMCHECK" doctor --help
