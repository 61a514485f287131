# What cannot be explained, with a sentence each.
cp "$HERE/small.yaml" .
"$HUMCHECK" explain
echo $?
"$HUMCHECK" explain "humcheck kernels small.yaml --filter 'x"
echo $?
"$HUMCHECK" explain "humcheck kernels small.yaml --bogus"
echo $?
"$HUMCHECK" explain blah
echo $?
"$HUMCHECK" explain small.yaml
echo $?
"$HUMCHECK" explain small.yaml --filter nothing
echo $?
"$HUMCHECK" explain small.yaml --out json:x
echo $?
"$HUMCHECK" explain A=1 B=2 humcheck kernels small.yaml
echo $?
"$HUMCHECK" explain "  repro: humcheck kernels small.yaml --filter nothing"
echo $?
