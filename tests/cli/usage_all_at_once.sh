"$HUMCHECK" kernels --filtr x --seed zz --shard 3/2 --jobs 0 --case-seconds nan -x --list=3
