package agents

import (
	"encoding/json"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/fit-eval/fit/internal/model/scripted"
	"github.com/fit-eval/fit/internal/model/scripted/scriptedtest"
	"github.com/fit-eval/fit/internal/sandbox"
	"github.com/fit-eval/fit/ledger"
)

// The names that no agent and no judge may read, and no hook the latter of.
const blindTask, blindArms = "django__django-11099", "quokkaquokka"

// TestAgentsDoNotLearnTheirArmOrTask: what the real programs send to their models, as agents and as
// judges, and what a command of theirs can see, names neither the arm nor the task; the hook is not
// told the arm.
func TestAgentsDoNotLearnTheirArmOrTask(t *testing.T) {
	t.Parallel()
	for _, isolation := range []string{sandbox.IsolationBwrap, sandbox.IsolationNone} {
		for _, agent := range []string{"claude-code", "codex", "pi-agent", "builtin"} {
			t.Run(agent+" "+isolation, func(t *testing.T) {
				t.Parallel()
				checkUnnamed(t, agent, isolation)
			})
		}
	}
}

func checkUnnamed(t *testing.T, agent, isolation string) {
	t.Helper()
	e := newExperiments(t)
	dir := "family/tasks/" + blindTask
	e.write(dir+"/agent.task.md", "Write a greeting to greeting.txt.\n")
	e.write(dir+"/workdir/README.md", "Nothing here yet.\n")
	e.write(dir+"/judge.task.md", "JUDGEMENT of {{TASK_ID}} in {{TASK_DIR}}.\n{{GRADE_RESULT}}\n{{AGENT_ANSWER}}\n"+
		"Trace: {{AGENT_TRACE_PATH}}\n")
	hook := e.write(dir+"/hooks/invariants.sh", "#!/bin/sh\n{ env; pwd; ls -la . ..; } >&2\n"+
		`echo "{\"test\":\"greets\",\"pass\":true,\"message\":\"$AGENT_CWD\"}" >&3`+"\n")
	if err := os.Chmod(hook, 0o755); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var asked strings.Builder
	url := scriptedtest.ServeAll(t, map[string]string{"": `{
		"scenarios": [{"name": "judge", "when": {"any_prompt": "JUDGEMENT of"}, "turns": [
			{"calls": [{"bash": "env; pwd; ls -la . .. ~"}]},
			{"calls": [{"mcp": "orchestration/Conclude", "input": {"verdict": "success", "summary": "It greets."}}]},
			{"text": "Over."}]}],
		"turns": [{"calls": [{"bash": "env; pwd; cat /proc/self/cgroup; git log; ls -la . .. ~"}]}, {"text": "Done."}]}`},
		scripted.Options{LogBodies: true, OnRequest: func(r scripted.Record) {
			mu.Lock()
			defer mu.Unlock()
			asked.WriteString(r.Path + " " + string(r.Body) + "\n")
		}})
	e.url = url + "/c/{cell}/seed/{seed}"
	model := ",model:" + map[string]string{
		"claude-code": "claude-sonnet-4-5", "codex": "gpt-5", "pi-agent": "claude-sonnet-4-5",
		"builtin": "claude-sonnet-4-5",
	}[agent]
	judge := agent
	if agent == "codex" && isolation == sandbox.IsolationNone { // judges run commands in a sandbox only
		judge = "builtin"
	}
	code, records, said := e.run("--task", blindTask, "--isolation", isolation, "--judge-agent", judge, "--judge-model",
		"scripted-model", "--judge-url", url, "--same-family",
		"--arm", blindArms+"-1=agent:"+agent+model, "--arm", blindArms+"-2=agent:"+agent+model+",prompt:Be brief.")
	mu.Lock()
	defer mu.Unlock()
	if code != 0 || len(records) != 2 || !strings.Contains(asked.String(), "PWD=") ||
		!strings.Contains(asked.String(), "JUDGEMENT of") {
		t.Fatalf("exit code %d, %d records: %s\n%.2000s", code, len(records), said, asked.String())
	}
	for _, secret := range []string{blindTask, blindArms} {
		if at := strings.Index(asked.String(), secret); at >= 0 {
			t.Errorf("the model reads %s: …%s…", secret,
				asked.String()[max(0, at-200):min(asked.Len(), at+200)])
		}
	}
	for i := range records {
		checkHookAndJudge(t, &records[i])
	}
}

// checkHookAndJudge looks for the arm in what the hook was told; the judge must have judged.
func checkHookAndJudge(t *testing.T, r *ledger.Record) {
	t.Helper()
	told, err := json.Marshal(r.Invariants)
	if err != nil || !strings.Contains(string(told), "AGENT_CWD=") || strings.Contains(string(told), blindArms) {
		t.Errorf("the hook was told %s, %v", told, err)
	}
	if r.JudgeVerdict == nil || r.Verdict != ledger.Pass {
		t.Errorf("%s: %s %s, the judge said %+v", r.Arm, r.Verdict, r.ErrorMessage, r.JudgeVerdict)
	}
}
