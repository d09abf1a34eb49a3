module example.test/clamp

go 1.24
