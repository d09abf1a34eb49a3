echo whole > whole.txt
