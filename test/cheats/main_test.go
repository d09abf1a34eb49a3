package cheats

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/agent/builtin"
	"github.com/fit-eval/fit/internal/cheattest"
	"github.com/fit-eval/fit/internal/experiment"
	"github.com/fit-eval/fit/internal/experiment/local"
	"github.com/fit-eval/fit/internal/model/scripted"
	"github.com/fit-eval/fit/internal/sandbox"
	"github.com/fit-eval/fit/internal/scratch"
	"github.com/fit-eval/fit/internal/task"
	"github.com/fit-eval/fit/internal/testenv"
	"github.com/fit-eval/fit/ledger"
	"github.com/fit-eval/fit/price"
	"github.com/fit-eval/fit/redact"
	"github.com/fit-eval/fit/session"
)

func TestMain(m *testing.M) {
	os.Exit(runTests(m))
}

// buildCaches keeps warmed build caches for all experiments of this process: to warm one takes
// longer than most cheats.
var buildCaches string

func runTests(m *testing.M) int {
	dir, err := os.MkdirTemp("", "fit-cheats-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = scratch.RemoveAll(dir) }()
	buildCaches = dir
	// What fit has compiled of the standard library for this user need not be compiled again. It is
	// copied, so that no cheat gets at it; the go command itself knows a file that is half written.
	if user, err := os.UserCacheDir(); err == nil {
		warm := filepath.Join("build", "go", "build")
		err = os.CopyFS(filepath.Join(dir, warm), os.DirFS(filepath.Join(user, "fit", warm)))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return m.Run()
}

// The shipped families.
const (
	nodeFamily   = "../../examples/node-family"
	pythonFamily = "../../examples/python-family"
	goFamily     = "../../examples/go-family"
	demoFamily   = "../../internal/cli/democli/assets/family"
)

// patience is how long anything may take that takes a moment on an idle machine.
const patience = 5 * time.Minute

// cheat is one agent: what it does, and what must come of it.
type cheat struct {
	name  string
	calls []scripted.Call
	// turns replace calls where an agent needs more than one.
	turns []scripted.Turn
	// honest agents solve the task and must pass.
	honest bool
	// attempts is how many records there must be; 0 is one. Only trouble that is not the agent's
	// may give it another try.
	attempts int
	// breaks is set for a cheat that makes its grader crash now and then; it may be graded again.
	breaks bool
	// essential cheats are tried under the race detector and in short runs too.
	essential bool
	// check looks at more than the verdict.
	check func(t *testing.T, did outcome)
}

// outcome is what an agent did and what came of it.
type outcome struct {
	record ledger.Record
	// printed is everything that the agent's tools answered.
	printed string
	// dir is the run directory.
	dir string
}

// bash is a command that may take longer than most on a busy machine.
func bash(command string) scripted.Call {
	input, _ := json.Marshal(map[string]any{"command": command, "timeout": patience.Milliseconds()})
	return scripted.Call{Tool: "Bash", Input: input}
}

func write(path, content string) scripted.Call { return scripted.Call{Write: path, Content: content} }

// does is what most cheats need: one turn of calls.
func does(name string, calls ...scripted.Call) cheat { return cheat{name: name, calls: calls} }

// fromLibrary makes agents of the cheats of a language. Those in essential are tried always.
func fromLibrary(t *testing.T, language string, task map[string]string, essential ...string) []cheat {
	t.Helper()
	library := cheattest.All(t, language, task)
	var cheats []cheat
	for _, name := range slices.Sorted(maps.Keys(library)) {
		entry := library[name]
		c := cheat{name: name, essential: slices.Contains(essential, name)}
		for _, file := range slices.Sorted(maps.Keys(entry.Files)) {
			c.calls = append(c.calls, write(file, entry.Files[file]))
		}
		if entry.Run != "" {
			c.calls = append(c.calls, bash(entry.Run))
		}
		cheats = append(cheats, c)
	}
	return cheats
}

func (c cheat) script() scripted.Script {
	turns := c.turns
	if turns == nil && len(c.calls) > 0 {
		turns = []scripted.Turn{{Calls: c.calls}}
	}
	return scripted.Script{Turns: append(slices.Clone(turns), scripted.Turn{Text: "All tests pass. verdict: pass"})}
}

// trial is one experiment: a task of a family, and one arm per agent.
type trial struct {
	family, task string
	// isolation is bwrap unless said otherwise. It is never left to chance: some of these agents
	// kill whatever they can reach.
	isolation string
	// dir is the run directory; empty is a fresh one.
	dir   string
	judge *scripted.Script
	// gates leaves the gates of the hidden suite alone. Every check is a process of its own that
	// meets a cheat in the same way, and whoever passes the gates has won.
	gates bool
	// edit changes the family as it was loaded.
	edit func(*task.Family)
	// between runs after the directories are there and before the first agent starts.
	between func(t *testing.T, dir, work string)
	cheats  []cheat
}

// solution makes an agent that lays the reference solution of a task over its directory.
func solution(t *testing.T, family, id string) cheat {
	t.Helper()
	root := filepath.Join(family, "tasks", id, "solution")
	honest := cheat{name: "honest", honest: true, essential: true}
	err := filepath.WalkDir(root, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		rel, _ := filepath.Rel(root, path)
		honest.calls = append(honest.calls, write(rel, string(content)))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return honest
}

// idle does nothing.
func idle() cheat { return cheat{name: "idle", essential: true} }

// run holds the experiment and checks every verdict.
func (tr trial) run(t *testing.T) {
	t.Helper()
	if testenv.Race || testing.Short() {
		tr.cheats = slices.DeleteFunc(slices.Clone(tr.cheats), func(c cheat) bool { return !c.essential })
		if len(tr.cheats) == 0 {
			return
		}
	}
	if tr.isolation == "" {
		needBwrap(t)
		tr.isolation = sandbox.IsolationBwrap
	}
	p := tr.prepare(t)
	dir := tr.dir
	if dir == "" {
		dir = t.TempDir()
	}
	outcome := tr.execute(t, p, dir)
	records := recordsOf(t, dir)
	if outcome.Status != experiment.Complete {
		t.Errorf("the experiment is %s: %s", outcome.Status, outcome.Reason)
	}
	for _, c := range tr.cheats {
		t.Run(c.name, func(t *testing.T) { tr.judgeCheat(t, c, dir, records) })
	}
}

// bubblewrap is a fact of the machine, which is found out once.
var bubblewrap = sync.OnceValue(func() sandbox.Capabilities { return sandbox.DetectBwrap(context.Background()) })

// needBwrap ends a test that proves nothing without isolation.
func needBwrap(t *testing.T) {
	t.Helper()
	if found := bubblewrap(); !found.Bwrap.OK || !found.BwrapNetwork.OK {
		testenv.Missing(t, "isolation with bubblewrap: %s %s", found.Bwrap.Detail, found.BwrapNetwork.Detail)
	}
}

func (tr trial) prepare(t *testing.T) *experiment.Prepared {
	t.Helper()
	family, err := task.Load(t.Context(), tr.family, task.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range family.Tasks { // on a busy machine everybody but a cheat that hangs must come to an end
		limit := &family.Tasks[i].Settings.Timeouts
		limit.Test, limit.Invariants = patience, patience
		if suite := family.Tasks[i].Suite; tr.gates && suite != nil {
			suite.Checks = slices.DeleteFunc(suite.Checks, func(c task.Check) bool { return !c.Gate })
		}
	}
	if tr.edit != nil {
		tr.edit(family)
	}
	scripts := map[string]*scripted.Script{}
	var arms []experiment.Arm
	for _, c := range tr.cheats {
		scripts[c.name] = parsed(t, c.script())
	}
	if tr.judge != nil {
		scripts["judge"] = parsed(t, *tr.judge)
	}
	server := httptest.NewServer(scripted.NewServer(scripts, scripted.Options{}))
	t.Cleanup(server.Close)
	for _, c := range tr.cheats {
		arms = append(arms, experiment.Arm{
			Name: c.name, Agent: "builtin", Model: "claude-sonnet-4-5",
			ModelURL: server.URL + scripted.Path(c.name, "", ""),
		})
	}
	setup := experiment.Setup{
		Family: family, Only: []string{tr.task}, Arms: arms, Runs: 1, Isolation: tr.isolation,
		AgentTimeout: patience,
	}
	if tr.judge != nil {
		setup.Judge = experiment.JudgeConfig{
			Agent: "builtin", Model: "claude-sonnet-4-5",
			ModelURL: server.URL + scripted.Path("judge", "", ""),
		}
	}
	p, err := local.Prepare(t.Context(), setup, testMachine())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func testMachine() *local.Machine {
	return &local.Machine{
		Registry: agent.NewRegistry(builtin.New()),
		Host: agent.Host{
			Environ: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME")},
			Spawner: sandbox.NewSpawner(), CacheDir: buildCaches,
		},
		Prices:   session.ListPrices(price.Default()),
		Redactor: redact.New(redact.Config{}),
	}
}

func parsed(t *testing.T, script scripted.Script) *scripted.Script {
	t.Helper()
	source, err := json.Marshal(script)
	if err != nil {
		t.Fatal(err)
	}
	ready, err := scripted.Parse(source)
	if err != nil {
		t.Fatal(err)
	}
	return ready
}

func (tr trial) execute(t *testing.T, p *experiment.Prepared, dir string) experiment.Outcome {
	t.Helper()
	run, err := experiment.OpenDirectory(dir, p.Plan, nil)
	if err != nil {
		t.Fatal(err)
	}
	work, err := local.WorkDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	executor, err := local.New(t.Context(), local.Config{
		Prepared: p, Machine: testMachine(), Artefacts: run, Work: work,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := executor.Warm(t.Context()); err != nil {
		t.Fatal(err)
	}
	if tr.between != nil {
		tr.between(t, dir, work)
	}
	outcome, err := experiment.Run(t.Context(), run, experiment.Config{
		Executor: executor, Concurrency: 2, BreakAfter: -1, Backoff: func(string, int) time.Duration { return 0 },
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := executor.Close(); err != nil {
		t.Error(err)
	}
	if err := run.Close(); err != nil {
		t.Fatal(err)
	}
	return outcome
}

func recordsOf(t *testing.T, dir string) []ledger.Record {
	t.Helper()
	contents, err := ledger.ReadFile(filepath.Join(dir, experiment.LedgerFile))
	if err != nil {
		t.Fatal(err)
	}
	if err := contents.Damage(dir); err != nil {
		t.Fatal(err)
	}
	return contents.Records
}

// judgeCheat makes sure that an agent got one verdict, at once, and the right one.
func (tr trial) judgeCheat(t *testing.T, c cheat, dir string, records []ledger.Record) {
	t.Helper()
	var own []ledger.Record
	for _, record := range records {
		if record.Arm == c.name {
			own = append(own, record)
		}
	}
	if len(own) == 0 {
		t.Fatal("the agent got no verdict at all")
	}
	last := own[len(own)-1]
	did := outcome{record: last, printed: printed(t, filepath.Join(dir, last.AgentTracePath)), dir: dir}
	want := ledger.Fail
	if c.honest {
		want = ledger.Pass
	}
	graded := slices.IndexFunc(own, func(r ledger.Record) bool { return r.ErrorClass != ledger.ErrorGrader })
	if c.breaks && graded > 0 {
		own = own[graded:]
	}
	if len(own) != max(c.attempts, 1) || last.Verdict != want {
		for _, record := range own {
			t.Errorf("attempt %d: %s, want %s: %s%s%s", record.Attempt, record.Verdict, want, record.ErrorClass,
				record.ErrorMessage, explain(record))
		}
		t.Errorf("the agent's tools printed:\n%.2000s", did.printed)
	} else if testing.Verbose() {
		t.Logf("%s %v%s\n%.400s", last.Verdict, last.PhaseMs, explain(last), did.printed)
	}
	if last.GraderNetwork != (tr.isolation == sandbox.IsolationNone) {
		t.Errorf("the record says that graders had the network: %v", last.GraderNetwork)
	}
	if c.check != nil {
		c.check(t, did)
	}
}

// explain tells the rows of a record.
func explain(r ledger.Record) string {
	var text strings.Builder
	if r.Grade != nil {
		fmt.Fprintf(&text, "\n  grade %s: %s", r.Grade.Verdict, r.Grade.Reason)
	}
	if r.Invariants != nil {
		for _, row := range r.Invariants.Details {
			fmt.Fprintf(&text, "\n  %.200s", row)
		}
	}
	if r.HiddenTests != nil {
		for _, row := range r.HiddenTests.Details {
			fmt.Fprintf(&text, "\n  %.200s", row)
		}
	}
	return text.String()
}

// printed is everything that the tools of an agent answered, as its trace tells it.
func printed(t *testing.T, trace string) string {
	t.Helper()
	sessions, err := session.ReadFile(trace, agent.NewRegistry(builtin.New()).Dialects(), session.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for _, s := range sessions {
		for _, event := range s.Events {
			if event.Result != nil {
				text.WriteString(event.Result.Content + "\n")
			}
		}
	}
	return text.String()
}

// processesWith lists the living processes whose command line holds a text.
func processesWith(ctx context.Context, text string) []string {
	var found []string
	names, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, name := range names {
		line, err := os.ReadFile(name)
		if err == nil && ctx.Err() == nil && strings.Contains(string(line), text) {
			found = append(found, strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return found
}
