// Command fit proves whether a change to an agent made it better. The name it is called by picks
// the command: fit-harness is fit harness, and so on.
package main

import (
	"os"

	"github.com/fit-eval/fit/internal/cli"
	"github.com/fit-eval/fit/internal/sandbox"
)

func main() {
	sandbox.MaybeReaper() // a copy of this binary watches over each child process
	os.Exit(cli.Main())
}
