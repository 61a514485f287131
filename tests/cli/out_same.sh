# One file under two names; a pipe is written, not replaced by a file; a folder is refused before the run.
cp "$HERE/small.yaml" .
"$HUMCHECK" kernels small.yaml --quiet --out jsonl:a --out junit:./a
echo "$?"
mkfifo pipe
wc -l <pipe | tr -d ' ' >lines &
"$HUMCHECK" kernels small.yaml --quiet --no-timing --out jsonl:pipe >said
echo "$?"
wait
cat lines
[ -p pipe ] && ls
"$HUMCHECK" kernels small.yaml --quiet --out jsonl:.
