"$HUMCHECK" list kernels
