// Command library shows what a Go program can do with fit, without a key and without a network:
// each argument runs one example. Everything it imports is what a module of one's own may import.
//
//	go run ./examples/library experiment examples/quick-shell /tmp/results
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/fit-eval/fit"
)

// script is the model of all examples: it repairs add.sh if it was asked to look at the sign.
const script = `{"scenarios": [
  {"name": "careful", "when": {"system": "Look at the sign"}, "turns": [
    {"calls": [{"bash": "printf '#!/bin/sh\\necho $(($1 + $2))\\n' > add.sh"}]}, {"text": "add.sh adds now."}]},
  {"name": "curious", "when": {"tool": "mine/answer"}, "turns": [
    {"calls": [{"mcp": "mine/answer", "input": {}}]}, {"text": "I know."}]},
  {"name": "worker", "when": {"prompt": "Repair"}, "turns": [{"calls": [{"bash": "ls"}]}, {"text": "Looked."}]},
  {"name": "hasty", "turns": [{"calls": [{"read": "add.sh"}]}, {"text": "It looks right to me."}]}]}`

func main() {
	examples := map[string]func(ctx context.Context, model string, args []string) error{
		"experiment": measure, "report": inspect, "agent": ownAgent, "spawner": ownSpawner, "tools": toolServer,
	}
	if len(os.Args) == 2 && os.Args[1] == "serve" {
		_ = serve(context.Background())
		return
	}
	if len(os.Args) < 3 || examples[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: library experiment FAMILY OUTPUT | report RUN | agent DIR | spawner DIR | "+
			"tools DIR")
		os.Exit(2)
	}
	model, stop, err := fit.ServeScript([]byte(script))
	if err == nil {
		err = examples[os.Args[1]](context.Background(), model, os.Args[2:])
		_ = stop()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
