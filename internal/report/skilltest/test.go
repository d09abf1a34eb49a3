package skilltest

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/fit-eval/fit/internal/judge"
	"github.com/fit-eval/fit/internal/report"
	"github.com/fit-eval/fit/internal/report/results"
	"github.com/fit-eval/fit/internal/report/versus"
	"github.com/fit-eval/fit/ledger"
)

// The names of the arms of a test.
const (
	ArmWithout = "without"
	ArmFormer  = "former"
	ArmWith    = "with"
)

// testFile is the file of a run directory that says which skill was tested, on what.
const testFile = "skill.json"

// Test is what a run directory is a test of.
type Test struct {
	Version int    `json:"version"`
	Skill   string `json:"skill"`
	Digest  string `json:"digest"` // of the skill with its test cases
	Against string `json:"against,omitempty"`
	// DescriptionTokens and BodyTokens estimate what the skill adds to every call, and to those
	// after it was opened.
	DescriptionTokens int    `json:"descriptionTokens"`
	BodyTokens        int    `json:"bodyTokens"`
	Runs              int    `json:"runs"`
	Cases             []Case `json:"cases"`
	Leaks             []Leak `json:"leaks,omitempty"`
	// LeftOut are the cases that were not run because nothing decides them.
	LeftOut []string `json:"leftOut,omitempty"`
}

// Case is what is known about a test case.
type Case struct {
	ID       string `json:"id"`
	Prompt   string `json:"prompt"`
	Expected string `json:"expected,omitempty"`
	// Labels are the checks in words, by the name of their row.
	Labels    map[string]string `json:"labels,omitempty"`
	Sentences []judge.Sentence  `json:"sentences,omitempty"`
	// Silent says that the skill should stay unopened.
	Silent bool `json:"silent,omitempty"`
}

// Leak is a case whose text repeats the skill.
type Leak struct {
	Case   string `json:"case"`
	Shared string `json:"shared"`
}

// Same reports whether two iterations test the same skill on the same cases.
func (t *Test) Same(other *Test) bool {
	return t.Digest == other.Digest && t.Against == other.Against
}

func (t *Test) find(id string) Case {
	for i := range t.Cases {
		if t.Cases[i].ID == id {
			return t.Cases[i]
		}
	}
	return Case{ID: id}
}

// ReadTest reads what a run directory is a test of. The error of a directory that is none is
// fs.ErrNotExist.
func ReadTest(dir string) (*Test, error) {
	return readStored[Test](dir, testFile, "test")
}

// readStored reads what a command, which would write it again, stored in a run directory.
func readStored[T any](dir, name, command string) (*T, error) {
	path := filepath.Join(dir, name)
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	stored := new(T)
	if err := json.Unmarshal(text, stored); err != nil {
		return nil, fmt.Errorf("read %s: %w; rerun fit skill %s, which writes it again", path, err, command)
	}
	return stored, nil
}

// Write writes the file into a run directory.
func (t *Test) Write(dir string) error { return writeJSON(filepath.Join(dir, testFile), t) }

// Subjects returns the runs as judges of their sentences see them.
func (t *Test) Subjects(source *versus.Source) []judge.Subject {
	subjects := source.Subjects()
	for i := range subjects {
		c := t.find(subjects[i].Task.ID)
		subjects[i].Task.Prompt, subjects[i].Sentences = c.Prompt, c.Sentences
		subjects[i].Hide = append(subjects[i].Hide[:len(subjects[i].Hide):len(subjects[i].Hide)], t.Skill)
	}
	return subjects
}

// Options say how a run directory is read.
type Options struct {
	Auditor results.Auditor
	Allow   []string
	Seed    uint64
}

// Read makes the answer of a run directory.
func Read(ctx context.Context, dir string, options Options) (*Answer, error) {
	test, err := ReadTest(dir)
	if err != nil {
		return nil, err
	}
	found, err := results.Load([]string{dir}, false, nil)
	if err != nil {
		return nil, err
	}
	found.Allow = options.Allow
	without, with, comparison, err := compareArms(ctx, found, dir, options)
	if err != nil {
		return nil, err
	}
	answer := build(input{
		Test:       test,
		Without:    without,
		With:       with,
		Comparison: comparison,
		Records:    ledger.Last(found.Records),
	})
	answer.Feedback, err = test.ReadFeedback(dir)
	return answer, err
}

// compareArms compares the arm with the skill with the other.
func compareArms(ctx context.Context, found *results.Results, dir string, options Options) (without,
	with *report.Group, comparison *report.Comparison, err error,
) {
	built, err := found.Build(ctx, options.Auditor, []int{1}, false)
	if err != nil {
		return nil, nil, nil, err
	}
	groups := map[string]*report.Group{}
	for i := range built.Groups {
		groups[built.Groups[i].Provenance.Arm] = &built.Groups[i]
	}
	without, with = groups[ArmWithout], groups[ArmWith]
	if groups[ArmFormer] != nil {
		without = groups[ArmFormer]
	}
	if without == nil || with == nil {
		return nil, nil, nil, fmt.Errorf("%s has no results of both arms; rerun the command", dir)
	}
	comparison, err = report.Compare(without, with, report.CompareConfig{Seed: options.Seed, Allow: options.Allow})
	return without, with, comparison, err
}
