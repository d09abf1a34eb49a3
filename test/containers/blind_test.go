package containers

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/fit-eval/fit/internal/model/scripted"
	"github.com/fit-eval/fit/internal/model/scripted/scriptedtest"
	"github.com/fit-eval/fit/ledger"
)

// TestAgentsInContainersDoNotLearnTheirArmOrTask: what every agent in a container sends to its
// model, and what a command of its can see there, names neither the arm nor the task; the hook is
// not told the arm.
func TestAgentsInContainersDoNotLearnTheirArmOrTask(t *testing.T) {
	t.Parallel()
	const task, arms = "django__django-11099", "quokkaquokka"
	b := newBench(t)
	var mu sync.Mutex
	var asked strings.Builder
	b.url = scriptedtest.ServeAll(t, map[string]string{"": `{"turns":[
		{"calls":[{"bash":"env; pwd; hostname; cat /proc/self/cgroup /proc/self/mountinfo; ls -la . .. ~"}]},
		{"text":"Done."}]}`},
		scripted.Options{LogBodies: true, OnRequest: func(r scripted.Record) {
			mu.Lock()
			defer mu.Unlock()
			asked.WriteString(r.Path + " " + string(r.Body) + "\n")
		}})
	tasks := filepath.Join(b.dir, "family", "tasks")
	if err := os.Rename(filepath.Join(tasks, "answer"), filepath.Join(tasks, task)); err != nil {
		t.Fatal(err)
	}
	hook := []byte("#!/bin/sh\n{ env; pwd; ls -la . ..; } >&2\necho '{\"test\":\"looked\",\"pass\":true}' >&3\n")
	if err := os.WriteFile(filepath.Join(tasks, task, "hooks", "invariants.sh"), hook, 0o755); err != nil {
		t.Fatal(err)
	}
	args := b.arguments("--runs", "1", "--attempts", "1", "--concurrency", "4")
	for _, id := range slices.Sorted(maps.Keys(agents)) {
		args = append(args, "--arm",
			arms+"-"+id+"=agent:"+id+",model:"+agents[id]+",modelUrl:"+b.url+"/c/{cell}/seed/{seed}")
	}
	records := b.run(args)
	mu.Lock()
	defer mu.Unlock()
	for _, secret := range []string{task, arms} {
		if at := strings.Index(asked.String(), secret); at >= 0 {
			t.Errorf("a model reads %s: …%s…", secret, asked.String()[max(0, at-200):min(asked.Len(), at+200)])
		}
	}
	for id := range agents {
		r := records[arms+"-"+id]
		told, err := json.Marshal(r.Invariants)
		if err != nil || r.Verdict != ledger.Pass || r.Container == nil ||
			!strings.Contains(string(told), "AGENT_CWD=") || strings.Contains(string(told), arms) {
			t.Errorf("%s: %s %s, the hook was told %s", id, r.Verdict, r.ErrorMessage, told)
		}
	}
	if seen := strings.Count(asked.String(), "PATH="); seen < len(agents) {
		t.Errorf("the models read %d environments of %d", seen, len(agents))
	}
}
