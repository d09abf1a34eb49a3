echo half > half.txt
