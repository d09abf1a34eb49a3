package local

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/agent/builtin"
	"github.com/fit-eval/fit/internal/experiment"
	"github.com/fit-eval/fit/internal/task"
	"github.com/fit-eval/fit/internal/testenv"
	"github.com/fit-eval/fit/ledger"
)

// repeats says the word that it was asked to repeat, in one reply.
const repeats = `{"captures":[{"var":"word","from":"prompt","regex":"word (\\w+)"}],"turns":[{"text":"You said ${word}."}]}`

func loadDataset(t testing.TB, settings, samples string) *task.Family {
	t.Helper()
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{"family.yaml": "dataset: samples.csv\n" + settings, "samples.csv": samples})
	family, err := task.Load(t.Context(), dir, task.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return family
}

func wordSamples(n int) string {
	var samples strings.Builder
	samples.WriteString("id,word\n")
	for i := range n {
		fmt.Fprintf(&samples, "s%d,w%d\n", i, i)
	}
	return samples.String()
}

func modelMachine() *Machine {
	machine := testMachine()
	machine.Registry = agent.NewRegistry(builtin.New(), builtin.NewModel())
	return machine
}

// answerSamples has a model without tools answer samples, and returns how long it took.
func answerSamples(t testing.TB, n int, url string) time.Duration {
	t.Helper()
	family := loadDataset(t, "prompt: Repeat the word {{word}}\ngrade: [{equals: 'You said {{word}}.'}]\n",
		wordSamples(n))
	tr := preparedOn(t, modelMachine(), family, experiment.Setup{Arms: []experiment.Arm{{
		Name:     "model",
		Agent:    "model",
		Model:    "claude-sonnet-4-5",
		ModelURL: url,
	}}})
	dir, executor := tr.open(t, t.TempDir())
	began := time.Now()
	outcome, err := experiment.Run(t.Context(), dir, experiment.Config{Executor: executor, Concurrency: 4})
	if err != nil || outcome.Progress.Passed != n {
		t.Fatalf("%+v %v", outcome, err)
	}
	return time.Since(began)
}

// askBare sends the same prompts to the model, four at a time, keeps each reply in a directory of
// its own as safely as a record is kept, and returns how long it took.
func askBare(t testing.TB, n int, url string) time.Duration {
	t.Helper()
	dir := t.TempDir()
	const body = `{"model":"claude-sonnet-4-5","max_tokens":100,"messages":[{"role":"user","content":"Repeat the word w%d"}]}`
	began := time.Now()
	var group errgroup.Group
	group.SetLimit(4)
	for i := range n {
		group.Go(func() error {
			reply, err := http.Post(url+"/v1/messages", "application/json", strings.NewReader(fmt.Sprintf(body, i)))
			if err != nil {
				return err
			}
			return errors.Join(keepReply(filepath.Join(dir, strconv.Itoa(i)), reply.Body), reply.Body.Close())
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	return time.Since(began)
}

func keepReply(dir string, reply io.Reader) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	file, err := os.Create(filepath.Join(dir, "reply"))
	if err != nil {
		return err
	}
	_, err = io.Copy(file, reply)
	return errors.Join(err, file.Sync(), file.Close())
}

// TestSpeedOfSamples compares samples that are answered, recorded and graded with bare calls of the
// same model whose replies are kept, so that both depend on the disk, and loads 500 of them. Run it
// with FIT_BENCH=1.
func TestSpeedOfSamples(t *testing.T) {
	testenv.Measurement(t, "bench-dataset")
	const n, times = 500, 15
	url := serveScript(t, repeats)
	load, whole, bare := time.Hour, time.Hour, time.Hour
	for range 3 { // in turns, so that all meet the same weather
		began := time.Now()
		loadDataset(t, "prompt: Repeat the word {{word}}\ngrade: [{equals: 'You said {{word}}.'}]\n", wordSamples(n))
		load = min(load, time.Since(began))
		bare = min(bare, askBare(t, n, url))
		whole = min(whole, answerSamples(t, n, url))
	}
	t.Logf("%d samples: loaded in %s; answered %.0f a second, %.1f times as long as bare calls, on %d cores", n, load,
		n/whole.Seconds(), whole.Seconds()/bare.Seconds(), runtime.NumCPU())
	if load > 100*time.Millisecond {
		t.Errorf("%d samples were loaded in %s, over 100 ms", n, load)
	}
	if whole > times*bare {
		t.Errorf("samples take %s, over %d times the %s of bare calls", whole, times, bare)
	}
}

func TestSamplesAreAnsweredAndChecked(t *testing.T) {
	t.Parallel()
	family := loadDataset(t, `prompt: Repeat the word {{word}}
threshold: 0.5
grade:
  - equals: You said {{want}}.
  - maxToolCalls: 0
    gate: true
  - usedTool: Bash
    not: true
    gate: true
  - trace: "[?type=='assistant']"
    gate: true
  - contains: [said]
    weight: 0.5
  - command: [sh, -c, 'grep -q "You said w0" && echo "{\"test\":\"script\",\"pass\":true}" || echo "{\"test\":\"script\",\"pass\":false}"']
`, "id,word,want\na,w0,w0\nb,w1,w0\n")
	tr := preparedOn(t, modelMachine(), family, experiment.Setup{Arms: []experiment.Arm{{
		Name:     "model",
		Agent:    "model",
		Model:    "claude-sonnet-4-5",
		ModelURL: serveScript(t, repeats),
	}}})
	path, _, records := execute(t, tr, 2)
	want := map[string]string{"a": ledger.Pass, "b": ledger.Fail}
	for _, r := range records {
		if r.Verdict != want[r.TaskID] || len(r.HiddenTests.Details) != 6 {
			t.Errorf("%s: %s %s %s", r.TaskID, r.Verdict, r.ErrorMessage, r.HiddenTests.Details)
		}
		stored, err := StoredAnswer(path, &r, tr.machine.Registry.Dialects())
		if err != nil || stored.Text != r.Submission || stored.Turns != 1 {
			t.Errorf("%s: %+v %v", r.TaskID, stored, err)
		}
		for _, check := range family.Tasks[0].Sample.Checks[1:4] { // they read the packed trace
			if holds, why, err := stored.Trace(check); err != nil || holds == check.Not {
				t.Errorf("%s: %v %s %v", check.Name, holds, why, err)
			}
		}
	}
	if len(records) != 2 || *records[0].Score == *records[1].Score {
		t.Errorf("%d records", len(records))
	}
}
