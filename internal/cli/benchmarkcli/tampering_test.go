package benchmarkcli

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/fit-eval/fit/internal/experiment"
	"github.com/fit-eval/fit/ledger"
)

// twoArms runs an experiment with two arms into "out".
func twoArms(t *testing.T, tasks int, more ...string) *command {
	t.Helper()
	c, run := tiny(t, tasks)
	at := slices.Index(run, "--agent")
	url := run[slices.Index(run, "--model-url")+1]
	run = slices.Concat(run[:at], []string{"--model-url", url, "--output", "out", "--runs", "1"})
	for _, arm := range []string{"before", "after"} {
		run = append(run, "--arm", arm+"=agent:builtin,model:claude-sonnet-4-5")
	}
	c.again = slices.Concat(run, []string{"--allow", "same"})
	c.want(0, slices.Concat(c.again, more)...)
	return c
}

// rewrite changes a ledger, its journal too if need be, and leaves no head that knows better.
func (c *command) rewrite(path string, change func(records []ledger.Record) []ledger.Record) {
	c.t.Helper()
	contents, err := ledger.ReadFile(path)
	if err != nil {
		c.t.Fatal(err)
	}
	var out bytes.Buffer
	if err := ledger.Write(&out, change(contents.Records)); err != nil {
		c.t.Fatal(err)
	}
	if err := os.WriteFile(path, out.Bytes(), 0o600); err != nil {
		c.t.Fatal(err)
	}
	head := filepath.Join(filepath.Dir(path), ledger.NoteFile(filepath.Base(path)))
	if err := os.Remove(head); err != nil && !errors.Is(err, fs.ErrNotExist) {
		c.t.Fatal(err)
	}
}

