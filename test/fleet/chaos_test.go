package fleet

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fit-eval/fit/internal/experiment"
	"github.com/fit-eval/fit/internal/experiment/local"
	"github.com/fit-eval/fit/internal/testenv"
	"github.com/fit-eval/fit/ledger"
)

// script takes its time, so that kills meet agents at work. Whether it solves the task is drawn
// from the seed of the cell.
const script = `{"turns":[
	{"delay_ms":100,"calls":[{"bash":"echo begin >> log.txt"}]},
	{"delay_ms":100,"choices":[
		{"weight":2,"calls":[{"write":"answer.txt","content":"42\n"}]},
		{"weight":1,"calls":[{"write":"answer.txt","content":"41\n"}]}]},
	{"text":"Done."}]}`

const hidden = `echo 1..1
if [ "$(cat answer.txt)" = 42 ]; then echo "ok 1 - answer"; else echo "not ok 1 - answer"; fi
`

// size is how much of everything there is.
type size struct {
	tasks, runs int
	kills       int           // of workers and of the coordinator
	cut         time.Duration // of a link
	lease       time.Duration
}

func chaosSize() size {
	if os.Getenv("FIT_SOAK") != "" {
		return size{tasks: 15, runs: 10, kills: 30, cut: 30 * time.Second, lease: 5 * time.Second}
	}
	return size{tasks: 5, runs: 3, kills: 4, cut: 2 * time.Second, lease: 6 * time.Second}
}

// family writes the tasks and the script of the model.
func (w *world) family(tasks int) {
	w.t.Helper()
	files := map[string]string{
		"script.json":        script,
		"family/family.yaml": "tests: {language: other, files: [\"*.tap.sh\"], command: [sh, \"{file}\"], parser: tap}\n",
	}
	for i := range tasks {
		files[fmt.Sprintf("family/tasks/t%02d/agent.task.md", i)] = "Write the answer to answer.txt.\n"
		files[fmt.Sprintf("family/tasks/t%02d/tests/a.tap.sh", i)] = hidden
	}
	for name, content := range files {
		path := filepath.Join(w.dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			w.t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
			w.t.Fatal(err)
		}
	}
}

// benchmark starts the experiment; the same output is the same experiment.
func (w *world) benchmark(m *machine, s size, output string, more ...string) *process {
	w.t.Helper()
	url := fmt.Sprintf("http://127.0.0.1:%s/c/{cell}/seed/{seed}", w.model)
	arm := "agent:builtin,model:claude-sonnet-4-5,modelUrl:" + url
	return w.start(m, nil, append([]string{
		"benchmark", "run", "--family", "family", "--runs", fmt.Sprint(s.runs), "--arm", "a=" + arm,
		"--arm", "b=" + arm, "--output", output, "--no-probe", "--format", "json", "--seed", "11",
		"--allow", "same",
	}, more...)...)
}

// counted returns the record that counts for every cell of a run directory.
func (w *world) counted(output string) (map[ledger.Cell]ledger.Record, ledger.Contents) {
	w.t.Helper()
	path := filepath.Join(w.dir, output)
	contents, err := ledger.ReadFile(filepath.Join(path, experiment.LedgerFile))
	if err != nil {
		w.t.Fatal(err)
	}
	if len(contents.Problems) > 0 {
		w.t.Errorf("the ledger of %s: %+v", output, contents.Problems)
	}
	records := map[ledger.Cell]ledger.Record{}
	for _, r := range contents.Records {
		if _, twice := records[r.Cell()]; r.Final && twice {
			w.t.Errorf("%s counts twice", r.Key())
		} else if r.Final {
			records[r.Cell()] = r
		}
	}
	_, problems := local.CheckArtefacts(path, contents.Records)
	for _, problem := range problems {
		w.t.Error(problem)
	}
	return records, *contents
}

