package local

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/fit-eval/fit/internal/experiment"
	"github.com/fit-eval/fit/internal/grade"
	"github.com/fit-eval/fit/internal/query"
	"github.com/fit-eval/fit/internal/task"
	"github.com/fit-eval/fit/ledger"
	"github.com/fit-eval/fit/session"
)

// keepAnswer stores the answer to a sample, so that it can be graded again.
func (a *attempt) keepAnswer() error {
	if a.task.Sample == nil || a.answer == "" {
		return nil
	}
	return os.WriteFile(filepath.Join(a.dir, experiment.AnswerFile), []byte(a.redact.String(a.answer)), 0o600)
}

// answered returns the answer to a sample with the effort it took; nil for other tasks.
func (a *attempt) answered(agentMs int64) *grade.Answer {
	if a.task.Sample == nil {
		return nil
	}
	look := &traceCheck{file: filepath.Join(a.dir, agentTrace), dialects: a.machine.Registry.Dialects()}
	return &grade.Answer{
		Text:       a.answer,
		CostUSD:    a.record.CostUSD,
		DurationMs: agentMs,
		Turns:      a.record.Turns,
		Trace:      look.orTreatment(&a.record),
	}
}

// orTreatment is holds, and answers from a record whether its agent left a skill unopened.
func (t *traceCheck) orTreatment(r *ledger.Record) func(task.AnswerCheck) (bool, string, error) {
	return func(check task.AnswerCheck) (bool, string, error) {
		if check.Kind != task.CheckUnopened {
			return t.holds(check)
		}
		if r.Treatment == nil || r.Treatment.Unknown != "" {
			return false, "", fmt.Errorf("%w whether the skill was opened: the model calls were not recorded",
				grade.ErrUnknown)
		}
		for i := range r.Treatment.Pieces {
			switch p := &r.Treatment.Pieces[i]; {
			case p.Kind != ledger.PieceSkill || p.Name != check.Pattern:
			case p.Opened == nil:
				return false, "", fmt.Errorf("%w whether the skill was opened: its text reaches the model from "+
					"elsewhere too, or its calls are not all recorded", grade.ErrUnknown)
			case *p.Opened:
				return false, "the skill was opened", nil
			}
		}
		return true, "", nil
	}
}

// StoredAnswer returns the answer to a sample as an attempt in a run directory left it.
func StoredAnswer(top string, r *ledger.Record, dialects []session.Dialect) (*grade.Answer, error) {
	text, err := os.ReadFile(filepath.Join(top, filepath.FromSlash(r.RunDir), experiment.AnswerFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	look := &traceCheck{file: filepath.Join(top, filepath.FromSlash(r.AgentTracePath)), dialects: dialects}
	answer := &grade.Answer{
		Text:       string(text),
		CostUSD:    r.CostUSD,
		DurationMs: r.PhaseMs["agent"],
		Turns:      r.Turns,
		Trace:      look.orTreatment(r),
	}
	if r.CostBreakdown != nil {
		cost := r.CostBreakdown.Agent
		answer.CostUSD = &cost
	}
	return answer, nil
}

// traceCheck applies checks to the trace of an agent, which it reads once.
type traceCheck struct {
	file     string
	dialects []session.Dialect
	read     bool
	tools    map[string]int // calls, by name
	commands []string
	calls    int
	err      error
}

// holds is grade.Answer.Trace.
func (t *traceCheck) holds(check task.AnswerCheck) (bool, string, error) {
	if check.Kind == task.CheckTrace {
		row := query.Assertion{
			Test:   check.Name,
			File:   t.file,
			Query:  &check.Pattern,
			Unwrap: true,
		}.Check()
		return row.Pass, row.Message, row.Failed
	}
	if err := t.load(); err != nil {
		return false, "", fmt.Errorf("the trace: %w", err)
	}
	switch check.Kind {
	case task.CheckUsedTool:
		return t.tools[strings.ToLower(check.Pattern)] > 0, "the tool " + check.Pattern + " was not used", nil
	case task.CheckMaxToolCalls:
		return float64(t.calls) <= check.Limit, fmt.Sprintf("tools were called %d times", t.calls), nil
	case task.CheckDidNotRun:
		pattern, err := regexp.Compile(check.Pattern)
		if err != nil {
			return false, "", err
		}
		for _, command := range t.commands {
			if pattern.MatchString(command) {
				return false, "it ran " + command, nil
			}
		}
		return true, "", nil
	}
	return false, "", fmt.Errorf("unknown kind %s", check.Kind)
}

// load counts the tools of the trace, by the agent's own names for them and by ours.
func (t *traceCheck) load() error {
	if t.read {
		return t.err
	}
	t.read, t.tools = true, map[string]int{}
	count := func(e *session.EnrichedEvent) {
		if e.Tool == nil {
			return
		}
		t.calls++
		own, canonical := strings.ToLower(e.Tool.NativeName), e.Tool.Canonical
		t.tools[own]++
		if own != canonical {
			t.tools[canonical]++
		}
		if e.Tool.Command != "" {
			t.commands = append(t.commands, e.Tool.Command)
		}
	}
	_, t.err = session.ReadFile(t.file, t.dialects, session.Options{Flat: true, OnEvent: count})
	return t.err
}
