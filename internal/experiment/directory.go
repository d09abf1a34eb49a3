package experiment

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/fit-eval/fit/internal/atomicfile"
	"github.com/fit-eval/fit/internal/report/failure"
	"github.com/fit-eval/fit/ledger"
	"github.com/fit-eval/fit/redact"
)

// The files of a run directory.
const (
	PlanFile     = "plan.json"
	LedgerFile   = "results.jsonl"
	AttemptsFile = "attempts.jsonl" // started attempts, so that killed ones are known
	RunsDir      = "runs"           // artefacts: runs/<task>/<arm>/<run>/<attempt>/
	AnswerFile   = "answer.txt"     // in the directory of an attempt: the agent's last message
	LabelsFile   = "labels.yaml"    // the family's human verdicts on the judge's work, for reports
	lockFile     = "lock"
)

// ErrBusy is returned when another process works in the run directory.
var ErrBusy = errors.New("another process works in this directory; wait for it, or choose another --output")

// ErrTaken is returned for a directory that holds something else than an experiment.
var ErrTaken = errors.New("choose another --output")

// DifferentError reports a run directory that belongs to another experiment.
type DifferentError struct {
	Dir         string
	Differences []string
	// Fixed says why nothing can be added to the experiment, if that is all that was wanted.
	Fixed string
}

func (e *DifferentError) Error() string {
	if e.Fixed != "" {
		return fmt.Sprintf("%s: %s (%s); choose another --output", e.Dir, e.Fixed, strings.Join(e.Differences, ", "))
	}
	return fmt.Sprintf("%s already holds a different experiment; choose another --output, or rerun its original "+
		"command "+
		"(you may add runs, tasks and arms). Differences:\n  %s",
		e.Dir, strings.Join(e.Differences, "\n  "))
}

// Directory is a run directory that this process works in.
type Directory struct {
	Path string
	Plan *Plan
	// Notes are warnings that do not stop the run.
	Notes []string

	redactor *redact.Redactor
	lock     *os.File
	ledger   *ledger.Writer
	journal  *journal
	cells    map[ledger.Cell]*cellState
	spent    *spending
}

// cellState is the state of the attempts at a cell.
type cellState struct {
	attempts    int  // the highest number that was started
	failures    int  // infrastructure errors, interruptions left out
	interrupted int  // attempts that a kill or a signal ended
	unverified  int  // attempts that ended in errors which the agent may have forged
	done        bool // no attempt will follow
	verdict     string
	failure     *failure.Cause // why there is no verdict
	cause       string         // identifies equal failures
	open        map[int]bool   // started and not recorded
}

// NoDirectoryError is the error of a run directory that cannot be made.
type NoDirectoryError struct {
	Dir string
	Err error
}

func (e *NoDirectoryError) Error() string {
	if errors.Is(e.Err, syscall.ENOTDIR) {
		return e.Dir + " is a file; choose another --output"
	}
	return fmt.Sprintf("make run directory %s: %v; choose another --output", e.Dir, e.Err)
}

func (e *NoDirectoryError) Unwrap() error { return e.Err }

// OpenDirectory locks a run directory for a plan: it writes the plan into a new directory, or finds
// the same one there. A directory that another process works in, or that holds another experiment,
// is refused.
func OpenDirectory(dir string, wanted *Plan, redactor *redact.Redactor) (*Directory, error) {
	return OpenDirectoryWith(dir, wanted, redactor, ledger.Config{})
}

// OpenDirectoryWith is OpenDirectory with settings for the ledger, such as the key that signs it.
func OpenDirectoryWith(dir string, wanted *Plan, redactor *redact.Redactor, cfg ledger.Config) (*Directory, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, &NoDirectoryError{dir, err}
	}
	lock, err := lockDirectory(dir)
	if err != nil {
		return nil, err
	}
	d := &Directory{
		Path:     dir,
		Plan:     wanted,
		redactor: redactor,
		lock:     lock,
		cells:    map[ledger.Cell]*cellState{},
		spent:    newSpending(),
	}
	if err := d.open(wanted, cfg); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

