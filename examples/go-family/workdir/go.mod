module example.test/exercise

go 1.24
