# What is the same on every machine.
"$HUMCHECK" doctor >report || exit 9
sed -n 's/^\(humcheck\|compiler\|libyaml\|cJSON\|libxml2\|SQLite\|libcurl\|libmicrohttpd\|BLAS\|BLAS self-test\|processor\|cores\|memory\|provider cpu\)  .*/\1/p; s/^\(arithmetic\)  */\1: /p' report