func (d *Directory) open(wanted *Plan, cfg ledger.Config) error {
	stored, err := ReadPlan(d.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := d.fresh(); err != nil {
			return err
		}
		if err := writePlan(d.Path, wanted, d.redactor); err != nil {
			return err
		}
	case err != nil:
		return err
	default:
		if err := d.resume(stored, wanted); err != nil {
			return err
		}
	}
	if d.journal, err = openJournal(filepath.Join(d.Path, AttemptsFile), d.started); err != nil {
		return err
	}
	d.journal.noSync = cfg.NoSync
	cfg.Experiment = d.Plan.ID
	if d.ledger, err = ledger.Open(filepath.Join(d.Path, LedgerFile), cfg, d.recorded); err != nil {
		return err
	}
	if cfg.Key != nil && !d.ledger.Signs() {
		d.Notes = append(d.Notes, "the results are not signed: your key has not signed the existing records, or "+
			"has signed more than there are")
	}
	if d.ledger.Signs() && d.Plan.SignedBy == "" {
		d.Plan.SignedBy = cfg.Key.ID()
		if d.Plan.Shard.I <= 1 {
			d.Plan.Number = cfg.Key.Number(d.Plan.Family.Name)
		}
		return d.savePlan()
	}
	return d.bindPlan()
}

// savePlan writes the plan, and notes its digest beside the records.
func (d *Directory) savePlan() error {
	return cmp.Or(writePlan(d.Path, d.Plan, d.redactor), d.bindPlan())
}

func (d *Directory) bindPlan() error {
	digest, err := PlanDigest(d.Path)
	if err != nil {
		return err
	}
	return d.ledger.Bind(digest)
}

// resume continues the experiment that is there: as it is, or with what the wanted plan adds to it.
// An experiment without results is replaced by the wanted one.
func (d *Directory) resume(stored, wanted *Plan) error {
	d.Plan = stored
	d.compareTools(wanted)
	d.compareSettings(wanted)
	changes, growth := stored.differences(wanted)
	if len(changes)+len(growth) == 0 {
		return nil
	}
	contents, err := ledger.ReadFile(filepath.Join(d.Path, LedgerFile))
	if errors.Is(err, fs.ErrNotExist) {
		contents, err = &ledger.Contents{}, nil
	}
	if err != nil {
		return err
	}
	nothing := len(contents.Problems) == 0 && !slices.ContainsFunc(contents.Records,
		func(r ledger.Record) bool { return r.ErrorClass != ledger.ErrorInterrupted })
	switch {
	case nothing:
		d.Plan, d.Notes = wanted, nil
		if err := d.moveAside(stored); err != nil {
			return fmt.Errorf("plan again in %s: %w", d.Path, err)
		}
	case len(changes) > 0:
		return &DifferentError{Dir: d.Path, Differences: append(changes, growth...)}
	case stored.fixedSize() != "":
		return &DifferentError{Dir: d.Path, Differences: growth, Fixed: stored.fixedSize()}
	default:
		d.Plan = stored.grow(wanted, len(contents.Records), time.Now().UnixMilli())
		d.Notes = append(d.Notes, fmt.Sprintf("the experiment grows after %d attempts: %s; verdicts stay, and the "+
			"report says that its size was changed after looking", len(contents.Records), strings.Join(growth, ", ")))
	}
	return writePlan(d.Path, d.Plan, d.redactor)
}

// moveAside moves the files of an experiment without results into a separate directory.
func (d *Directory) moveAside(stored *Plan) error {
	aside := filepath.Join(d.Path, fmt.Sprintf("abandoned-%s-%d", stored.ID, time.Now().UnixMilli()))
	moved := 0
	note := ledger.NoteFile(LedgerFile)
	for _, name := range []string{LedgerFile, AttemptsFile, RunsDir, LabelsFile, note, PlanFile} {
		from := filepath.Join(d.Path, name)
		info, err := os.Lstat(from)
		if errors.Is(err, fs.ErrNotExist) || err == nil && (info.Size() == 0 || moved == 0 && name == PlanFile) {
			continue // an empty file, or a plan alone, is simply written over
		}
		if err == nil && moved == 0 && name == note { // it signs an empty ledger
			err = os.Remove(from)
			if err == nil {
				continue
			}
		}
		if err == nil {
			err = os.MkdirAll(aside, 0o700)
		}
		if err == nil {
			err = os.Rename(from, filepath.Join(aside, name))
		}
		if err != nil {
			return err
		}
		moved++
	}
	if moved > 0 {
		d.Notes = append(d.Notes, fmt.Sprintf("an earlier experiment recorded no result here; its files are in %s",
			aside))
	}
	return nil
}

