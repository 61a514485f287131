# Their rows belong to others; each has some.
for topic in formats axes rules providers; do
    "$HUMCHECK" list $topic >rows || exit 9
    [ "$(wc -l <rows)" -gt 1 ] || exit 9
    head -n 1 rows | tr -s ' '
done
