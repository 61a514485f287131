"$HUMCHECK" kernels missing.yaml gone.yaml
