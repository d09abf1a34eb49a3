package agents

import (
	"strings"
	"sync"
	"testing"

	"github.com/fit-eval/fit/internal/model/scripted"
	"github.com/fit-eval/fit/internal/model/scripted/scriptedtest"
	"github.com/fit-eval/fit/internal/sandbox"
)

// TestAgentsDoNotLearnTheirArmOrTask: what the real programs send to their models, and what a
// command of theirs can see, names neither the arm nor the task.
func TestAgentsDoNotLearnTheirArmOrTask(t *testing.T) {
	t.Parallel()
	for _, isolation := range []string{sandbox.IsolationBwrap, sandbox.IsolationNone} {
		for _, agent := range []string{"claude-code", "codex", "pi-agent"} {
			t.Run(agent+" "+isolation, func(t *testing.T) {
				t.Parallel()
				checkUnnamed(t, agent, isolation)
			})
		}
	}
}

func checkUnnamed(t *testing.T, agent, isolation string) {
	t.Helper()
	const task, arms = "django__django-11099", "quokkaquokka"
	e := newExperiments(t)
	e.write("family/tasks/"+task+"/agent.task.md", "Write a greeting to greeting.txt.\n")
	e.write("family/tasks/"+task+"/workdir/README.md", "Nothing here yet.\n")
	e.write("family/tasks/"+task+"/tests/greet.tap.sh", "echo 1..1\necho ok 1\n")
	var mu sync.Mutex
	var asked strings.Builder
	url := scriptedtest.ServeAll(t, map[string]string{"": `{"turns": [
		{"calls": [{"bash": "env; pwd; cat /proc/self/cgroup; git log; ls -la . .. ~"}]}, {"text": "Done."}]}`},
		scripted.Options{LogBodies: true, OnRequest: func(r scripted.Record) {
			mu.Lock()
			defer mu.Unlock()
			asked.WriteString(r.Path + " " + string(r.Body) + "\n")
		}})
	e.url = url + "/c/{cell}/seed/{seed}"
	model := ",model:" + map[string]string{
		"claude-code": "claude-sonnet-4-5", "codex": "gpt-5", "pi-agent": "claude-sonnet-4-5",
	}[agent]
	code, records, said := e.run("--task", task, "--isolation", isolation, "--arm", arms+"-1=agent:"+agent+model,
		"--arm", arms+"-2=agent:"+agent+model+",prompt:Be brief.")
	mu.Lock()
	defer mu.Unlock()
	if code != 0 || len(records) != 2 || !strings.Contains(asked.String(), "PWD=") {
		t.Fatalf("exit code %d, %d records: %s\n%.2000s", code, len(records), said, asked.String())
	}
	for _, secret := range []string{task, arms} {
		if at := strings.Index(asked.String(), secret); at >= 0 {
			t.Errorf("the model reads %s: …%s…", secret,
				asked.String()[max(0, at-200):min(asked.Len(), at+200)])
		}
	}
}
