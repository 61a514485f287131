# Behind -- everything is a suite.
"$HUMCHECK" kernels --list -- --list