// fresh makes sure that a directory without a plan holds no results: nothing may be added to
// results of unknown origin.
func (d *Directory) fresh() error {
	for _, name := range []string{LedgerFile, RunsDir} {
		if _, err := os.Lstat(filepath.Join(d.Path, name)); err == nil {
			return fmt.Errorf("%s contains %s but no %s, so its results cannot be traced to a plan; %w", d.Path, name,
				PlanFile, ErrTaken)
		}
	}
	for _, name := range []string{"family.yaml", "task.yaml"} {
		if _, err := os.Lstat(filepath.Join(d.Path, name)); err == nil {
			return fmt.Errorf("%s has a %s, so it holds tasks and not results; %w", d.Path, name, ErrTaken)
		}
	}
	return nil
}

func (d *Directory) compareTools(wanted *Plan) {
	for tool, before := range d.Plan.Tools {
		if now := wanted.Tools[tool]; now != before {
			d.Notes = append(d.Notes, fmt.Sprintf("the experiment was started with %s %s and continues with %s", tool,
				before, now))
		}
	}
}

// compareSettings notes what may change while an experiment runs, and that it did.
func (d *Directory) compareSettings(wanted *Plan) {
	for _, setting := range []struct{ flag, before, now string }{
		{"--concurrency", known(d.Plan.Concurrency), known(wanted.Concurrency)},
		{"--attempts", known(d.Plan.Attempts), known(wanted.Attempts)},
		{"--record", d.Plan.Calls, wanted.Calls},
	} {
		if setting.before != "" && setting.now != "" && setting.before != setting.now {
			d.Notes = append(d.Notes, fmt.Sprintf("the experiment was started with %s %s and continues with %s",
				setting.flag, setting.before, setting.now))
		}
	}
}

