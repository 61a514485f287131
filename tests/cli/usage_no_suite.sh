"$HUMCHECK" kernels --list
