// Package main is scratch.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/fit-eval/fit/agent/catalog"
	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/cli/tracecli"
)

func main() {
	con := console.System("x")
	root := tracecli.New(con, catalog.Default().Dialects())
	root.SilenceErrors, root.SilenceUsage = true, true
	err := root.ExecuteContext(context.Background())
	if err != nil {
		fmt.Fprintln(os.Stderr, "fit-trace:", err)
	}
	os.Exit(console.Code(err))
}
