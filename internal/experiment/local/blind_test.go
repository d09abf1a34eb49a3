package local

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/fit-eval/fit/internal/experiment"
	"github.com/fit-eval/fit/internal/gateway"
	"github.com/fit-eval/fit/internal/model/scripted"
	"github.com/fit-eval/fit/internal/sandbox"
	"github.com/fit-eval/fit/internal/task"
	"github.com/fit-eval/fit/ledger"
)

// The names that nobody who works or judges may see.
const (
	blindTask = "django__django-11099"
	blindArm  = "zebrafinch"
	otherArm  = "hummingbird"
)

// spies prints everything that an agent can know about itself, writes it down for the hook, and
// solves the task. The judge reads the trace that it is pointed to.
const spies = `{"scenarios":[{"name":"judge","when":{"tool":"orchestration/Conclude"},"turns":[
	{"calls":[{"read":"${trace}"}]},
	{"calls":[{"mcp":"orchestration/Conclude","input":{"verdict":"success","summary":"I say success."}}]},{"text":"Over."}]}],
	"captures":[{"var":"trace","from":"first_prompt","regex":"Trace: (\\S+)"}],
	"turns":[{"text":"I am Claude of Anthropic, and the answer is next.","calls":[{"bash":"(env; pwd; tr '\\0' '\\n' </proc/self/environ; cat /proc/self/cgroup; id; hostname; git log 2>&1; ls -la . ..) >seen.txt 2>&1; cat seen.txt"}]},
	{"calls":[{"write":"answer.txt","content":"42\n"}]},{"text":"The answer is written, says claude-sonnet-4-5."}]}`

// heard keeps every request that reaches a model, headers and path included.
type heard struct {
	mu    sync.Mutex
	lines []string
}

func (h *heard) all() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.Join(h.lines, "\n")
}

// serveHearing serves a script and keeps what it is asked.
func serveHearing(t *testing.T, script string) (string, *heard) {
	t.Helper()
	parsed, err := scripted.Parse([]byte(script))
	if err != nil {
		t.Fatal(err)
	}
	h := &heard{}
	model := scripted.NewServer(map[string]*scripted.Script{"": parsed}, scripted.Options{
		LogBodies: true,
		OnRequest: func(r scripted.Record) {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.lines = append(h.lines, r.Path+" "+r.Key+" "+string(r.Body))
		},
	})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var header strings.Builder
		_ = r.Header.Write(&header)
		h.mu.Lock()
		h.lines = append(h.lines, header.String())
		h.mu.Unlock()
		model.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL, h
}

