package benchmarkcli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/experiment"
	"github.com/fit-eval/fit/ledger"
)

// ledgerOf writes a ledger of its own into a directory: each arm's word has a letter per run of
// every task.
func (c *command) ledgerOf(dir, revision string, tasks int, arms map[string]string) {
	c.t.Helper()
	var records []ledger.Record
	for arm, word := range arms {
		for i := range tasks {
			for run, letter := range word {
				verdict := map[rune]string{'P': ledger.Pass, 'F': ledger.Fail}[letter]
				records = append(records, ledger.Record{
					TaskID: fmt.Sprintf("t%02d", i), RunIndex: run, Attempt: 1, Arm: arm, ArmHash: arm,
					FamilyRevision: revision, Verdict: verdict, Final: true, Agent: "builtin",
					Grade: &ledger.Grade{Verdict: verdict, GatesPass: true, Healthy: true},
				})
			}
		}
	}
	c.planned(dir, revision, records)
	merged, err := ledger.Merge(records)
	if err != nil {
		c.t.Fatal(err)
	}
	var out bytes.Buffer
	if err := ledger.Write(&out, merged); err != nil {
		c.t.Fatal(err)
	}
	c.write(map[string]string{dir + "/results.jsonl": out.String()})
}

// planned writes the plan of a directory: exactly the runs of the records, which name it. Up to
// three attempts at each were started.
func (c *command) planned(dir, revision string, records []ledger.Record) {
	c.t.Helper()
	plan := &experiment.Plan{Family: experiment.PlannedFamily{Name: dir, Revision: revision}}
	arms, tasks := map[string]bool{}, map[string]bool{}
	for i := range records {
		arms[records[i].Arm], tasks[records[i].TaskID] = true, true
		plan.Runs = max(plan.Runs, records[i].RunIndex+1)
	}
	for _, name := range slices.Sorted(maps.Keys(arms)) {
		arm := experiment.Arm{Name: name, Agent: "builtin"}
		plan.Arms = append(plan.Arms, experiment.PlannedArm{Arm: arm})
	}
	for _, id := range slices.Sorted(maps.Keys(tasks)) {
		plan.Tasks = append(plan.Tasks, experiment.PlannedTask{ID: id})
	}
	if err := plan.Seal(); err != nil {
		c.t.Fatal(err)
	}
	for i := range records {
		records[i].Experiment = plan.ID
	}
	text, err := json.Marshal(plan)
	if err != nil {
		c.t.Fatal(err)
	}
	var started strings.Builder
	for i := range records {
		for attempt := range 3 {
			key := records[i].Key()
			key.Attempt = attempt + 1
			line, err := json.Marshal(key)
			if err != nil {
				c.t.Fatal(err)
			}
			fmt.Fprintf(&started, "%s\n", line)
		}
	}
	c.write(map[string]string{dir + "/plan.json": string(text), dir + "/attempts.jsonl": started.String()})
}

func TestCompareOfADirectoryWithSeveralArmsIsOneTable(t *testing.T) {
	c := newCommand(t)
	c.ledgerOf("runs", "r", 12, map[string]string{"a": "FFF", "b": "PPP", "c": "PPF", "d": "PPF"})
	c.want(0, "compare", "runs")
	c.contains(c.stdout, "b against a", "d against c", "6 comparisons", "rank 2: c, d (no significant difference)")
	c.want(0, "compare", "runs", "--pairs", "baseline", "--format", "json")
	c.contains(c.stdout, `"baseline": "a"`, `"claim": "improved"`)
	c.want(1, "compare", "runs", "--fail-on", "improved")
	c.want(0, "compare", "runs", "--fail-on", "regressed", "--format", "markdown")
}

func TestCompareAcrossRevisionsMustBeAskedFor(t *testing.T) {
	c := newCommand(t)
	c.ledgerOf("old", "r1", 12, map[string]string{"a": "FFF"})
	c.ledgerOf("new", "r2", 12, map[string]string{"a": "PPP"})
	c.want(2, "compare", "old", "new")
	c.contains(c.stderr, "--across-revisions", "old was measured on revision r1", "new on r2")
	c.want(0, "compare", "old", "new", "--across-revisions")
	c.contains(c.stdout, "Observed (not one experiment): old and new are not from one plan",
		"different revisions of the family", "--allow historical accepts it")
	c.want(1, "compare", "old", "new", "--across-revisions", "--fail-on", "regressed")
	c.contains(c.stderr, "withheld because old and new are not from one plan")
	c.want(0, "compare", "old", "new", "--across-revisions", "--allow", "historical", "--fail-on", "regressed")
	c.contains(c.stdout, "Improved", "different revisions of the family", "allowed by --allow historical")
}

