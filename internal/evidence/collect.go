package evidence

import (
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/fit-eval/fit/internal/jsontape"
	"github.com/fit-eval/fit/internal/patch"
	"github.com/fit-eval/fit/ledger"
	"github.com/fit-eval/fit/session"
)

// Sources is everything that is known about one attempt.
type Sources struct {
	Task   Task
	Record *ledger.Record
	// Trace is the agent's trace, which may be packed; nil: there is none.
	Trace io.Reader
	// Diff is the patch between the base and what the agent left.
	Diff []byte
	// Dialects are the formats that the trace may have.
	Dialects session.Dialects
	// Prices computes the cost of what an agent does not price itself; nil leaves it unknown.
	Prices session.Prices
	// Reviews are people's reviews of the attempt's flags.
	Reviews Reviews
}

// Collect computes the evidence about one attempt. The error is for a trace that cannot be read;
// problems of its content are part of the evidence.
func Collect(from Sources) (*Run, error) {
	task, record := &from.Task, from.Record
	f := &facts{
		task:    task,
		record:  record,
		patch:   ParseDiff(from.Diff),
		classes: newClassifier(task),
		verify:  verifyOf(record),
		session: &session.EnrichedSession{},
	}
	f.files = f.changes()
	if err := f.follow(from); err != nil {
		return nil, fmt.Errorf("evidence about %s: %w", cellName(record), err)
	}
	found := f.audit()
	from.Reviews.clear(found)
	f.critical = f.task.described() && isCritical(found)
	return f.run(found), nil
}

func cellName(record *ledger.Record) string {
	return fmt.Sprintf("%s/%s/%d", record.TaskID, record.Arm, record.RunIndex)
}

// ParseDiff reads a diff without git's own files in repositories below the workspace.
func ParseDiff(diff []byte) *patch.Patch {
	p := patch.Parse(diff)
	own := func(name string) bool { return name == "" || strings.Contains("/"+name, "/.git/") }
	p.Files = slices.DeleteFunc(p.Files, func(file patch.File) bool { return own(file.Old) && own(file.New) })
	return p
}

// changes lists the files of the diff.
func (f *facts) changes() []FileChange {
	list := []FileChange{}
	for i := range f.patch.Files {
		file := &f.patch.Files[i]
		change := FileChange{
			Path:   file.Path(),
			Status: file.Status,
			Binary: file.Binary,
			Class:  f.classes.class(file.Path()),
			Edit:   EditUnseen,
		}
		if file.Old != file.New && file.Old != "" && file.New != "" {
			change.Old = file.Old
		}
		change.Added, change.Removed = file.Counts()
		list = append(list, change)
	}
	return list
}

// agentLane is the lane of the one agent of a run.
const agentLane = "agent"

// follow reads the trace once, and keeps what one lane shows: the agent's, else the first one.
func (f *facts) follow(from Sources) error {
	if from.Trace == nil {
		return nil
	}
	changed := map[string]bool{}
	for _, file := range f.files {
		changed[file.Path] = true
	}
	observers := map[string]*observer{}
	enricher := &session.Enricher{Dialects: from.Dialects, Options: session.Options{
		Prices:        from.Prices,
		Flat:          true,
		VerifyCommand: f.task.VerifyCommand,
		Verify:        f.verify,
		Borrower:      jsontape.Borrow,
		OnEvent: func(event *session.EnrichedEvent) {
			seen := observers[event.Lane]
			if seen == nil {
				seen = newObserver(f.task, changed)
				observers[strings.Clone(event.Lane)] = seen
			}
			seen.observe(event)
		},
	}}
	if err := enricher.ReadPacked(from.Trace); err != nil {
		return err
	}
	sessions := enricher.Sessions()
	if len(sessions) == 0 {
		return nil
	}
	at := max(0, slices.IndexFunc(sessions, func(s *session.EnrichedSession) bool { return s.Lane == agentLane }))
	f.session, f.seen = sessions[at], observers[sessions[at].Lane]
	if f.seen == nil { // nothing but garbage
		f.seen = newObserver(f.task, changed)
	}
	for i := range f.files {
		if f.seen.edits.seen[f.files[i].Path] {
			f.files[i].Edit = EditSeen
		}
	}
	return nil
}

