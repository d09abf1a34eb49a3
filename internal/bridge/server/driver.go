package server

// The driver "sqlite", without cgo. It has its own file, so that tools that read the whole program
// can leave out its 400,000 lines.
import _ "modernc.org/sqlite"
