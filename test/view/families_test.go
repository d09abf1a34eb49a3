package view

import (
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/model/scripted"
	"github.com/fit-eval/fit/internal/testenv"
)

// harborTask is a set of one task in Harbor's form, whose verifier gives two rewards.
var harborTask = map[string]string{
	"task.toml":              "version = \"1.0\"\n",
	"instruction.md":         "Write Hello into /app/hello.txt.\n",
	"environment/Dockerfile": "FROM ubuntu:24.04\nWORKDIR /app\n",
	"tests/test.sh":          "echo '{\"starts\": 1, \"whole\": 0.5}' > /logs/verifier/reward.json\n",
	"solution/solve.sh":      "printf Hello > /app/hello.txt\n",
}

// serveModel serves a script and returns its address.
func serveModel(t *testing.T, path string) string {
	t.Helper()
	script, err := scripted.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(scripted.NewServer(map[string]*scripted.Script{"": script}, scripted.Options{}))
	t.Cleanup(server.Close)
	return server.URL
}

// TestTasksOfOthers: pages of a set of Harbor tasks and of a dataset of questions show what report
// prints.
func TestTasksOfOthers(t *testing.T) {
	t.Parallel()
	testenv.NeedTool(t, "bwrap")
	top := t.TempDir()
	for name, content := range harborTask {
		path := filepath.Join(top, "set/hello", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	script := filepath.Join(top, "script.json")
	turns := `{"turns":[{"calls":[{"bash":"printf Hello > /app/hello.txt"}]},{"text":"Done."}]}`
	if err := os.WriteFile(script, []byte(turns), 0o600); err != nil {
		t.Fatal(err)
	}
	do := func(args ...string) {
		t.Helper()
		cmd := fitCommand(t, args...)
		cmd.Dir = top
		if out, err := cmd.Output(); err != nil {
			t.Fatalf("fit %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	do("benchmark", "run", "--family", "set", "--isolation", "bwrap", "--agent", "builtin", "--runs", "1",
		"--model-url", serveModel(t, script), "--no-probe", "--output", "runs/harbor")
	do("benchmark", "init", "--dataset", "questions")
	do("benchmark", "run", "--family", "questions", "--agent", "model", "--runs", "1",
		"--model-url", serveModel(t, filepath.Join(top, "questions/example-model.json")), "--no-probe",
		"--output", "runs/dataset")
	address := serve(t, filepath.Join(top, "runs"))
	g := &guide{asked: askView(t, address), top: filepath.Join(top, "runs")}
	harbor, dataset := "#/x/"+g.id(t, "harbor"), "#/x/"+g.id(t, "dataset")
	question := g.report(t, "dataset").Groups[0].Tasks[0].TaskID
	arm := func(name string) string { return g.report(t, name).Groups[0].Provenance.Arm }
	// One arm has nothing to be compared with.
	pages := glance(t, map[string]any{"url": address, "allow": []string{"409"}},
		spot{"list", "#/", "table.experiments tbody tr"},
		spot{"harbor", harbor + "?tab=checks", anyTable},
		spot{"harbor cell", harbor + "/hello/" + arm("harbor") + "/0", ".transcript .entry.assistant"},
		spot{"dataset", dataset, "table.grid tbody tr"},
		spot{"dataset cell", dataset + "/" + question + "/" + arm("dataset") + "/0", ".transcript .entry.assistant"},
	)
	for _, name := range []string{"harbor", "dataset"} {
		one := g.report(t, name).Groups[0]
		pages["list"].has(t, "*", "*", one.Provenance.Arm+" "+percent(*one.PassRate.Est),
			fmt.Sprintf("%d of %d", one.Totals.Runs, one.Totals.Planned), money(g.report(t, name).Totals.CostUsd),
			"*", "*")
	}
	for _, check := range g.report(t, "harbor").Groups[0].Tasks[0].Checks {
		pages["harbor"].has(t, "hello", check.Check, map[bool]string{true: "gate", false: "scored"}[check.Gate],
			fmt.Sprintf("%d of %d", check.Passed, check.N))
	}
	pages["harbor cell"].says(t, "failed", "check starts tests", "check whole tests", "hello.txt +1 −0")
	pages["dataset cell"].says(t, question)
}
