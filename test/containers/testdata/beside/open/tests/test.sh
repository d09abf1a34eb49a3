#!/bin/bash
exec 3<>/dev/tcp/the-answers/8000
read -r said <&3
cat /shared/seed
[ "$said" = "forty-two of the task seeded routes" ] && [ "$(cat /app/answer.txt)" = "$said" ]
echo "$((1 - $?))" > /logs/verifier/reward.txt
