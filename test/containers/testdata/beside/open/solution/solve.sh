exec 3<>/dev/tcp/answers/8000
cat <&3 > answer.txt
