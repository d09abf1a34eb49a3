package benchmarkcli

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/agent/builtin"
	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/document"
)

// The workflow that is shown is valid, and its commands have flags that exist.
func TestTheWorkflow(t *testing.T) {
	source, err := os.ReadFile("../../../docs/workflows/agent-evaluation.yml")
	if err != nil {
		t.Fatal(err)
	}
	doc, err := document.Parse("agent-evaluation.yml", source)
	if err != nil {
		t.Fatal(err)
	}
	var workflow struct {
		Jobs map[string]struct {
			If    string `yaml:"if"`
			Steps []struct {
				Run string `yaml:"run"`
			} `yaml:"steps"`
		} `yaml:"jobs"`
	}
	if err := doc.Decode(&workflow); err != nil {
		t.Fatal(err)
	}
	if workflow.Jobs["answer"].If != "always()" {
		t.Error("the report must run even when shards fail")
	}
	commands := 0
	for name, job := range workflow.Jobs {
		before := ""
		for _, step := range job.Steps {
			rest, ours := strings.CutPrefix(step.Run, "fit-benchmark ")
			if !ours {
				before += step.Run + "\n"
				continue
			}
			commands++
			for tool, install := range map[string]string{
				"fit-benchmark": "bin/fit-benchmark", "agent:claude-code": "@anthropic-ai/claude-code",
				"--shard": "apt-get install -y bubblewrap",
			} {
				if strings.Contains(step.Run, tool) && !strings.Contains(before, install) {
					t.Errorf("job %s uses %s and installs it nowhere before", name, tool)
				}
			}
			words := strings.Fields(regexp.MustCompile(`\$\{\{[^}]*\}\}`).ReplaceAllString(strings.Split(rest, ">")[0],
				"1"))
			root := New(&console.Console{Stdout: os.Stdout, Stderr: os.Stderr}, agent.NewRegistry(builtin.New()))
			command, flags, err := root.Find(words)
			if err == nil {
				err = command.ParseFlags(flags)
			}
			if err != nil {
				t.Errorf("%s: %v", step.Run, err)
			}
		}
	}
	if commands != 3 {
		t.Errorf("%d commands", commands)
	}
}
