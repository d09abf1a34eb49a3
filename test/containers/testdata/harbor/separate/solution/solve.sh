echo ready > /var/state.txt
mkdir -p /srv /data/numbers /data/cache
echo result > /srv/result.txt
echo 1 > /data/numbers/one
touch /data/numbers/two.tmp /data/cache/x answer.txt
chmod 600 /data/numbers/one
