// Command helper is what containers run in tests: as little as possible, so that it is built in a
// second.
package main

import _ "github.com/fit-eval/fit/internal/sandbox" // does all the work before main

func main() {}