// Whoever seals a ledger again can write into it what the experiment never did. What its plan and
// its journal do not know is refused by every command that answers.
func TestRecordsThatTheExperimentDidNotMakeAreRefused(t *testing.T) {
	c := twoArms(t, 2)
	dir := filepath.Join(c.dir, "out")
	path, journal := filepath.Join(dir, experiment.LedgerFile), filepath.Join(dir, experiment.AttemptsFile)
	honest := map[string][]byte{path: content(t, path), journal: content(t, journal)}
	last := bytes.LastIndex(honest[journal], []byte(`{"arm":"after"`)) // the last attempt that was started
	for want, change := range map[string]func(records []ledger.Record) []ledger.Record{
		"is not in the plan": func(records []ledger.Record) []ledger.Record {
			more := records[0]
			more.RunIndex, more.RunDir = 7, "runs/t000/after/7/1"
			return append(records, more)
		},
		"its arm is not the one that was planned": func(records []ledger.Record) []ledger.Record {
			records[0].ArmHash = "sha256:another"
			return records
		},
		"shares its directory with": func(records []ledger.Record) []ledger.Record {
			records[1].RunDir = records[0].RunDir
			return records
		},
		"was never started": func(records []ledger.Record) []ledger.Record {
			if err := os.WriteFile(journal, honest[journal][:last], 0o600); err != nil {
				t.Fatal(err)
			}
			return records
		},
	} {
		t.Run(want, func(t *testing.T) {
			c.rewrite(path, change)
			for _, args := range [][]string{
				{"compare", "out", "--allow", "unsigned"},
				{"report", "out", "--min-pass-rate", "0", "--allow", "unsigned"},
				{"merge", "out"},
			} {
				c.want(3, args...)
				c.contains(c.stderr, want, "report --damaged shows the lines that are left")
			}
			c.want(0, "report", "out", "--damaged", "--format", "text")
			c.contains(c.stdout, "skipped 1 line of the ledger that failed verification")
			for name, text := range honest {
				if err := os.WriteFile(name, text, 0o600); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// A plan says which key signs its results. Where the signature is gone, also on a machine that
// never saw the key, nothing is claimed and no gate passes unless the user accepts it; and the
// first lines say in numbers what is signed.
func TestACopyOfASignedDirectoryWithoutItsHeadClaimsNothing(t *testing.T) {
	c := twoArms(t, 2)
	c.want(0, "report", "out", "--format", "text")
	c.contains(c.stdout, "signed by your key: 4 of 4 records")
	c.want(0, "compare", "out")
	c.contains(c.stdout, "signed by your key: 4 of 4 records")
	if err := os.RemoveAll(filepath.Join(c.dir, ".config")); err != nil { // another machine
		t.Fatal(err)
	}
	c.want(0, "compare", "out")
	c.contains(c.stdout, ": 4 of 4 records")
	path := filepath.Join(c.dir, "out", experiment.LedgerFile)
	c.rewrite(path, func(records []ledger.Record) []ledger.Record { return records })
	for _, format := range []string{"text", "markdown", "json"} {
		c.want(0, "compare", "out", "--format", format)
		c.contains(c.stdout, "signed when it ran, and 0 of 4 records are signed now", "--allow unsigned accepts it")
	}
	c.contains(c.stdout, `"records": 4`, `"signed": 0`)
	c.want(1, "compare", "out", "--fail-on", "regressed")
	c.want(1, "report", "out", "--min-pass-rate", "0")
	c.contains(c.stderr, "withheld because", "--allow unsigned accepts it")
	c.want(3, "merge", "out", "--output", "merged.jsonl") // which would forget it
	c.contains(c.stderr, "signed when it ran, and 0 of 4 records are signed now", "merge the directories as they were")
	c.want(0, "report", "out", "--min-pass-rate", "0", "--allow", "unsigned")
	c.want(0, "compare", "out", "--allow", "unsigned")
	c.contains(c.stdout, "allowed by --allow unsigned: ", "signed: 0 of 4 records")
	// Whoever removes the key from the plan as well is left with results that nobody signed.
	plan := filepath.Join(c.dir, "out", experiment.PlanFile)
	text := regexp.MustCompile(`,\s*"signedBy": "[^"]*"`).ReplaceAll(content(t, plan), nil)
	if err := os.WriteFile(plan, text, 0o600); err != nil {
		t.Fatal(err)
	}
	c.want(0, "compare", "out")
	c.contains(c.stdout, "signed: 0 of 4 records")
}

// Who repeats an experiment until it says what he wants is counted, wherever he puts the results.
func TestAReportSaysHowManyExperimentsThereWere(t *testing.T) {
	c, run := tiny(t, 1)
	c.want(0, with(run, "--runs", "1")...)
	c.want(0, with(run, "--runs", "2")...) // grows: the same experiment
	c.want(0, with(run, "--runs", "1", "--output", "again")...)
	for dir, number := range map[string]string{"out": "experiment 1 ", "again": "experiment 2 "} {
		c.want(0, "report", dir, "--format", "text")
		c.contains(c.stdout, number+"on family family with this key")
	}
}

// What a report once read of a run is kept in a cache; a file that was changed since is found all
// the same.
func TestAChangedFileIsFoundInSpiteOfTheCache(t *testing.T) {
	c := twoArms(t, 2)
	c.want(0, "report", "out", "--format", "text")
	c.want(0, "report", "out", "--min-pass-rate", "0")
	for _, pattern := range []string{"diff.patch", "agent.ndjson*"} {
		found, err := filepath.Glob(filepath.Join(c.dir, "out/runs/*/*/*/*", pattern))
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %v %v", pattern, found, err)
		}
		before := content(t, found[0])
		if err := os.WriteFile(found[0], append(bytes.Clone(before), '\n'), 0o600); err != nil {
			t.Fatal(err)
		}
		c.want(1, "report", "out", "--min-pass-rate", "0")
		c.contains(c.stderr, "differs from the record: put back the original")
		if err := os.WriteFile(found[0], before, 0o600); err != nil {
			t.Fatal(err)
		}
		c.want(0, "report", "out", "--min-pass-rate", "0")
	}
}

func content(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
