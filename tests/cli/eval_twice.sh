# Two files of one name would share a store; and no data set is there.
for folder in a b; do
    mkdir $folder
    printf 'model_name: %s\naccuracy_threshold: 0.9\nnum_questions: 1319\nnum_fewshot: 5\n' $folder >$folder/c.yaml
done
"$HUMCHECK" eval a/c.yaml b/c.yaml
"$HUMCHECK" eval a/c.yaml --data nowhere 2>&1 | sed 's/^humcheck: //'