// Whatever dies, is cut off, runs full or has another clock or version: every cell ends with one
// record that counts, and the verdicts are those of a local run.
func TestAFleetInTrouble(t *testing.T) {
	s := chaosSize()
	w := newWorld(t)
	w.family(s.tasks)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d, networks of their own: %v", seed, w.private)
	random := rand.New(rand.NewPCG(seed, 0))

	machines := []*machine{w.machine(1, 0), w.machine(2, 0), w.machine(3, 280), w.machine(4, 0)}
	began := time.Now()
	quiet := w.benchmark(machines[0], s, "local", "--concurrency", "4")
	hubPort := testenv.FreePort(t)
	hub := w.serveHub(hubPort, s.lease)
	<-quiet.over
	clocks := []string{envClock + "=0s", envClock + "=1h", envClock + "=-1h"}
	workers := make([]*process, 3)
	for i := range workers {
		workers[i] = w.work(machines[i], clocks[i])
	}
	w.work(machines[3], envVersion+"=9.9.9")

	coordinate := func() *process { return w.benchmark(nil, s, "fleet", "--fleet", w.url) }
	coordinator := coordinate()
	cells := 2 * s.tasks * s.runs
	t.Logf("local run and start took %s", time.Since(began))
	done := func() int { return strings.Count(readFile(w, "fleet", experiment.LedgerFile), "\n") }
	await := func(n int) {
		eventually(t, fmt.Sprintf("%d records", n), func() bool {
			select {
			case <-coordinator.over:
				return true
			default:
				return done() >= n
			}
		})
	}
	var healing sync.WaitGroup
	var healed atomic.Bool
	await(1)
	for i := range s.kills {
		victim := random.IntN(5)
		if victim == 0 && !healed.Load() { // it could not join again
			victim = 1
		}
		switch {
		case i == 0 || i > 1 && victim == 4:
			t.Logf("%d records: kill the coordinator", done())
			coordinator.kill()
			coordinator = coordinate()
		case i == 1:
			w.cut(machines[0], workers[0], true)
			empty := w.fillDisk(machines[2].tmp)
			healing.Go(func() {
				time.Sleep(s.cut)
				w.cut(machines[0], workers[0], false)
				w.reaches(machines[0], hubPort)
				empty()
				healed.Store(true)
			})
		case victim == 3:
			t.Logf("%d records: kill the hub", done())
			hub.kill()
			hub = w.serveHub(hubPort, s.lease)
		default:
			t.Logf("%d records: kill worker %d", done(), victim+1)
			workers[victim].kill()
			workers[victim] = w.work(machines[victim], clocks[victim])
		}
		before := done()
		await(min(before+1+random.IntN(max(1, cells/s.kills)), cells-1))
	}
	<-coordinator.over
	healing.Wait()
	t.Logf("everything took %s", time.Since(began))
	if code := coordinator.cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("the coordinator ended with %d", code)
	}
	w.compare(cells, began)
}

// compare holds the fleet's records against those of the local run.
func (w *world) compare(cells int, began time.Time) {
	w.t.Helper()
	want, _ := w.counted("local")
	got, contents := w.counted("fleet")
	if len(want) != cells || len(got) != cells {
		w.t.Errorf("%d cells count locally and %d on the fleet, want %d", len(want), len(got), cells)
	}
	byWorker, verdicts := map[string]int{}, map[string]int{}
	for cell, r := range got {
		byWorker[r.Worker]++
		verdicts[r.Verdict]++
		if r.Verdict != want[cell].Verdict || r.Verdict == ledger.Error {
			w.t.Errorf("%s: %s (%s), and %s locally", r.Key(), r.Verdict, r.ErrorMessage, want[cell].Verdict)
		}
		if start := time.UnixMilli(r.StartMs); start.Before(began.Add(-time.Minute)) || start.After(time.Now()) {
			w.t.Errorf("%s on %s began at %s", r.Key(), r.Worker, start)
		}
	}
	w.t.Logf("records by worker %v, verdicts %v, %d records in all", byWorker, verdicts, len(contents.Records))
	if byWorker["w4"] > 0 || len(byWorker) < 2 || len(verdicts) != 2 {
		w.t.Errorf("records by worker %v, verdicts %v", byWorker, verdicts)
	}
}

// readFile returns what a file of the test holds; empty: nothing.
func readFile(w *world, path ...string) string {
	content, _ := os.ReadFile(filepath.Join(append([]string{w.dir}, path...)...))
	return string(content)
}
