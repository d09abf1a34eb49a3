// Command fit proves whether a change to an agent made it better. The name it is called by picks
// the command: fit-harness is fit harness, and so on.
package main

import (
	"os"

	"github.com/fit-eval/fit/internal/cli"
)

func main() {
	os.Exit(cli.Main())
}
