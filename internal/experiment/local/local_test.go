package local

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/agent/builtin"
	"github.com/fit-eval/fit/internal/containertest"
	"github.com/fit-eval/fit/internal/experiment"
	"github.com/fit-eval/fit/internal/gateway"
	"github.com/fit-eval/fit/internal/model/scripted"
	"github.com/fit-eval/fit/internal/sandbox"
	"github.com/fit-eval/fit/internal/task"
	"github.com/fit-eval/fit/ledger"
	"github.com/fit-eval/fit/price"
	"github.com/fit-eval/fit/redact"
	"github.com/fit-eval/fit/session"
)

func TestMain(m *testing.M) {
	code := m.Run()
	containertest.Remove()
	os.Exit(code)
}

// invariantsHook passes when answer.txt holds 42.
const invariantsHook = `#!/bin/sh
if [ "$(cat "$AGENT_CWD/answer.txt" 2>/dev/null)" = 42 ]; then pass=true; else pass=false; fi
echo "{\"test\":\"answer\",\"pass\":$pass}" >&3
`

// writeFiles makes files below a directory; scripts are executable.
func writeFiles(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		mode := os.FileMode(0o644)
		if strings.HasSuffix(name, ".sh") {
			mode = 0o755
		}
		if err := os.WriteFile(path, []byte(content), mode); err != nil {
			t.Fatal(err)
		}
	}
}

