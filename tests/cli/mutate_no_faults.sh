# A release build has no faults, and says how to get some; the mistakes of the command line come first.
"$HUMCHECK" mutate "$HERE/small.yaml" && exit 9
"$HUMCHECK" list faults && exit 9
"$HUMCHECK" mutate