func TestNothingIsNoGoodAnswer(t *testing.T) {
	c := newCommand(t)
	c.write(map[string]string{"foreign/README.md": "x", "empty/results.jsonl": ""})
	tinyFamily(t, filepath.Join(c.dir, "family"), 1)
	for dir, code := range map[string]int{"foreign": 2, "empty": 3, "nowhere": 2, "foreign/README.md": 2} {
		c.want(code, "compare", dir)
		c.want(code, "compare", dir, dir)
		c.want(code, "list", dir)
		c.want(code, "report", "--input", dir)
		c.want(code, "list", dir, "--verify")
		c.want(code, "merge", "--input", dir)
		c.want(code, "grade", "--family", "family", "--input", dir)
	}
}

func TestGatesAndMetricsAreCheckedBeforeAnythingElse(t *testing.T) {
	c := newCommand(t)
	c.ledgerOf("runs", "r", 12, map[string]string{"a": "PPP"})
	c.want(2, "report", "--input", "runs", "--min-pass-rate", "80")
	c.contains(c.stderr, "must be from 0 to 1")
	c.want(2, "run", "--family", "nowhere", "--min-pass-rate", "-1")
	c.want(2, "report", "--input", "runs", "--metrics", "/dev/full")
	c.contains(c.stderr, "not a regular file")
	c.want(2, "report", "--input", "runs", "--metrics", "/dev/zero")
	c.want(1, "report", "--input", "runs", "--min-pass-rate", "0.99")
	c.want(0, "report", "--input", "runs", "--min-pass-rate", "0.7")
}

// reseal changes a ledger as somebody would who knows its format: every line gets a new hash.
func (c *command) reseal(path string, change func(records []ledger.Record)) {
	c.t.Helper()
	contents, err := ledger.ReadFile(path)
	if err != nil {
		c.t.Fatal(err)
	}
	change(contents.Records)
	for i := range contents.Records {
		contents.Records[i].Origin = contents.Records[i].Hash // what Write would add
	}
	var out bytes.Buffer
	if err := ledger.Write(&out, contents.Records); err != nil {
		c.t.Fatal(err)
	}
	if err := os.WriteFile(path, out.Bytes(), 0o600); err != nil {
		c.t.Fatal(err)
	}
}

func TestResealingIsNoticed(t *testing.T) {
	c, run := tiny(t, 2)
	c.want(0, run...)
	c.want(0, "list", "out", "--verify")
	c.contains(c.stdout, "signed by your key")
	path := filepath.Join(c.dir, "out", experiment.LedgerFile)
	intact, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head := filepath.Join(c.dir, "out", ledger.NoteFile(experiment.LedgerFile))
	note, err := os.ReadFile(head)
	if err != nil {
		t.Fatal(err)
	}
	c.reseal(path, func(records []ledger.Record) { records[len(records)-1].Turns++ })
	for _, args := range [][]string{{"list", "out", "--verify"}, {"report", "--input", "out"}, run} {
		c.want(3, args...)
		c.contains(c.stderr, "sealed again")
	}
	// Who changes the note as well has no key to sign it with.
	contents, err := ledger.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	forged := strings.Replace(string(note), `"head":"`+headOf(t, note), `"head":"`+contents.Head, 1)
	forged = regexp.MustCompile(`"bytes":[0-9]+`).ReplaceAllString(forged, fmt.Sprintf(`"bytes":%d`, info.Size()))
	if err := os.WriteFile(head, []byte(forged), 0o600); err != nil {
		t.Fatal(err)
	}
	c.want(3, "list", "out", "--verify")
	c.contains(c.stderr, "signature")
	// Who removes it is noticed, too.
	if err := os.Remove(head); err != nil {
		t.Fatal(err)
	}
	c.want(1, "list", "out", "--verify")
	c.contains(c.stderr, "is not signed")
	// To go on with the experiment does not sign what was not signed.
	c.want(0, run...)
	c.contains(c.stderr, "your key has not signed the existing records")
	c.want(1, "list", "out", "--verify")
	c.contains(c.stderr, "is not signed")
	c.want(0, with(run, "--runs", "6")...)
	c.want(1, "list", "out", "--verify")
	c.contains(c.stderr, "is not signed")
	// Another user's results are not taken for one's own.
	if err := errors.Join(os.WriteFile(path, intact, 0o600), os.WriteFile(head, note, 0o600),
		os.Remove(filepath.Join(c.dir, ".config/fit/ledger.key"))); err != nil {
		t.Fatal(err)
	}
	c.want(1, "list", "out", "--verify")
	c.contains(c.stderr, "not yours")
	good, err := ledger.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	c.want(0, "list", "out", "--verify", "--key", good.SignedBy)
}

