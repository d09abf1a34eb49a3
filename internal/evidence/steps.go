package evidence

import (
	"slices"
	"strings"

	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/session"
)

const (
	// maxStepText is how much of a step's text is kept, half from its beginning and half from its
	// end.
	maxStepText = 2 << 10
	// earlySteps and lateSteps bound the steps that are kept of a trace: the first ones and the
	// last ones.
	earlySteps, lateSteps = 150, 150
	lastMessages          = 3
	// maxPrompts and maxPromptText bound the system prompts that are kept.
	maxPrompts    = 512
	maxPromptText = 256 << 10
)

// stepLog keeps the part of a trace that judges are shown.
type stepLog struct {
	early    []Step
	late     []Step // a ring
	nextLate int
	leftOut  int
	messages []Step // the last ones of the agent
}

// add keeps a step.
func (l *stepLog) add(event *session.EnrichedEvent, kind, tool, text string) {
	l.keep(stepOf(event, kind, tool, text))
}

func stepOf(event *session.EnrichedEvent, kind, tool, text string) Step {
	return Step{
		Line:      event.RawLine,
		Seq:       event.Seq,
		TurnIndex: event.TurnIndex,
		ElapsedMs: event.ElapsedMs,
		Kind:      kind,
		Tool:      strings.Clone(tool),
		Text:      middleCut(text),
	}
}

func (l *stepLog) keep(step Step) {
	switch {
	case len(l.early) < earlySteps:
		l.early = append(l.early, step)
	case len(l.late) < lateSteps:
		l.late = append(l.late, step)
	default:
		l.late[l.nextLate] = step
		l.nextLate = (l.nextLate + 1) % lateSteps
		l.leftOut++
	}
}

// message keeps the last messages of the agent.
func (l *stepLog) message(event *session.EnrichedEvent) {
	if event.Role != "assistant" || event.Parent != "" || strings.TrimSpace(event.Text) == "" {
		return
	}
	if len(l.messages) == lastMessages {
		l.messages = append(l.messages[:0], l.messages[1:]...)
	}
	l.messages = append(l.messages, stepOf(event, StepMessage, "", event.Text))
}

// call keeps edits and test runs; of the other calls only those that fail are kept, with their
// result.
func (l *stepLog) call(event *session.EnrichedEvent, effective string) {
	switch effective {
	case session.ToolEdit, session.ToolWrite, session.ToolTest, session.ToolBuild:
		l.add(event, StepCall, effective, callText(event.Tool))
	case session.ToolBash:
		l.add(event, StepCall, effective, event.Tool.Command)
	}
}

// callText returns what a call asks for.
func callText(tool *session.ToolCall) string {
	if tool.Command != "" {
		return tool.Command
	}
	return strings.Join(append(slices.Clone(tool.Paths), string(tool.Args)), " ")
}

func (l *stepLog) result(event *session.EnrichedEvent, effective string, failed, isEdit bool) {
	if !failed && !isEdit && effective != session.ToolTest && effective != session.ToolBuild {
		return
	}
	step := stepOf(event, StepResult, effective, event.Result.Content)
	step.IsError = event.Result.IsError
	if event.Result.ExitCode != nil {
		code := *event.Result.ExitCode
		step.ExitCode = &code
	}
	l.keep(step)
}

// list returns the steps in order, and how many there was no room for.
func (l *stepLog) list() (steps []Step, leftOut int) {
	steps = slices.Concat(l.early, l.late[l.nextLate:], l.late[:l.nextLate], l.messages)
	slices.SortStableFunc(steps, func(a, b Step) int { return a.Seq - b.Seq })
	if steps == nil {
		steps = []Step{}
	}
	return steps, l.leftOut
}

// middleCut leaves out the middle of a long text.
func middleCut(text string) string {
	if len(text) <= maxStepText {
		return strings.Clone(text)
	}
	half := maxStepText / 2
	return display.FirstBytes(text, half) + "\n[…]\n" + display.LastBytes(text, half)
}

// promptLog keeps what reached the model beside the conversation.
type promptLog []PromptText

func (l *promptLog) add(label, text string, turn int) {
	if len(*l) >= maxPrompts {
		return
	}
	*l = append(*l, PromptText{
		Label:     strings.Clone(label),
		Content:   strings.Clone(display.FirstBytes(text, maxPromptText)),
		TurnIndex: turn,
		Bytes:     len(text),
		SHA256:    digestOf([]byte(text)),
	})
}

// Prompts returns the system prompts of a session in the form in which they are compared.
func Prompts(of []session.SystemPromptInjection) []PromptText {
	var log promptLog
	for _, p := range of {
		log.add(p.Label, p.Content, p.TurnIndex)
	}
	return log
}
