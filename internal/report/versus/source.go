package versus

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/fit-eval/fit/internal/evidence"
	"github.com/fit-eval/fit/internal/experiment"
	"github.com/fit-eval/fit/internal/judge"
	"github.com/fit-eval/fit/internal/report"
	"github.com/fit-eval/fit/internal/report/results"
	"github.com/fit-eval/fit/ledger"
	"github.com/fit-eval/fit/session"
)

// Options say how a run directory is read. The zero value works for directories whose evidence is
// cached.
type Options struct {
	// Dialects are the formats that traces may have; Prices computes costs that agents do not
	// report.
	Dialects session.Dialects
	Prices   session.Prices
	// Weights are those of the blended score; nil is judge.DefaultWeights.
	Weights judge.Weights
	// Alpha is the significance level; 0 is 0.05.
	Alpha float64
	// Cell, if set, is the only cell that is read: the report is about nothing else. It is ignored
	// where judges were asked, who compare cells.
	Cell *ledger.Cell
	// Allow are the reasons to withhold claims that the user accepts, such as "drift".
	Allow []string
	// Key is the user's, or nil: it knows what it has signed.
	Key *ledger.SigningKey
}

// Source is a run directory that has been read.
type Source struct {
	dir      string
	options  Options
	plan     *experiment.Plan // nil: the ledger stands alone
	planned  *report.Planned  // nil without a plan
	signer   ledger.Signer
	signed   report.Signing
	contents *ledger.Contents // the records that the report is about
	cells    []attempt        // that count, sorted by task, run and arm
	tasks    map[string]evidence.Task
	reviews  evidence.Reviews
	evidence *evidence.Directory
	// baseline is true where the first arm is what the others are compared with: in an experiment
	// on a family, not among agents on task files.
	baseline bool
}

// attempt is an attempt with its evidence.
type attempt struct {
	evidence.Examined
	files *evidence.Directory // where it lies
}

// NotRunDirectory is the error of a directory without results.
type NotRunDirectory struct{ Dir string }

func (e *NotRunDirectory) Error() string {
	shards, err := results.Find(e.Dir)
	if err == nil && len(shards) > 0 {
		return fmt.Sprintf("%s holds %d run directories, such as %s: name one, or use fit-benchmark report and "+
			"compare, which take all of them", e.Dir, len(shards), shards[0])
	}
	return fmt.Sprintf("%s is not a run directory: there is no %s", e.Dir, experiment.LedgerFile)
}

// Open reads a run directory. A ledger that does not verify is refused.
func Open(ctx context.Context, dir string, options Options) (*Source, error) {
	path := filepath.Join(dir, experiment.LedgerFile)
	contents, err := ledger.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &NotRunDirectory{dir}
	}
	if err == nil {
		err = contents.Damage(path)
	}
	if err != nil {
		return nil, err
	}
	s := &Source{
		dir:      dir,
		options:  options,
		contents: contents,
	}
	if options.Cell != nil {
		if err := s.keepTo(*options.Cell); err != nil {
			return nil, err
		}
	}
	if s.options.Weights == nil {
		s.options.Weights = judge.DefaultWeights()
	}
	if s.plan, s.planned, err = results.Planned(dir, contents); err != nil {
		return nil, err
	}
	digest, signedBy := "", ""
	if s.plan != nil {
		problems, err := results.Strays(dir, s.plan, contents.Records)
		if err == nil && len(problems) > 0 {
			err = &ledger.Damage{Path: path, Problems: problems}
		}
		if err != nil {
			return nil, err
		}
		judged := *contents
		if judged.Records, err = results.WithSentences(dir, s.plan, contents.Records); err != nil {
			return nil, err
		}
		s.contents = &judged
		digest, signedBy = s.plan.TasksDigest, s.plan.SignedBy
	}
	s.signer = ledger.SignerOf(options.Key, path, contents)
	results.CountSigned(&s.signed, s.signer, signedBy, path)
	tasks, err := evidence.ReadTasks(dir, digest)
	if err != nil {
		return nil, err
	}
	if s.reviews, err = evidence.ReadReviews(dir); err != nil {
		return nil, err
	}
	s.evidence = &evidence.Directory{Root: dir, Dialects: options.Dialects, Prices: options.Prices}
	return s, s.collect(ctx, tasks)
}

// Signer says who signed the results.
func (s *Source) Signer() ledger.Signer { return s.signer }

