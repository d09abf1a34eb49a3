package sql

// The driver "sqlite", without cgo. It has a file of its own, so that whoever reads the whole
// program can leave out its 400,000 lines.
import _ "modernc.org/sqlite"