// What the user's key has signed is known outside the run directory: whoever removes the signature
// is noticed by every command that reads results, once.
func TestARemovedSignatureIsNoticed(t *testing.T) {
	c := twoArms(t, 2)
	run := c.again
	path := filepath.Join(c.dir, "out", experiment.LedgerFile)
	head := filepath.Join(c.dir, "out", ledger.NoteFile(experiment.LedgerFile))
	readers := [][]string{
		{"report", "--input", "out"},
		{"compare", "out"},
		{"list", "out"},
		{"grade", "--family", "family", "--input", "out"},
	}
	says := func(text string) {
		t.Helper()
		for _, args := range readers {
			c.want(0, args...)
			if n := strings.Count(c.stderr, text); n != 1 {
				t.Errorf("%v says %d times that %q:\n%s", args, n, text, c.stderr)
			}
		}
	}
	for _, args := range readers {
		c.want(0, args...)
		if strings.Contains(c.stderr, "sign") {
			t.Errorf("%v: %s", args, c.stderr)
		}
	}
	if err := os.Remove(head); err != nil {
		t.Fatal(err)
	}
	says("its signature was removed; the records are still those that your key signed")
	c.want(1, "list", "out", "--verify")
	c.contains(c.stderr, "its signature was removed")
	// The key knows them, so it signs them again.
	c.want(0, run...)
	c.want(0, "list", "out", "--verify")
	// A complete rewrite has another first line.
	c.reseal(path, func(records []ledger.Record) { records[0].Turns++ })
	if err := os.Remove(head); err != nil {
		t.Fatal(err)
	}
	says("is not signed, and your key signed other results in this directory: they were replaced")
	c.want(1, "list", "out", "--verify")
	c.contains(c.stderr, "they were replaced")
	c.want(0, "report", "--input", "out", "--format", "json")
	c.contains(c.stdout, "they were replaced")
	// Somebody else's directory is unsigned, and that is all there is to say.
	if err := os.RemoveAll(filepath.Join(c.dir, ".config")); err != nil {
		t.Fatal(err)
	}
	says("is unsigned: a rewrite of the whole ledger would go undetected")
}

// An older ledger with its older head is signed as well as it ever was; the key knows a newer one.
func TestALedgerThatWasPutBackIsNoticed(t *testing.T) {
	c, run := tiny(t, 2)
	c.want(0, with(run, "--runs", "1")...)
	path := filepath.Join(c.dir, "out", experiment.LedgerFile)
	head := filepath.Join(c.dir, "out", ledger.NoteFile(experiment.LedgerFile))
	older := map[string][]byte{path: nil, head: nil}
	for name := range older {
		t.Run(name, func(t *testing.T) {
			content, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			older[name] = content
		})
	}
	c.want(0, with(run, "--runs", "2")...)
	c.want(0, "list", "out", "--verify")
	for name, content := range older {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile(name, content, 0o600); err != nil {
				t.Fatal(err)
			}
		})
	}
	c.want(1, "list", "out", "--verify")
	c.contains(c.stderr, "older than the last state that your key signed")
	// To run the missing cells again does not make it good.
	c.want(0, with(run, "--runs", "2")...)
	c.contains(c.stderr, "the results are not signed")
	c.want(1, "list", "out", "--verify")
}

func headOf(t *testing.T, note []byte) string {
	t.Helper()
	var parsed struct {
		Head string `json:"head"`
	}
	if err := json.Unmarshal(note, &parsed); err != nil {
		t.Fatal(err)
	}
	return parsed.Head
}

func TestAnEnlargedExperimentSaysSo(t *testing.T) {
	c, run := tiny(t, 2)
	c.want(0, with(run, "--runs", "1")...)
	c.want(0, with(run, "--runs", "2")...)
	c.want(0, "report", "--input", "out", "--format", "text")
	c.contains(c.stdout, "the sample size was changed after results were recorded", "from 2 tasks × 1 runs to 2 × 2")
}

func TestGradeRefusesAFinalDirectoryThatWasChanged(t *testing.T) {
	c, run := tiny(t, 1)
	c.want(0, run...)
	c.want(0, "grade", "--family", "family", "--input", "out")
	answers, err := filepath.Glob(filepath.Join(c.dir, "out/runs/*/*/*/*/cwd/answer.txt"))
	if err != nil || len(answers) == 0 {
		t.Fatalf("%v %v", answers, err)
	}
	before, err := os.ReadFile(answers[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(answers[0], []byte(strings.Repeat("4", len(before))), 0o644); err != nil {
		t.Fatal(err)
	}
	attempt := filepath.Dir(filepath.Dir(answers[0]))
	id := strings.Split(filepath.ToSlash(strings.TrimPrefix(attempt, filepath.Join(c.dir, "out", "runs"))), "/")[1]
	for _, what := range [][]string{{"--input", "out"}, {"--task", id, "--run-dir", attempt}} {
		c.want(1, append([]string{"grade", "--family", "family"}, what...)...)
		c.contains(c.stderr, "not the one that was recorded")
	}
}
