// Package main is scratch.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/cli/tracecli"
	"github.com/fit-eval/fit/session"
)

func main() {
	con := console.System("x")
	root := tracecli.New(con, session.Dialects{session.StreamDialect("claude-code")})
	root.SilenceErrors, root.SilenceUsage = true, true
	err := root.ExecuteContext(context.Background())
	if err != nil {
		fmt.Fprintln(os.Stderr, "fit-trace:", err)
	}
	os.Exit(console.Code(err))
}
