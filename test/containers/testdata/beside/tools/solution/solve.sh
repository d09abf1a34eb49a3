echo forty-two > answer.txt
