cp input.txt output.txt
echo 5 > count.txt
