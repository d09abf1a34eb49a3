package local

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/fit-eval/fit/internal/experiment"
	"github.com/fit-eval/fit/internal/model/scripted"
	"github.com/fit-eval/fit/internal/sandbox"
	"github.com/fit-eval/fit/internal/testenv"
	"github.com/fit-eval/fit/ledger"
)

// A clock that is set while an attempt runs changes nothing about the attempt: neither its time
// limits, nor its durations, nor whether it counts.
func TestDurationsDoNotFollowAClockThatIsSet(t *testing.T) {
	for name, hours := range map[string]func(asked int64) int64{
		"back at every look":     func(asked int64) int64 { return -asked },
		"forward at every look":  func(asked int64) int64 { return asked },
		"forward in the middle":  func(asked int64) int64 { return min(1, asked/3) },
		"back in the middle":     func(asked int64) int64 { return -min(1, asked/3) },
		"to the past and return": func(asked int64) int64 { return -(asked % 2) },
	} {
		t.Run(name, func(t *testing.T) {
			machine := testMachine()
			var asked atomic.Int64
			machine.Now = func() time.Time { return time.Now().Add(time.Duration(hours(asked.Add(1))) * time.Hour) }
			tr := preparedOn(t, machine, oneTask(t, nil), experiment.Setup{
				AgentTimeout: 30 * time.Minute,
				Arms: []experiment.Arm{{
					Name:  "default",
					Agent: "builtin", Model: "claude-sonnet-4-5", ModelURL: serveScript(t, solves),
				}},
			})
			_, outcome, records := execute(t, tr, 1)
			if outcome.Status != experiment.Complete || len(records) != 1 || records[0].Verdict != ledger.Pass {
				t.Fatalf("%+v %+v", outcome, records)
			}
			r := records[0]
			if r.DurationMs < 0 || r.DurationMs > 120_000 || r.EndMs-r.StartMs != r.DurationMs || len(r.Invalid) > 0 {
				t.Errorf("from %d to %d, %d ms, %v", r.StartMs, r.EndMs, r.DurationMs, r.Invalid)
			}
			if asked.Load() < 3 {
				t.Errorf("the clock was looked at %d times only", asked.Load())
			}
		})
	}
}

// What a machine has run out of is the cause of an error, in whatever phase it shows.
func TestAnExhaustedMachineIsNamed(t *testing.T) {
	for _, cause := range []error{
		syscall.ENOSPC, syscall.EDQUOT, syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.EIO,
		&os.PathError{Op: "fork/exec", Path: "sh", Err: syscall.EAGAIN},
	} {
		for _, class := range []string{ledger.ErrorSetup, ledger.ErrorGrader, ledger.ErrorInternal} {
			a := &attempt{}
			a.fail(t.Context(), class, fmt.Errorf("copy the working directory: %w", cause))
			if a.record.ErrorClass != ledger.ErrorResources {
				t.Errorf("%s, %v: %s", class, cause, a.record.ErrorClass)
			}
		}
	}
	a := &attempt{}
	a.fail(t.Context(), ledger.ErrorGrader, &os.PathError{Op: "read", Path: "x", Err: syscall.EAGAIN})
	if a.record.ErrorClass != ledger.ErrorGrader {
		t.Errorf("a read that would wait: %s", a.record.ErrorClass)
	}
}

func TestFreeSpaceIsLookedAtBeforeACell(t *testing.T) {
	tr := prepared(t, oneTask(t, nil), experiment.Setup{Arms: []experiment.Arm{{
		Name: "default", Agent: "builtin",
		Model: "claude-sonnet-4-5", ModelURL: serveScript(t, solves),
	}}})
	dir, executor := tr.open(t, t.TempDir())
	executor.minFree = 1 << 62
	outcome, err := experiment.Run(t.Context(), dir, experiment.Config{Executor: executor})
	if err != nil {
		t.Fatal(err)
	}
	if outcome.Status != experiment.Broken || !strings.Contains(outcome.Reason, "low disk space") {
		t.Errorf("%+v", outcome)
	}
}