// audit collects the integrity flags. Neither part knows the outcome.
func (f *facts) audit() []session.IntegrityFlag {
	found := auditDiff(f.task, f.classes, f.patch).list
	if f.seen != nil {
		var seq int
		var line int64
		if n := len(f.seen.steps.messages); n > 0 {
			seq, line = f.seen.steps.messages[n-1].Seq, f.seen.steps.messages[n-1].Line
		}
		f.seen.audit.finish(f.session.Cwd, f.session.FinalText, line, seq)
		found = append(found, f.seen.audit.list...)
	}
	if found == nil {
		found = []session.IntegrityFlag{}
	}
	return found
}

// run puts the evidence together.
func (f *facts) run(found []session.IntegrityFlag) *Run {
	record := f.record
	r := &Run{
		Version:   Version,
		Key:       record.Key(),
		Agent:     record.Agent,
		Session:   *f.session,
		Captured:  f.seen != nil,
		Rubric:    f.rubric(),
		Files:     f.files,
		Prompts:   []PromptText{},
		Steps:     []Step{},
		Truncated: f.patch.Partial,
	}
	if f.seen != nil {
		r.Steps, r.StepsLeftOut = f.seen.steps.list()
		r.Prompts = append(r.Prompts, f.seen.prompts...)
	}
	if resolved := f.resolved(); resolved == nil || !*resolved {
		if f.verify == nil || !f.verify.Passed {
			r.Attribution = f.attribution()
		}
	}
	r.Status = f.status()
	f.fillSession(&r.Session, found, r.Status)
	r.Efficiency = f.efficiency()
	return r
}

// resolved returns the ledger's verdict, unless a critical flag overrules it.
func (f *facts) resolved() *bool {
	resolved := f.record.Verdict == ledger.Pass && !f.critical
	if f.record.Verdict == ledger.Error && !f.critical {
		return nil
	}
	return &resolved
}

// status follows the ledger: only the harness knows whether an attempt is missing data. What the
// agent's trace shows may explain a failure and never takes it out of the count.
func (f *facts) status() Status {
	switch {
	case f.critical:
		return StatusDisqualified
	case f.record.Verdict == ledger.Error:
		return StatusEnvError
	case f.timedOut() != nil:
		return StatusTimeout
	}
	return StatusOK
}

// fillSession writes into the session what its trace does not say.
func (f *facts) fillSession(s *session.EnrichedSession, found []session.IntegrityFlag, status Status) {
	record := f.record
	s.RunID = path.Base(record.RunDir)
	s.TaskID, s.RunIndex = record.TaskID, record.RunIndex
	if s.Agent == "" {
		s.Agent = session.AgentID(record.Agent)
	}
	s.Verify, s.Integrity = f.verify, found
	if s.TaskResolved = f.resolved(); status == StatusEnvError {
		s.TaskResolved = nil
	}
	s.Diff = session.DiffStat{}
	for _, file := range f.files {
		if file.Class == classGenerated {
			s.Diff.Generated++
			continue
		}
		s.Diff.Files++
		s.Diff.Insertions += file.Added
		s.Diff.Deletions += file.Removed
	}
	if s.Milestones == nil { // there was no trace
		s.Milestones, s.Messages, s.Events = []session.Milestone{}, []session.Message{}, []session.EnrichedEvent{}
		s.SystemPrompts = []session.SystemPromptInjection{}
	}
}

func (f *facts) efficiency() Efficiency {
	s := f.session
	e := Efficiency{
		WallClockMs: s.WallClockMs,
		Turns:       s.Turns,
		ToolCalls:   map[string]int{},
		Usage:       s.Usage,
	}
	if e.WallClockMs == 0 {
		e.WallClockMs = f.record.PhaseMs["agent"]
	}
	if input := s.Usage.InputTokens + s.Usage.CacheReadTokens + s.Usage.CacheWriteTokens; input > 0 {
		e.CacheHitRatio = score(float64(s.Usage.CacheReadTokens) / float64(input))
	}
	if f.seen == nil {
		return e
	}
	e.ToolCalls = f.seen.calls
	e.EditsAttempted, e.EditsFailed = f.seen.edits.attempted, f.seen.edits.failed
	e.FirstEditMs, e.GreenMs = f.seen.edits.firstMs, f.seen.tests.greenMs
	e.ExplorationShare = explorationShare(f.seen)
	return e
}

// explorationShare returns the share of calls that only explore.
func explorationShare(o *observer) *float64 {
	if o.total == 0 {
		return nil
	}
	looks := o.calls[session.ToolRead] + o.calls[session.ToolSearch] + o.calls[session.ToolList]
	return score(float64(looks) / float64(o.total))
}