// Family returns where the tasks came from; empty where no plan says so.
func (s *Source) Family() string {
	if s.plan == nil {
		return ""
	}
	return s.plan.Family.Origin
}

// NoSuchCell is the error of a directory that lacks the cell which was asked for.
type NoSuchCell struct{ There []ledger.Cell }

func (*NoSuchCell) Error() string { return "there is no such run" }

// keepTo leaves only the records of one cell, unless judges were asked.
func (s *Source) keepTo(cell ledger.Cell) error {
	last := ledger.Last(s.contents.Records)
	there := make([]ledger.Cell, len(last))
	for i := range last {
		there[i] = last[i].Cell()
	}
	if !slices.Contains(there, cell) {
		return &NoSuchCell{there}
	}
	replies, err := judge.Read(s.dir)
	if err != nil {
		return err
	}
	if _, asked := replies.Settings(); asked {
		return nil
	}
	kept := *s.contents
	kept.Records = slices.DeleteFunc(slices.Clone(kept.Records), func(r ledger.Record) bool { return r.Cell() != cell })
	s.contents = &kept
	return nil
}

// collect gathers the evidence of every attempt that counts.
func (s *Source) collect(ctx context.Context, tasks []evidence.Task) error {
	examined, err := s.evidence.Examine(ctx, tasks, ledger.Last(s.contents.Records))
	if err != nil {
		return err
	}
	s.cells, s.tasks = make([]attempt, len(examined)), map[string]evidence.Task{}
	s.baseline = len(tasks) == 0 && s.plan != nil
	for _, task := range tasks {
		s.tasks[task.ID] = task
	}
	for i := range examined {
		s.cells[i] = attempt{examined[i], s.evidence}
		s.tasks[examined[i].Task.ID] = examined[i].Task
	}
	return nil
}

// LabelsPath returns the file of people's verdicts.
func (s *Source) LabelsPath() string { return filepath.Join(s.dir, experiment.LabelsFile) }

// UnderTest returns the models and agents whose work is judged.
func (s *Source) UnderTest() []string {
	names := map[string]bool{}
	for i := range s.cells {
		cell := &s.cells[i]
		for _, name := range []string{cell.Record.Agent, cell.Record.Model.Agent, cell.Run.Session.Model} {
			if name != "" {
				names[name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// unreadable returns why there is no evidence about some attempts; nil if there is about all.
func (s *Source) unreadable() []string {
	var problems []string
	for i := range s.cells {
		if s.cells[i].Problem != "" {
			problems = append(problems, s.cells[i].Problem)
		}
	}
	return problems
}

// Subjects returns the attempts as judges see them. An attempt whose files cannot be read is
// included with its problem.
func (s *Source) Subjects() []judge.Subject {
	hide := s.identities()
	subjects := make([]judge.Subject, len(s.cells))
	for i := range s.cells {
		cell := &s.cells[i]
		subjects[i] = judge.Subject{
			Task:    cell.Task,
			Run:     cell.Run,
			ArmHash: cell.Record.ArmHash,
			Attempt: cell.Record.Attempt,
			Hide:    hide,
			Problem: cell.Problem,
		}
		if cell.Problem == "" {
			s.addFiles(&subjects[i], cell.Record)
		}
	}
	return subjects
}

// addFiles adds what an attempt changed and what its check printed.
func (s *Source) addFiles(subject *judge.Subject, record *ledger.Record) {
	patch, err := s.evidence.Diff(record)
	if err == nil {
		var output []byte
		output, err = s.evidence.VerifyOutput(record)
		subject.Patch, subject.VerifyOutput = patch, string(output)
		if err == nil {
			subject.Answer, err = s.answer(record)
		}
	}
	if err != nil {
		subject.Problem = err.Error()
	}
}

// answer returns the agent's last message; empty where the run has no such file.
func (s *Source) answer(record *ledger.Record) (string, error) {
	text, err := os.ReadFile(filepath.Join(s.dir, filepath.FromSlash(record.RunDir), experiment.AnswerFile))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return string(text), err
}

// identities returns what would reveal who did the work. It is the same for all, so that no run
// depends on which other names are hidden.
func (s *Source) identities() []string {
	names := map[string]bool{}
	for _, name := range s.UnderTest() {
		names[name] = true
	}
	for i := range s.cells {
		names[s.cells[i].Record.Arm] = true
		if process := s.cells[i].Run.Session.Process; process != nil && process.Binary != "" {
			names[filepath.Base(process.Binary)] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}