func answerFamily(t testing.TB, tasks int) *task.Family {
	t.Helper()
	dir := t.TempDir()
	for i := range tasks {
		writeFiles(t, dir, map[string]string{
			fmt.Sprintf("tasks/task-%03d/agent.task.md", i):       "Write the answer into answer.txt.\n",
			fmt.Sprintf("tasks/task-%03d/hooks/invariants.sh", i): invariantsHook,
			fmt.Sprintf("tasks/task-%03d/workdir/README.md", i):   "The answer goes into answer.txt.\n",
			fmt.Sprintf("tasks/task-%03d/solution/answer.txt", i): "42\n",
		})
	}
	family, err := task.Load(t.Context(), dir, task.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return family
}

func serveScript(t testing.TB, script string) string {
	t.Helper()
	parsed, err := scripted.Parse([]byte(script))
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(scripted.NewServer(map[string]*scripted.Script{"": parsed}, scripted.Options{}))
	t.Cleanup(server.Close)
	return server.URL
}

const solves = `{"turns":[{"calls":[{"write":"answer.txt","content":"42\n"}]},{"text":"The answer is written."}]}`

// testMachine has the built-in agent, and nothing of the environment but the search path.
func testMachine() *Machine {
	return &Machine{
		Registry: agent.NewRegistry(builtin.New()),
		Prices:   session.ListPrices(price.Default()),
		Host:     agent.Host{Environ: []string{"PATH=" + os.Getenv("PATH")}, Spawner: sandbox.NewSpawner()},
		Redactor: redact.New(redact.Config{}),
	}
}

// trial is an experiment that is ready, and the machine it was prepared on.
type trial struct {
	*experiment.Prepared
	machine *Machine
	budgets experiment.Budgets
	rate    *gateway.RateControl
}

// prepared is an experiment with the built-in agent on a scripted model.
func prepared(t testing.TB, family *task.Family, setup experiment.Setup) trial {
	t.Helper()
	return preparedOn(t, testMachine(), family, setup)
}

func preparedOn(t testing.TB, machine *Machine, family *task.Family, setup experiment.Setup) trial {
	t.Helper()
	setup.Family = family
	if setup.Runs == 0 {
		setup.Runs = 1
	}
	p, err := Prepare(t.Context(), setup, machine)
	if err != nil {
		t.Fatal(err)
	}
	return trial{Prepared: p, machine: machine}
}

// open makes the executor of a trial in a run directory; both are closed at the end of the test at
// the latest.
func (tr trial) open(t testing.TB, path string) (*experiment.Directory, *Executor) {
	t.Helper()
	dir, err := experiment.OpenDirectory(path, tr.Plan, nil)
	if err != nil {
		t.Fatal(err)
	}
	work, err := WorkDir(path)
	if err != nil {
		t.Fatal(err)
	}
	executor, err := New(t.Context(), Config{
		Prepared:  tr.Prepared,
		Machine:   tr.machine,
		Artefacts: dir,
		Work:      work,
		Accounts:  dir.Accounts(),
		Rate:      tr.rate,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(executor.Close(), dir.Close()); err != nil {
			t.Error(err)
		}
	})
	return dir, executor
}

// execute runs a prepared experiment to its end in a fresh directory and returns its records.
func execute(t testing.TB, tr trial, concurrency int) (string, experiment.Outcome, []ledger.Record) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "r[u]n") // a pattern that does not match itself
	dir, executor := tr.open(t, path)
	outcome, err := experiment.Run(t.Context(), dir, experiment.Config{
		Executor:    executor,
		Concurrency: concurrency,
		BreakAfter:  -1,
		Attempts:    1,
		Budgets:     tr.budgets,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(executor.Close(), dir.Close()); err != nil {
		t.Fatal(err)
	}
	contents, err := ledger.ReadFile(filepath.Join(path, experiment.LedgerFile))
	if err == nil {
		err = contents.Damage(path)
	}
	if err != nil {
		t.Fatal(err)
	}
	return path, outcome, contents.Records
}

func TestTheBuiltInAgentSolvesATask(t *testing.T) {
	url := serveScript(t, solves)
	p := prepared(t, answerFamily(t, 2),
		experiment.Setup{Arms: []experiment.Arm{{
			Name: "default", Agent: "builtin", Model: "claude-sonnet-4-5",
			ModelURL: url,
		}}, Runs: 2})
	_, executor := p.open(t, t.TempDir())
	if err := executor.Probe(t.Context(), noProbes); err != nil {
		t.Fatal(err)
	}
	path, outcome, records := execute(t, p, 2)
	if outcome.Status != experiment.Complete || outcome.Progress.Passed != 4 {
		t.Fatalf("%+v %+v", outcome, records)
	}
	for _, r := range records {
		switch {
		case r.Verdict != ledger.Pass || r.Grade.Verdict != ledger.Pass:
			t.Errorf("%s: %s %s", r.Key(), r.Verdict, r.ErrorMessage)
		case r.Submission != "The answer is written." || r.Turns != 2 || r.CostUSD == nil || *r.CostUSD <= 0:
			t.Errorf("%+v", r)
		case r.Digests.Base == "" || r.Digests.Final == "" || r.Digests.Visible == "" || r.Digests.Hidden == "" ||
			r.Isolation == "":
			t.Errorf("digests %+v, isolation %q", r.Digests, r.Isolation)
		case filepath.IsAbs(r.AgentTracePath) || filepath.IsAbs(r.DiffPath):
			t.Errorf("absolute paths: %s %s", r.AgentTracePath, r.DiffPath)
		}
		diff, err := os.ReadFile(filepath.Join(path, r.DiffPath))
		if err != nil || !strings.Contains(string(diff), "+42") {
			t.Errorf("diff %q, %v", diff, err)
		}
		if content, err := os.ReadFile(filepath.Join(path, r.RunDir, FinalDir, "answer.txt")); err != nil ||
			string(content) != "42\n" {
			t.Errorf("final directory: %q %v", content, err)
		}
	}
	work, err := WorkDir(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(work); !os.IsNotExist(err) {
		t.Errorf("%s is left over", work)
	}
}

// Prepared is plain data: what was written by one process is run by another.
func TestAPreparedExperimentTravelsAsJSON(t *testing.T) {
	arms := []experiment.Arm{{
		Name: "default", Agent: "builtin", Model: "claude-sonnet-4-5",
		ModelURL: serveScript(t, solves), Env: map[string]string{"LEVEL": "7"},
	}}
	tr := prepared(t, oneTask(t, nil), experiment.Setup{Arms: arms, AgentTimeout: 30 * time.Minute})
	content, err := json.Marshal(tr.Prepared)
	if err != nil {
		t.Fatal(err)
	}
	var read experiment.Prepared
	if err := json.Unmarshal(content, &read); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(tr.Prepared, &read, cmpopts.EquateEmpty()); diff != "" {
		t.Error(diff)
	}
	_, outcome, records := execute(t, trial{Prepared: &read, machine: testMachine()}, 1)
	if outcome.Status != experiment.Complete || records[0].Verdict != ledger.Pass {
		t.Errorf("%+v %+v", outcome, records)
	}
	read.Plan.Arms[0].AgentVersion = "of another machine"
	_, err = New(t.Context(), Config{Prepared: &read, Machine: testMachine(), Work: t.TempDir()})
	if err == nil || !strings.Contains(err.Error(), "of another machine") {
		t.Errorf("another version of the agent: %v", err)
	}
}
