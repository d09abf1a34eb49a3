module example.test/quick

go 1.24
