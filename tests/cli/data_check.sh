# Files that are missing or others are refused, with both hashes.
mkdir -p cache/humcheck/gsm8k
echo x >cache/humcheck/gsm8k/test.jsonl
XDG_CACHE_HOME=$PWD/cache "$HUMCHECK" data check 2>errors
code=$?
sed "s,$PWD,PWD," errors
exit $code
