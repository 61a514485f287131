# Every mistake of the command line and of the configurations at once, before anything starts.
printf 'model_name: m\naccuracy_threshold: 2\n' >broken.yaml
"$HUMCHECK" eval broken.yaml --server http://127.0.0.1:1/ --replay x --out json: --out json:a --out junit:a
"$HUMCHECK" eval --out json:nowhere/x --out junit:. --out markdown:/x/y
for url in http://127.0.0.1:1/v1 'http://127.0.0.1:1/?a=b' http://127.0.0.1:1#a; do
    "$HUMCHECK" eval --server "$url"
done