// known is a number as text; empty for 0, which is unknown.
func known(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

// state returns what is known about a cell.
func (d *Directory) state(cell ledger.Cell) *cellState {
	s := d.cells[cell]
	if s == nil {
		s = &cellState{}
		d.cells[cell] = s
	}
	return s
}

// started notes an attempt that an earlier process began.
func (d *Directory) started(s start) {
	if s.Probe != nil {
		d.spent.probed(s.Probe)
	}
	if s.Attempt == 0 {
		return
	}
	state := d.state(ledger.Cell{Arm: s.Arm, TaskID: s.TaskID, RunIndex: s.RunIndex})
	state.attempts = max(state.attempts, s.Attempt)
	if state.open == nil {
		state.open = map[int]bool{}
	}
	state.open[s.Attempt] = true
}

// RecordProbe records what a probe cost; budgets and totals count it.
func (d *Directory) RecordProbe(p Probe) error {
	d.spent.probed(&p)
	return d.journal.start(start{StartMs: time.Now().UnixMilli(), PID: os.Getpid(), Probe: &p})
}

// RecordProcess notes that a process begins to work here, or how it ended.
func (d *Directory) RecordProcess(p Process, now time.Time) error {
	return d.journal.start(start{StartMs: now.UnixMilli(), PID: os.Getpid(), Process: &p})
}

// RecordTasks writes the digest of tasks.json into the plan, so that a change of the file is found.
func (d *Directory) RecordTasks(digest string) error {
	if d.Plan.TasksDigest == digest {
		return nil
	}
	d.Plan.TasksDigest = digest
	return d.savePlan()
}

// note keeps the part of a record that is needed about its cell later.
func (d *Directory) note(state *cellState, r *ledger.Record) {
	state.verdict, state.done = r.Verdict, r.Final
	state.unverified = max(state.unverified, r.Unverified)
	state.failure, state.cause = nil, ""
	if r.Verdict == ledger.Error && r.ErrorClass != ledger.ErrorInterrupted {
		state.failure = failure.CauseOf(r)
		state.cause = causeOf(r)
	}
}

// causes counts why cells have no verdict.
func (d *Directory) causes() []failure.Cause {
	byCause := map[string]*failure.Cause{}
	for _, cell := range d.Plan.Cells() {
		state := d.cells[cell.Key()]
		if state == nil || state.failure == nil {
			continue
		}
		if known := byCause[state.cause]; known != nil {
			known.Runs++
			continue
		}
		first := *state.failure
		byCause[state.cause] = &first
	}
	var causes []failure.Cause
	for _, key := range slices.Sorted(maps.Keys(byCause)) {
		causes = append(causes, *byCause[key])
	}
	slices.SortStableFunc(causes, func(a, b failure.Cause) int { return b.Runs - a.Runs })
	return causes
}

// recorded notes a record of the ledger.
func (d *Directory) recorded(r *ledger.Record) error {
	state := d.state(r.Cell())
	state.attempts = max(state.attempts, r.Attempt)
	delete(state.open, r.Attempt)
	d.note(state, r)
	switch {
	case r.ErrorClass == ledger.ErrorInterrupted:
		state.interrupted++
	case r.Verdict == ledger.Error:
		state.failures++
	}
	d.spent.add(r)
	return nil
}

// redact returns the text of an error without secrets. Executors take them out of their records;
// errors come from anywhere.
func (d *Directory) redact(err error) string {
	return d.redactor.String(err.Error())
}

// Close unlocks the directory.
func (d *Directory) Close() error {
	var errs []error
	if d.ledger != nil {
		errs = append(errs, d.ledger.Close())
	}
	if d.journal != nil {
		errs = append(errs, d.journal.close())
	}
	if d.lock != nil {
		errs = append(errs, d.lock.Close())
	}
	d.ledger, d.journal, d.lock = nil, nil, nil
	return errors.Join(errs...)
}

// AttemptDir implements Sink: artefacts are written to their final place.
func (d *Directory) AttemptDir(runDir string) string {
	return filepath.Join(d.Path, filepath.FromSlash(runDir))
}

// Keep implements Sink: files in the run directory are kept already.
func (d *Directory) Keep(string) error { return nil }

// RunDir returns the directory of an attempt's artefacts, relative to the run directory, with
// slashes.
func (c Cell) RunDir(attempt int) string {
	return path.Join(RunsDir, fileName(c.TaskID), fileName(c.Arm), strconv.Itoa(c.RunIndex), strconv.Itoa(attempt))
}

// ReadPlan reads the plan of a run directory.
func ReadPlan(dir string) (*Plan, error) {
	content, err := os.ReadFile(filepath.Join(dir, PlanFile))
	if err != nil {
		return nil, fmt.Errorf("read plan: %w", err)
	}
	var plan Plan
	if err := json.Unmarshal(content, &plan); err != nil {
		return nil, fmt.Errorf("%s is damaged: %w; restore it from a copy, or run the experiment in a new directory",
			filepath.Join(dir, PlanFile), err)
	}
	if plan.Version > planVersion {
		return nil, fmt.Errorf("plan %s is of version %d; this program knows up to %d", filepath.Join(dir, PlanFile),
			plan.Version, planVersion)
	}
	return &plan, nil
}

// PlanDigest returns the digest of the file that holds the plan of a run directory.
func PlanDigest(dir string) (string, error) {
	content, err := os.ReadFile(filepath.Join(dir, PlanFile))
	if err != nil {
		return "", fmt.Errorf("read plan: %w", err)
	}
	return fmt.Sprintf("sha256:%x", sha256.Sum256(content)), nil
}

// WritePlan writes the plan of a run directory.
func WritePlan(dir string, plan *Plan) error { return writePlan(dir, plan, nil) }

// writePlan writes the plan atomically.
func writePlan(dir string, plan *Plan, redactor *redact.Redactor) error {
	content, err := json.MarshalIndent(plan, "", "  ")
	if err != nil {
		return fmt.Errorf("write plan: %w", err)
	}
	name := filepath.Join(dir, PlanFile)
	if err := atomicfile.WriteSynced(name, 0o600, redactor.JSON(content), []byte{'\n'}); err != nil {
		return fmt.Errorf("write plan: %w", err)
	}
	return nil
}
