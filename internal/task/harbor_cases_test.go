package task_test

import (
	"encoding/json"
	"os"
	"testing"
	"time"

	"github.com/fit-eval/fit/internal/task"
)

// Cases with the answers of Harbor's own code (0.20.0): what it shows of an instruction, what it
// fills into variables, and the settings that it reads.
func TestHarborsOwnAnswers(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile("testdata/harbor.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases struct {
		Environ      map[string]string
		Instructions []struct{ Text, Want string }
		Templates    []struct {
			Value, Want string
			Error       bool
		}
		Settings []struct {
			TOML                  string
			CPUs, Agent, Verifier float64
			Memory, Storage       int
			Network               string
			Error                 bool
		}
	}
	if err := json.Unmarshal(content, &cases); err != nil {
		t.Fatal(err)
	}
	var environ []string
	for name, value := range cases.Environ {
		environ = append(environ, name+"="+value)
	}
	load := func(toml string, more map[string]string) *task.Task {
		family, err := task.Load(t.Context(), harborTask(t, toml, more), task.Options{Environ: environ})
		if err != nil || len(family.Tasks) != 1 {
			return nil
		}
		return &family.Tasks[0]
	}
	for _, c := range cases.Instructions {
		if got := load("", map[string]string{"instruction.md": c.Text}); got == nil || got.Prompt != c.Want {
			t.Errorf("instruction %q: %+v, want %q", c.Text, got, c.Want)
		}
	}
	for _, c := range cases.Templates {
		got := load("[environment.env]\nA = '"+c.Value+"'\n", nil)
		if (got == nil) != c.Error || got != nil && got.Settings.Environment.Env["A"] != c.Want {
			t.Errorf("variable %s: %+v, want %q", c.Value, got, c.Want)
		}
	}
	for _, c := range cases.Settings {
		got := load(c.TOML, nil)
		if got == nil || c.Error {
			if (got == nil) != c.Error {
				t.Errorf("%q: loaded %v", c.TOML, got != nil)
			}
			continue
		}
		limits, agent := got.Settings.Limits, time.Duration(c.Agent*float64(time.Second))
		if agent == 0 {
			agent = 24 * time.Hour // it has no limit
		}
		if limits.CPUs != c.CPUs || limits.MemoryMB != c.Memory || limits.DiskMB != c.Storage ||
			got.Settings.Timeouts.Agent != agent ||
			got.Verifier.Timeout != time.Duration(c.Verifier*float64(time.Second)) ||
			(got.Settings.AgentNetwork.Kind == "host") != (c.Network == "public") {
			t.Errorf("%q: %+v %+v, want %+v", c.TOML, limits, got.Settings.Timeouts, c)
		}
	}
}
