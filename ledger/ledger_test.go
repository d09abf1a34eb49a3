package ledger

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/fit-eval/fit/redact"
)

func verdict(task string, run, attempt int, verdict string) Record {
	r := Record{
		TaskID: task, RunIndex: run, Attempt: attempt, Arm: "default", Verdict: verdict, Final: true,
		Grade: &Grade{Verdict: verdict, GatesPass: true, Healthy: true},
	}
	if verdict == Error {
		r.Grade, r.ErrorClass, r.Final = nil, ErrorProvider, false
	}
	return r
}

// written makes a ledger of so many records in a fresh directory and returns its path.
func written(t testing.TB, records int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "results.jsonl")
	w, err := Open(path, Config{Experiment: "e", NoSync: true}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range records {
		r := verdict(fmt.Sprintf("task-%d", i), 0, 1, Pass)
		if err := w.Append(&r); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func content(t testing.TB, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func read(t testing.TB, path string) *Contents {
	t.Helper()
	contents, err := ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return contents
}

func TestARecordComesBackAsItWasWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "results.jsonl")
	w, err := Open(path, Config{Experiment: "e"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	cost, score := 0.25, 0.5
	r := verdict("fix", 2, 1, Fail)
	r.CostUSD, r.Score, r.Submission = &cost, &score, "<done> & \"dusted\"\n"
	if err := w.Append(&r); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	contents := read(t, path)
	if diff := cmp.Diff([]Record{r}, contents.Records); diff != "" {
		t.Error(diff)
	}
	if contents.Damage(path) != nil || contents.Head != r.Hash {
		t.Errorf("problems %v, head %s, want %s", contents.Problems, contents.Head, r.Hash)
	}
}

func TestChangesAreFoundAndNamedByTheirLine(t *testing.T) {
	lines := strings.SplitAfter(content(t, written(t, 5)), "\n")[:5]
	other := strings.SplitAfter(content(t, written(t, 1)), "\n")[0]
	for name, test := range map[string]struct {
		lines []string
		kind  string
		line  int
	}{
		"changed": {slices.Replace(slices.Clone(lines), 2, 3,
			strings.Replace(lines[2], `"pass"`, `"fail"`, 1)), Changed, 3},
		"removed":          {slices.Delete(slices.Clone(lines), 1, 2), Removed, 2},
		"first removed":    {lines[1:], Removed, 1},
		"inserted":         {slices.Insert(slices.Clone(lines), 3, other), Inserted, 4},
		"inserted garbage": {slices.Insert(slices.Clone(lines), 3, "{}\n"), Garbage, 4},
		"swapped":          {[]string{lines[0], lines[2], lines[1], lines[3], lines[4]}, Removed, 2},
		"repeated":         {slices.Insert(slices.Clone(lines), 3, lines[2]), Invalid, 4},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "results.jsonl")
			if err := os.WriteFile(path, []byte(strings.Join(test.lines, "")), 0o600); err != nil {
				t.Fatal(err)
			}
			contents := read(t, path)
			var damage *Damage
			if !errors.As(contents.Damage(path), &damage) {
				t.Fatal("the ledger verifies")
			}
			if !slices.ContainsFunc(damage.Problems,
				func(p Problem) bool { return p.Kind == test.kind && p.Line == test.line }) {
				t.Errorf("want %s at line %d, got %v", test.kind, test.line, damage.Problems)
			}
			if _, err := Open(path, Config{Experiment: "e"}, nil); name != "inserted garbage" &&
				!errors.As(err, &damage) {
				t.Errorf("a writer takes it over: %v", err)
			}
		})
	}
}

func TestLinesMissingAtTheEndAreNoticed(t *testing.T) {
	path := written(t, 3)
	lines := strings.SplitAfter(content(t, path), "\n")
	if err := os.WriteFile(path, []byte(strings.Join(lines[:2], "")), 0o600); err != nil {
		t.Fatal(err)
	}
	var damage *Damage
	if !errors.As(read(t, path).Damage(path), &damage) || damage.Problems[0].Kind != Removed {
		t.Errorf("got %v, want a removal", damage)
	}
}

