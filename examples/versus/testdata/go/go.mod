module example.com/plural

go 1.24
