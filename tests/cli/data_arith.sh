# The same problems for the same seed, others for another one; each is a line of JSON.
"$HUMCHECK" data arith --count 3 --seed 7 >a && "$HUMCHECK" data arith --count 3 --seed 0x7 >b && cmp a b || exit 9
"$HUMCHECK" data arith --count 3 --seed 8 >c && ! cmp -s a c || exit 9
"$HUMCHECK" data arith | wc -l
"$HUMCHECK" data arith --count 10000 | grep -c '^{"question":".*","answer":".*#### [-0-9,]*"}$'
cat a
