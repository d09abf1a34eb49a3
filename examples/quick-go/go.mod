// This keeps the files of the family out of the module around it: they are data, some of them wrong on purpose.
module example.test/quick-go

go 1.24
