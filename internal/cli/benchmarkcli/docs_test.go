package benchmarkcli

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/agent/builtin"
	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/document"
)

var shellBlock = regexp.MustCompile("(?ms)^```sh\n(.*?)^```$")

// The page about evaluations is true: its commands are run, one after the other, in an empty
// directory.
func TestThePageAboutEvaluations(t *testing.T) {
	page, err := os.ReadFile("../../../docs/agent-evaluations.md")
	if err != nil {
		t.Fatal(err)
	}
	c := newCommand(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c.write(map[string]string{
		"bin/fit-benchmark": fmt.Sprintf("#!/bin/sh\n%s=1 exec %s \"$@\"\n", childVariable, self),
		"bin/fit":           fmt.Sprintf("#!/bin/sh\n%s=fit exec %s \"$@\"\n", childVariable, self),
		"work/.keep":        "",
	})
	script := "set -eu\n"
	for _, block := range shellBlock.FindAllStringSubmatch(string(page), -1) {
		script += block[1]
	}
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	shell := exec.CommandContext(ctx, "sh", "-c", script)
	// A shell that is killed does not end the model that it has started, which then holds the
	// output open.
	shell.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	shell.Cancel = func() error { return syscall.Kill(-shell.Process.Pid, syscall.SIGKILL) }
	shell.Dir = filepath.Join(c.dir, "work")
	shell.Env = []string{
		"PATH=" + filepath.Join(c.dir, "bin") + ":" + os.Getenv("PATH"), "HOME=" + c.dir,
		"GORACE=atexit_sleep_ms=0",
	}
	output, err := shell.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	c.contains(
		string(output),
		"12 tasks × 2 arms × 2 runs",
		"Improved: pass rate of after",
		"0 to do",
		"48 runs graded again, 0 differ",
		"all tasks",
		"files match the record",
		"sequential analysis",
		"4 metrics.ndjson",
	)
}

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