// A writer may die after any byte. The next one keeps every byte that is there, loses no whole
// record, and goes on.
func TestATornEndIsRecoveredWhereverItTears(t *testing.T) {
	whole := content(t, written(t, 3))
	last := strings.LastIndex(strings.TrimSuffix(whole, "\n"), "\n") + 1
	for cut := last; cut <= len(whole); cut += 7 {
		path := filepath.Join(t.TempDir(), "results.jsonl")
		if err := os.WriteFile(path, []byte(whole[:cut]), 0o600); err != nil {
			t.Fatal(err)
		}
		appendOne(t, path, "after")
		if got := content(t, path); !strings.HasPrefix(got, whole[:cut]) {
			t.Fatalf("cut at %d: bytes were lost", cut)
		}
		contents := read(t, path)
		want := 3
		if cut >= len(whole)-1 {
			want = 4
		}
		if err := contents.Damage(path); err != nil || len(contents.Records) != want {
			t.Fatalf("cut at %d: %d records, want %d, %v", cut, len(contents.Records), want, err)
		}
	}
}

func appendOne(t testing.TB, path, task string) {
	t.Helper()
	w, err := Open(path, Config{Experiment: "e", NoSync: true}, nil)
	if err != nil {
		t.Fatal(err)
	}
	r := verdict(task, 0, 1, Pass)
	if err := w.Append(&r); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// A writer announces each record before it writes it. What was never announced is not signed, and
// does not become signed by writing on.
func TestARecordThatNobodySignedIsNotSigned(t *testing.T) {
	path := filepath.Join(t.TempDir(), "results.jsonl")
	key := must(CreateKey(filepath.Join(t.TempDir(), "ledger.key")))(t)
	config := Config{Experiment: "e", NoSync: true, Key: key}
	add := func(config Config, task string) {
		t.Helper()
		w := must(Open(path, config, nil))(t)
		r := verdict(task, 0, 1, Pass)
		if err := errors.Join(w.Append(&r), w.Close()); err != nil {
			t.Fatal(err)
		}
	}
	signer := func() string {
		t.Helper()
		contents := read(t, path)
		if len(contents.Problems) > 0 {
			t.Fatal(contents.Problems)
		}
		return contents.SignedBy
	}
	add(config, "task-1")
	w := must(Open(path, config, nil))(t)
	before := content(t, notePath(path))
	for _, task := range []string{"task-2", "task-3"} {
		r := verdict(task, 0, 1, Pass)
		if err := w.Append(&r); err != nil {
			t.Fatal(err)
		}
		if signer() != key.ID() { // as if the writer were killed here
			t.Errorf("%s was announced and is not signed", task)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	whole, note := content(t, path), content(t, notePath(path))
	restore := func(ledger, note string) {
		t.Helper()
		// the key would know better what it signed, if it were not for this
		if err := errors.Join(os.WriteFile(path, []byte(ledger), 0o600), os.Remove(notePath(path)),
			os.RemoveAll(key.heads)); err != nil {
			t.Fatal(err)
		}
		if note != "" {
			if err := os.WriteFile(notePath(path), []byte(note), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, attack := range map[string]func(){
		"records that the note does not know": func() { restore(whole, before) },
		"no note":                             func() { restore(whole, "") },
		"another key": func() {
			restore(whole, "")
			var n struct {
				Head  string
				Bytes int64
			}
			if err := json.Unmarshal([]byte(note), &n); err != nil {
				t.Fatal(err)
			}
			forged := must(CreateKey(filepath.Join(t.TempDir(), "other.key")))(t)
			if err := (&Writer{path: path, cfg: Config{Key: forged}, head: n.Head, size: n.Bytes}).note(); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			attack()
			if signer() == key.ID() {
				t.Errorf("%s: it is signed", name)
			}
			add(config, "task-4")
			if signer() != "" {
				t.Errorf("%s: it is signed by who wrote on", name)
			}
		})
	}
	restore(whole, note)
	add(config, "task-4")
	if signer() != key.ID() {
		t.Error("a ledger that was left alone is not signed any more")
	}
}

// What the key remembers to have signed is signed, whatever became of the note.
func TestTheKeyKnowsWhatItSigned(t *testing.T) {
	key := must(CreateKey(filepath.Join(t.TempDir(), "ledger.key")))(t)
	path := filepath.Join(t.TempDir(), "results.jsonl")
	add := func(task string) {
		t.Helper()
		w := must(Open(path, Config{Experiment: "e", Key: key, NoSync: true}, nil))(t)
		r := verdict(task, 0, 1, Pass)
		if err := errors.Join(w.Append(&r), w.Close()); err != nil {
			t.Fatal(err)
		}
	}
	add("task-1")
	add("task-2")
	if err := os.Remove(notePath(path)); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(filepath.Dir(path), link); err != nil {
		t.Fatal(err)
	}
	if c := read(t, path); c.SignedBy != "" || !key.Signed(c) || key.Older(c) ||
		key.replaced(filepath.Join(link, "results.jsonl"), c) {
		t.Errorf("signed by %q, %v, %v", c.SignedBy, key.Signed(c), key.Older(c))
	}
	add("task-3")
	if c := read(t, path); c.SignedBy != key.ID() {
		t.Error("what the key has signed is not signed again")
	}
	if err := errors.Join(os.Remove(path), os.Remove(notePath(path))); err != nil {
		t.Fatal(err)
	}
	appendOne(t, path, "task-4")
	if c := read(t, path); key.Signed(c) || !key.replaced(filepath.Join(link, "results.jsonl"), c) {
		t.Errorf("another ledger in its place: %v, %v", key.Signed(c), key.replaced(path, c))
	}
	add("task-2") // who is not the key's stays so
	if c := read(t, path); c.SignedBy != "" {
		t.Error("another's records were signed")
	}
}

// A run that writes on while its results are read is not taken for somebody who changed them.
func TestASignerIsLookedForInWhatIsThereNow(t *testing.T) {
	key := must(CreateKey(filepath.Join(t.TempDir(), "ledger.key")))(t)
	path := filepath.Join(t.TempDir(), "results.jsonl")
	w := must(Open(path, Config{Experiment: "e", Key: key, NoSync: true}, nil))(t)
	add := func(task string) {
		t.Helper()
		r := verdict(task, 0, 1, Pass)
		if err := w.Append(&r); err != nil {
			t.Fatal(err)
		}
	}
	add("task-1")
	early := read(t, path)
	note := readNote(path)
	add("task-2")
	add("task-3")
	late := read(t, path)
	late.SignedBy, late.noted = "", note // as if two records had been added after the note was read
	for name, contents := range map[string]*Contents{"older": early, "newer": late} {
		t.Run(name, func(t *testing.T) {
			if found := SignerOf(key, path, contents); !found.Own || found.Note != "" {
				t.Errorf("%s: %+v", name, found)
			}
		})
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

func must[T any](value T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

func TestARecoveryMayBeTornItself(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(t.TempDir(), "torn")
		if err != nil {
			rt.Fatal(err)
		}
		path := filepath.Join(dir, "results.jsonl")
		kept := 0
		for round := range rapid.IntRange(1, 6).Draw(rt, "rounds") {
			appendOne(t, path, fmt.Sprintf("task-%d", round))
			data := content(t, path)
			cut := rapid.IntRange(len(data)*2/3, len(data)).Draw(rt, "cut")
			if err := os.WriteFile(path, []byte(data[:cut]), 0o600); err != nil {
				rt.Fatal(err)
			}
			os.Remove(notePath(path)) // a killed writer leaves none
			kept = len(read(t, path).Records)
		}
		appendOne(t, path, "last")
		contents := read(t, path)
		if err := contents.Damage(path); err != nil || len(contents.Records) != kept+1 {
			rt.Fatalf("%d records, want %d, %v", len(contents.Records), kept+1, err)
		}
	})
}

func TestOnlyOneWriter(t *testing.T) {
	path := filepath.Join(t.TempDir(), "results.jsonl")
	w, err := Open(path, Config{Experiment: "e"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path, Config{Experiment: "e"}, nil); !errors.Is(err, ErrLocked) {
		t.Errorf("got %v, want ErrLocked", err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path, Config{Experiment: "other"}, nil); err != nil {
		t.Errorf("an empty ledger belongs to nobody: %v", err)
	}
}

func TestAnotherExperimentsLedgerIsRefused(t *testing.T) {
	path := written(t, 1)
	if _, err := Open(path, Config{Experiment: "other"}, nil); err == nil ||
		!strings.Contains(err.Error(), "belongs to experiment e") {
		t.Errorf("got %v", err)
	}
}

func TestAnAttemptIsRecordedOnce(t *testing.T) {
	w, err := Open(filepath.Join(t.TempDir(), "results.jsonl"), Config{Experiment: "e"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	r := verdict("fix", 0, 1, Pass)
	if err := w.Append(&r); err != nil {
		t.Fatal(err)
	}
	if err := w.Append(&r); err == nil {
		t.Error("the same attempt was recorded twice")
	}
}

func TestSecretsAreTakenOutOfEveryField(t *testing.T) {
	const secret = "a-very-secret-value-123"
	path := filepath.Join(t.TempDir(), "results.jsonl")
	w, err := Open(path, Config{
		Experiment: "e",
		Redactor:   redact.New(redact.Config{Extra: map[string]string{"TASK_TOKEN": secret}}),
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	r := verdict("fix", 0, 1, Fail)
	r.Submission, r.Invariants = "it is "+secret, &Invariants{Stderr: secret}
	r.JudgeVerdict = &JudgeMajority{Verdict: Fail, Summary: secret}
	if err := w.Append(&r); err != nil {
		t.Fatal(err)
	}
	w.Close()
	if got := content(t, path); strings.Contains(got, secret) {
		t.Errorf("the secret is in the ledger: %s", got)
	}
	if err := read(t, path).Damage(path); err != nil {
		t.Errorf("the redacted line does not verify: %v", err)
	}
}

func TestMergeDoesNotDependOnTheOrderOfShards(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		shards := make([][]Record, rapid.IntRange(1, 5).Draw(rt, "shards"))
		for i := range rapid.IntRange(0, 30).Draw(rt, "records") {
			r := verdict(fmt.Sprintf("t%d", i%7), i/7, 1, Pass)
			r.Experiment = "e"
			at := rapid.IntRange(0, len(shards)-1).Draw(rt, "shard")
			shards[at] = append(shards[at], r)
		}
		first, err := Merge(shards...)
		if err != nil {
			rt.Fatal(err)
		}
		rand.New(rand.NewPCG(1, rapid.Uint64().Draw(rt, "order"))).Shuffle(len(shards),
			func(i, j int) { shards[i], shards[j] = shards[j], shards[i] })
		second, err := Merge(shards...)
		if err != nil {
			rt.Fatal(err)
		}
		if diff := cmp.Diff(first, second); diff != "" {
			rt.Error(diff)
		}
	})
}

func TestMergeRefusesDuplicatesAndStrangers(t *testing.T) {
	a, b := verdict("t", 0, 1, Pass), verdict("t", 0, 1, Fail)
	a.Experiment, b.Experiment = "e", "e"
	if _, err := Merge([]Record{a}, []Record{b}); err == nil || !strings.Contains(err.Error(), "in two ledgers") {
		t.Errorf("duplicates: got %v", err)
	}
	b.Experiment, b.RunIndex = "f", 1
	if _, err := Merge([]Record{a}, []Record{b}); err == nil ||
		!strings.Contains(err.Error(), "different experiments") {
		t.Errorf("strangers: got %v", err)
	}
}

func TestMergeGivesImportedRecordsAnExperimentInCommon(t *testing.T) {
	a, b := verdict("t", 0, 1, Pass), verdict("t", 1, 1, Fail)
	a.Experiment, b.Experiment = "imported-e", "imported-f"
	a.Imported, b.Imported = &Imported{Format: "table"}, &Imported{Format: "table"}
	one, err := Merge([]Record{a}, []Record{b})
	other, errOther := Merge([]Record{b}, []Record{a})
	if err != nil || errOther != nil || one[0].Experiment != one[1].Experiment || one[0].Experiment == "imported-e" ||
		cmp.Diff(one, other) != "" {
		t.Errorf("%v, %v: %+v and %+v", err, errOther, one, other)
	}
	b.Imported = nil
	if _, err := Merge([]Record{a}, []Record{b}); err == nil ||
		!strings.Contains(err.Error(), "different experiments") {
		t.Errorf("with an experiment of ours: got %v", err)
	}
}

func TestAMergedLedgerVerifiesAndRemembersWhereItCameFrom(t *testing.T) {
	records := read(t, written(t, 3)).Records
	var out bytes.Buffer
	if err := Write(&out, records); err != nil {
		t.Fatal(err)
	}
	contents, err := Scan(&out, func(r *Record) error {
		if i := slices.IndexFunc(records,
			func(o Record) bool { return o.Key() == r.Key() }); r.Origin != records[i].Hash {
			t.Errorf("%s: origin %s", r.Key(), r.Origin)
		}
		return nil
	})
	if err != nil || contents.Damage("merged") != nil || contents.Lines != 3 {
		t.Errorf("%+v %v", contents, err)
	}
}

func TestTheLastAttemptCounts(t *testing.T) {
	last := Last([]Record{verdict("t", 0, 2, Pass), verdict("t", 0, 1, Error), verdict("t", 1, 1, Fail)})
	if len(last) != 2 || last[0].Verdict != Pass || last[1].Verdict != Fail {
		t.Errorf("got %+v", last)
	}
}

func TestRecordsThatCannotBeAreRefused(t *testing.T) {
	score := func(v float64) *float64 { return &v }
	for name, spoil := range map[string]func(*Record){
		"no verdict":               func(r *Record) { r.Verdict = "" },
		"verdict without a grade":  func(r *Record) { r.Grade = nil },
		"score over one":           func(r *Record) { r.Score = score(1.5) },
		"raw score over one":       func(r *Record) { r.Grade.Score = score(1.5) },
		"negative malformed":       func(r *Record) { r.Grade.Malformed = -1 },
		"preflight and a grade":    func(r *Record) { r.PreflightError = &PreflightError{Phase: "preflight"} },
		"error without a class":    func(r *Record) { r.Verdict, r.Grade = Error, nil },
		"class without an error":   func(r *Record) { r.ErrorClass = ErrorSetup },
		"pass on a failing grade":  func(r *Record) { r.Grade.Verdict = Fail },
		"a verdict to be repeated": func(r *Record) { r.Final = false },
		"no task":                  func(r *Record) { r.TaskID = "" },
		"attempt zero":             func(r *Record) { r.Attempt = 0 },
		"negative cost":            func(r *Record) { r.CostUSD = score(-1) },
	} {
		t.Run(name, func(t *testing.T) {
			r := verdict("t", 0, 1, Pass)
			if err := r.Validate(); err != nil {
				t.Fatal(err)
			}
			spoil(&r)
			if r.Validate() == nil {
				t.Errorf("%s: accepted", name)
			}
		})
	}
}

func TestFailuresOfPreflightAndAgentAreRecords(t *testing.T) {
	preflight := Record{
		TaskID: "t", Arm: "a", Attempt: 1, Verdict: Error, ErrorClass: ErrorPreflight,
		PreflightError: &PreflightError{Phase: "preflight", ExitCode: 7},
	}
	agent := verdict("t", 0, 1, Fail)
	agent.AgentError = &AgentError{Message: "crashed"}
	supervised := verdict("t", 0, 1, Pass)
	name := "lead"
	supervised.Profiles.Supervisor = &name
	supervised.CostBreakdown = &CostBreakdown{}
	for _, r := range []Record{preflight, agent, supervised} {
		if err := r.Validate(); err != nil {
			t.Error(err)
		}
	}
}

func FuzzScan(f *testing.F) {
	f.Add([]byte("{}\n"))
	f.Add([]byte("\n\n{\"recovered\":{}}\n"))
	var whole bytes.Buffer
	r := verdict("t", 0, 1, Pass)
	r.Experiment = "e"
	if err := Write(&whole, []Record{r}); err != nil {
		f.Fatal(err)
	}
	f.Add(whole.Bytes())
	f.Fuzz(func(t *testing.T, data []byte) {
		contents, err := Scan(io.LimitReader(bytes.NewReader(data), 1<<20),
			func(r *Record) error { return r.Validate() })
		if err == nil && len(contents.Problems) == 0 && contents.Head == "" && len(data) > 0 {
			t.Error("bytes that are no ledger raised no problem")
		}
	})
}
