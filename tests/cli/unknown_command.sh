"$HUMCHECK" kernel small.yaml
echo $?
"$HUMCHECK" help dokter
echo $?
"$HUMCHECK" --verson
