# The printed command reruns exactly that case.
cp "$HERE/small.yaml" .
"$HUMCHECK" kernels small.yaml --quiet --no-timing --out jsonl:all.jsonl >/dev/null || exit 9
PATH=$(dirname "$HUMCHECK"):$PATH
sed -n 's/.*"case":"\([^"]*\)".*"repro":"\([^"]*\)".*/\1 \2/p' all.jsonl >lines
while read -r id command; do
    eval "$command --quiet --out jsonl:one.jsonl" >/dev/null || exit 9
    [ "$(wc -l <one.jsonl)" = 1 ] || exit 9
    grep -q "\"case\":\"$id\"" one.jsonl || exit 9
done <lines
wc -l <lines | tr -d ' '