// breakableBwrap puts a bubblewrap before the real one that fails while the returned file exists.
func breakableBwrap(t *testing.T) string {
	t.Helper()
	if found := sandbox.DetectBwrap(t.Context()); !found.Bwrap.OK {
		testenv.Missing(t, "isolation with bubblewrap: %s", found.Bwrap.Detail)
	}
	real, err := exec.LookPath("bwrap")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	broken := filepath.Join(dir, "broken")
	script := "#!/bin/sh\n[ -e " + broken + " ] && { [ -s " + broken + " ] && rm " + broken +
		"; echo 'bwrap: No permissions to create a new namespace' >&2; exit 1; }\n" +
		"exec " + real + " \"$@\"\n"
	if err := os.WriteFile(filepath.Join(dir, "bwrap"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	return broken
}

// whileAsked serves a script and does something before the request with a number is answered.
func whileAsked(t *testing.T, script string, do map[int32]func()) string {
	t.Helper()
	parsed, err := scripted.Parse([]byte(script))
	if err != nil {
		t.Fatal(err)
	}
	model := scripted.NewServer(map[string]*scripted.Script{"": parsed}, scripted.Options{})
	var requests atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if act := do[requests.Add(1)]; act != nil {
			act()
		}
		model.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// A sandbox that breaks while an agent works is no result for its model: the attempt is missing
// data, even if the sandbox works again when it is graded.
func TestASandboxThatBreaksUnderTheAgentIsMissingData(t *testing.T) {
	broken := breakableBwrap(t)
	touch := func() {
		if err := os.WriteFile(broken, nil, 0o600); err != nil {
			t.Error(err)
		}
	}
	mend := func() { _ = os.Remove(broken) } // it is not there where the agent was ended
	url := whileAsked(t, `{"turns":[{"calls":[{"bash":"true"}]},{"calls":[{"bash":"echo 42 > answer.txt"}]},{"text":"done"}]}`,
		map[int32]func(){2: touch, 3: mend})
	tr := prepared(t, oneTask(t, nil), experiment.Setup{
		Isolation: sandbox.IsolationBwrap,
		Arms:      []experiment.Arm{{Name: "default", Agent: "builtin", Model: "claude-sonnet-4-5", ModelURL: url}},
	})
	_, _, records := execute(t, tr, 1)
	if r := records[0]; r.Verdict != ledger.Error || r.ErrorClass != ledger.ErrorSandbox {
		t.Errorf("%s %s: %s", r.Verdict, r.ErrorClass, r.ErrorMessage)
	}
}

// A sandbox that fails to start once is no result for the model either, whoever asked for it: the
// agent that works, or one of a team.
func TestASandboxThatFailsOnceUnderTheAgentIsMissingData(t *testing.T) {
	broken := breakableBwrap(t)
	once := func() {
		if err := os.WriteFile(broken, []byte("once"), 0o600); err != nil {
			t.Error(err)
		}
	}
	work := `{"calls":[{"bash":"true"}]},{"calls":[{"bash":"echo 41 > answer.txt"}]},{"text":"done"}`
	for name, test := range map[string]struct {
		arm experiment.Arm
		url string
	}{
		"alone": {experiment.Arm{}, whileAsked(t, `{"turns":[`+work+`]}`, map[int32]func(){2: once})},
		"with a lead": {
			experiment.Arm{Lead: "builtin", LeadModel: "claude-opus-4-5"},
			whileAsked(t, `{"turns":[{"calls":[{"bash":"true"}]},{"calls":[{"bash":"true"}]},`+work+`]}`,
				map[int32]func(){2: once}),
		},
	} {
		t.Run(name, func(t *testing.T) {
			arm := test.arm
			arm.Name, arm.Agent, arm.Model, arm.ModelURL = "default", "builtin", "claude-sonnet-4-5", test.url
			tr := prepared(t, oneTask(t, nil), experiment.Setup{
				Isolation: sandbox.IsolationBwrap, Arms: []experiment.Arm{arm},
			})
			_, _, records := execute(t, tr, 1)
			if r := records[0]; r.Verdict != ledger.Error || r.ErrorClass != ledger.ErrorSandbox {
				t.Errorf("%s %s: %s", r.Verdict, r.ErrorClass, r.ErrorMessage)
			}
		})
	}
}

// And one that breaks when the agent is done is nobody's fail.
func TestASandboxThatBreaksBeforeGradingIsMissingData(t *testing.T) {
	broken := breakableBwrap(t)
	fail := func() {
		if err := os.WriteFile(broken, nil, 0o600); err != nil {
			t.Error(err)
		}
	}
	url := whileAsked(t, `{"turns":[{"calls":[{"bash":"echo 42 > answer.txt"}]},{"text":"done"}]}`,
		map[int32]func(){4: fail})
	tr := prepared(t, oneTask(t, nil), experiment.Setup{
		Isolation: sandbox.IsolationBwrap, Runs: 3,
		Arms: []experiment.Arm{{Name: "default", Agent: "builtin", Model: "claude-sonnet-4-5", ModelURL: url}},
	})
	_, outcome, records := execute(t, tr, 1)
	if records[0].Verdict != ledger.Pass {
		t.Errorf("while it worked: %s %s", records[0].Verdict, records[0].ErrorMessage)
	}
	for _, r := range records[1:] {
		if r.Verdict != ledger.Error {
			t.Errorf("%s: %s %v", r.Key(), r.Verdict, r.Grade)
		}
	}
	if outcome.Status != experiment.Incomplete {
		t.Errorf("%+v", outcome)
	}
}

// An agent that makes its own sandbox impossible, by removing what it works in, has only itself to
// blame.
func TestAnAgentCannotBreakTheSandboxToBeMissing(t *testing.T) {
	if found := sandbox.DetectBwrap(t.Context()); !found.Bwrap.OK {
		testenv.Missing(t, "isolation with bubblewrap: %s", found.Bwrap.Detail)
	}
	script := `{"turns":[{"calls":[{"bash":"rm -rf \"$HOME\" \"$PWD\" \"$TMPDIR\" 2>/dev/null; true"}]},{"calls":[{"bash":"echo 42 > answer.txt"}]},{"text":"done"}]}`
	r, _ := attemptOf(t, oneTask(t, nil), script, experiment.Setup{Isolation: sandbox.IsolationBwrap})
	if r.Verdict == ledger.Error {
		t.Errorf("%s: %s", r.ErrorClass, r.ErrorMessage)
	}
}
