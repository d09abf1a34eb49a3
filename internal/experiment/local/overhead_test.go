package local

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/agent/builtin"
	"github.com/fit-eval/fit/internal/experiment"
	"github.com/fit-eval/fit/internal/harness"
	"github.com/fit-eval/fit/internal/sandbox"
	"github.com/fit-eval/fit/internal/testenv"
	"github.com/fit-eval/fit/redact"
	"github.com/fit-eval/fit/trace"
)

// bareCell makes a directory, runs the agent in it and the grader on it, and nothing else: what
// somebody would write in an afternoon.
func bareCell(t testing.TB, hook, url string) {
	t.Helper()
	root := t.TempDir()
	dir, home := filepath.Join(root, "work"), filepath.Join(root, "home")
	for _, d := range []string{dir, home} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Error(err)
			return
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "README.md"), []byte("The answer goes into answer.txt.\n"),
		0o600); err != nil {
		t.Error(err)
		return
	}
	writer, err := trace.Open(filepath.Join(root, "trace.ndjson"), trace.Config{Redactor: redact.New(redact.Config{})})
	if err != nil {
		t.Error(err)
		return
	}
	environ := []string{"PATH=" + os.Getenv("PATH")}
	isolation := sandbox.Isolation{
		Kind: sandbox.IsolationBwrap, Writable: []string{dir, home},
		ReadOnly: []string{filepath.Dir(hook)}, Network: true,
	}
	_, err = harness.Run(context.Background(), harness.RunConfig{
		Agent: builtin.New(), Task: "Write the answer into answer.txt.", Trace: writer,
		Session: agent.Config{
			Dir: dir, Home: home, Environ: environ, Model: "claude-sonnet-4-5", ModelURL: url,
			MaxTurns: 50, Spawner: sandbox.NewSpawner(), Isolation: isolation,
		},
	})
	if err != nil {
		t.Error(err)
	}
	if err := writer.Close(); err != nil {
		t.Error(err)
	}
	rows, err := os.Create(filepath.Join(root, "rows"))
	if err != nil {
		t.Error(err)
		return
	}
	defer rows.Close()
	result, err := sandbox.NewSpawner().Spawn(context.Background(), sandbox.SpawnSpec{
		Argv: []string{hook}, Dir: dir, Env: append(environ, "AGENT_CWD="+dir), ExtraFiles: []*os.File{rows},
		Isolation: isolation, Timeout: time.Minute,
	}, io.Discard, io.Discard)
	if err != nil || result.ExitCode != 0 {
		t.Errorf("%+v %v", result, err)
	}
}

// TestOverhead compares the whole engine with a bare loop: same agent, same grader, same sandbox,
// eight at a time. Run it with FIT_BENCH=1.
func TestOverhead(t *testing.T) {
	testenv.Measurement(t, "bench")
	const concurrency, tasks, runs = 8, 20, 5
	url := serveScript(t, solves)
	family := answerFamily(t, tasks)
	bareCell(t, family.Tasks[0].Hooks.Invariants, url) // warm up
	bare, engine := time.Duration(0), time.Duration(0)
	for range 3 { // in turns, so that both meet the same weather
		began := time.Now()
		slots := make(chan struct{}, concurrency)
		var group sync.WaitGroup
		for i := range tasks * runs {
			slots <- struct{}{}
			group.Go(func() {
				bareCell(t, family.Tasks[i%tasks].Hooks.Invariants, url)
				<-slots
			})
		}
		group.Wait()
		bare += time.Since(began)

		p := prepared(t, family, experiment.Setup{Arms: []experiment.Arm{{
			Name: "default", Agent: "builtin", Model: "claude-sonnet-4-5",
			ModelURL: url, MaxTurns: 50,
		}}, Runs: runs})
		began = time.Now()
		_, outcome, _ := execute(t, p, concurrency)
		engine += time.Since(began)
		if outcome.Progress.Passed != tasks*runs {
			t.Fatalf("%+v", outcome)
		}
	}
	cells := time.Duration(3 * tasks * runs)
	more := (engine - bare) / cells
	t.Logf("bare loop %s per cell, engine %s per cell, %s more, at concurrency %d on %d cores", bare/cells,
		engine/cells, more, concurrency, runtime.NumCPU())
	if more > 50*time.Millisecond {
		t.Errorf("the engine costs %s more per cell, over 50 ms", more)
	}
}
