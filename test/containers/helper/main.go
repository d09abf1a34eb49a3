// Command helper is what containers run in tests: as little as possible, so that it is built in a
// second.
package main

import "github.com/fit-eval/fit/internal/sandbox"

// The package does all the work before main.
func main() { _ = sandbox.MaybeReaper() }
