"$HUMCHECK" help kernels || exit 9
"$HUMCHECK" help kernels >one && "$HUMCHECK" kernels --nonsense --help | cmp - one