// blindFamily is a family with one task whose id a model may remember, a hook that shows what it
// is told, and a judge.
func blindFamily(t *testing.T, files map[string]string) *task.Family {
	t.Helper()
	dir := t.TempDir()
	all := map[string]string{
		"tasks/" + blindTask + "/agent.task.md": "Write the answer into answer.txt.\n",
		"tasks/" + blindTask + "/judge.task.md": "Judge {{TASK_ID}} in {{TASK_DIR}}.\n{{GRADE_RESULT}}\n" +
			"{{AGENT_ANSWER}}\nTrace: {{AGENT_TRACE_PATH}}\n",
		"tasks/" + blindTask + "/hooks/invariants.sh": "#!/bin/sh\nenv >&2\n" +
			`if [ "$(cat answer.txt)" = 42 ]; then p=true; else p=false; fi` + "\n" +
			`echo "{\"test\":\"answer\",\"pass\":$p,\"message\":\"$AGENT_CWD\"}" >&3` + "\n",
	}
	for name, content := range files {
		all[name] = content
	}
	writeFiles(t, dir, all)
	family, err := task.Load(t.Context(), dir, task.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return family
}

func withoutGateway(isolation string) experiment.Setup {
	setup := experiment.Setup{Isolation: isolation}
	setup.Gateway = gateway.Off
	return setup
}

// TestNobodyLearnsWhichArmOrTaskItIs: neither the agent nor the judge can tell which arm is at
// work, or by which id others know the task, and hooks are not told the arm. The record has the
// names.
func TestNobodyLearnsWhichArmOrTaskItIs(t *testing.T) {
	for name, c := range map[string]struct {
		files func(t *testing.T) map[string]string
		setup experiment.Setup
	}{
		"bwrap":             {setup: experiment.Setup{Isolation: sandbox.IsolationBwrap}},
		"bwrap, no gateway": {setup: withoutGateway(sandbox.IsolationBwrap)},
		"none":              {setup: experiment.Setup{Isolation: sandbox.IsolationNone}},
		"none, no gateway":  {setup: withoutGateway(sandbox.IsolationNone)},
		"container": {files: func(t *testing.T) map[string]string {
			return inImage(t, "")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var files map[string]string
			if c.files != nil {
				files = c.files(t)
			}
			url, model := serveHearing(t, spies)
			for _, arm := range []string{blindArm, otherArm} {
				c.setup.Arms = append(c.setup.Arms, experiment.Arm{
					Name:     arm,
					Agent:    "builtin",
					Model:    "claude-sonnet-4-5",
					ModelURL: url + "/c/{cell}/seed/{seed}",
					MaxTurns: 10,
				})
			}
			_, _, records := execute(t, prepared(t, blindFamily(t, files), c.setup), 2)
			checkBlind(t, records, model.all())
		})
	}
}

// checkBlind looks for the names in what the models were sent and the hooks saw, and for the map
// in the records.
func checkBlind(t *testing.T, records []ledger.Record, asked string) {
	t.Helper()
	if len(records) != 2 || !strings.Contains(asked, "PATH=") || !strings.Contains(asked, "the answer is next") {
		t.Fatalf("%d records, the models were asked %.2000s", len(records), asked)
	}
	for _, secret := range []string{blindTask, blindArm, otherArm} {
		if at := strings.Index(asked, secret); at >= 0 {
			t.Errorf("a model reads %s: …%s…", secret, asked[max(0, at-200):min(len(asked), at+200)])
		}
	}
	aliases := map[string]bool{}
	for i := range records {
		r := &records[i]
		if r.Verdict != ledger.Pass {
			t.Fatalf("%s %s: %s", r.Verdict, r.ErrorClass, r.ErrorMessage)
		}
		if r.Alias == "" || !strings.Contains(asked, r.Alias) {
			t.Errorf("arm %s has the alias %q, which the models never saw", r.Arm, r.Alias)
		}
		aliases[r.Alias] = true
		told, err := json.Marshal(r.Invariants)
		if err != nil || !strings.Contains(string(told), "AGENT_CWD=") {
			t.Fatalf("the hook was told %s, %v", told, err)
		}
		if strings.Contains(string(told), blindArm) || strings.Contains(string(told), otherArm) {
			t.Errorf("a hook was told the arm: %s", told)
		}
	}
	if len(aliases) != 2 {
		t.Errorf("aliases %v", aliases)
	}
}

// TestTheJudgeReadsWhatWasDoneAndNotByWhom: what the judge is pointed to has the agent's steps,
// without the names of the vendor and its model, and without tokens.
func TestTheJudgeReadsWhatWasDoneAndNotByWhom(t *testing.T) {
	url, model := serveHearing(t, spies)
	arms := []experiment.Arm{{
		Name:     blindArm,
		Agent:    "builtin",
		Model:    "claude-sonnet-4-5",
		ModelURL: url,
		MaxTurns: 10,
	}}
	execute(t, prepared(t, blindFamily(t, nil), experiment.Setup{Arms: arms}), 1)
	judged := ""
	for _, line := range strings.Split(model.all(), "\n") {
		if strings.Contains(line, "Conclude") {
			judged += line
		}
	}
	if !strings.Contains(judged, "the answer is next") || !strings.Contains(judged, "cat /proc/self/cgroup") {
		t.Fatalf("the judge did not read what was done: %.3000s", judged)
	}
	_, judged, _ = strings.Cut(judged, `"messages"`) // the request itself names the judge's own model
	for _, secret := range []string{
		"Claude of", "Anthropic", "says claude", "input_tokens", "inputTokens", "totalTokens",
	} {
		if at := strings.Index(judged, secret); at >= 0 {
			t.Errorf("the judge reads %s: …%s…", secret, judged[max(0, at-200):min(len(judged), at+200)])
		}
	}
}
