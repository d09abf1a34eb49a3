// An agent in twenty lines: asks a model for a shell command, runs it, and tells fit by events.
package main

import (
	"os/exec"

	"github.com/fit-eval/fit/agent/events"
)

func main() {
	events.Serve(func(run *events.Run) (string, error) {
		command, err := run.Ask("Answer with one shell command that does this, and nothing else: " + run.Prompt)
		if err != nil {
			return "", err
		}
		_, err = run.Call("bash", events.Input{"command": command}, exec.Command("sh", "-c", command).CombinedOutput)
		return "I ran: " + command, err
	})
}
