package grade

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/internal/jsonenc"
	"github.com/fit-eval/fit/internal/task"
	"github.com/fit-eval/fit/internal/workspace"
)

// Answer is an agent's answer to a sample of a dataset, with the effort it took.
type Answer struct {
	// Text is its last message. Where the answer is a file, that is read instead.
	Text       string
	CostUSD    *float64 // nil is unknown
	DurationMs int64    // of the agent
	Turns      int
	// Trace answers the checks of kind trace, usedTool, didNotRun and maxToolCalls: whether they
	// hold, and if not why. An error says that it is unknown, ErrUnknown that it stays so. nil
	// means that there is no trace.
	Trace func(task.AnswerCheck) (holds bool, why string, err error)
}

// ErrUnknown is the error of a check about which nobody knows anything, however often it is made.
var ErrUnknown = errors.New("nobody knows")

// maxAnswer bounds the file that has an answer.
const maxAnswer = 4 << 20

// judgeAnswer applies the checks of a sample to the answer.
func (g *grading) judgeAnswer(ctx context.Context) (graded, error) {
	sample := g.Task.Sample
	if sample == nil {
		return graded{}, nil
	}
	answer := g.Answer
	if g.fromBase || answer == nil {
		answer = &Answer{}
	}
	text, why, err := g.answerText(ctx, answer)
	if err != nil {
		return graded{}, err
	}
	var found graded
	if len(sample.Checks) == 0 && (g.Task.JudgeTemplate != "" || len(sample.Statements) > 0) {
		// A judge decides, but the answer must exist.
		found.rows = append(found.rows, testRow("answered", true, 0, strings.TrimSpace(text) != "",
			cmp.Or(why, "the answer is empty")))
	}
	for _, check := range sample.Checks {
		if check.Kind == task.CheckCommand {
			rows, health, err := g.scoreByCommand(ctx, check, answer, text)
			if err != nil {
				return found, err
			}
			found.rows = append(found.rows, rows...)
			if !health.ok() && found.health.ok() || health.graderFault {
				found.health = health
			}
			continue
		}
		seen, missing := text, why
		if check.File != "" {
			if seen, missing, err = g.fileText(ctx, check.File); err != nil {
				return found, err
			}
		}
		if check.Kind == task.CheckExists {
			found.rows = append(found.rows, answerTestRow(check, (missing == "") != check.Not, missing))
			continue
		}
		row, health := g.answerRow(check, answer, seen, missing)
		found.rows = append(found.rows, row)
		if !health.ok() {
			found.health = health
		}
	}
	return found, nil
}

// answerRow makes the row of one check. An unknown fact is missing data, not a fail.
func (g *grading) answerRow(check task.AnswerCheck, answer *Answer, text, missing string) (Row, health) {
	holds, why, err := compareAnswer(check, answer, text)
	if err != nil {
		broken := health{broken: fmt.Sprintf("the check %s: %v", check.Name, err), graderFault: true}
		if errors.Is(err, ErrUnknown) {
			broken.cause = causeUnknown
		}
		return testRow(check.Name, check.Gate, check.Weight, false, err.Error()), broken
	}
	if holds == check.Not {
		if check.Not {
			why = "it holds, but must not"
		}
		if missing != "" {
			why = missing
		}
	}
	return answerTestRow(check, holds != check.Not, g.Redactor.String(why)), health{}
}

func answerTestRow(check task.AnswerCheck, pass bool, why string) Row {
	row := testRow(check.Name, check.Gate, check.Weight, pass, display.CutBytes(why, 1000))
	if check.Weight == 0 && !check.Gate {
		row.Role, row.Weight = Diagnostic, 0
		row.Raw = append(bytes.TrimSuffix(row.Raw, []byte("}")), `,"weight":0}`...)
	}
	return row
}

// answerText returns the answer: the agent's last message, or what is in the file that the dataset
// names. The second result says why there is none.
func (g *grading) answerText(ctx context.Context, answer *Answer) (text, why string, err error) {
	name := g.Task.Sample.AnswerFile
	if name == "" {
		return answer.Text, "", nil
	}
	if text, why, err = g.fileText(ctx, name); why != "" {
		why = "the answer is to be in " + why
	}
	return text, why, err
}

// fileText returns the text of a file that the agent left. The second result says why there is
// none.
func (g *grading) fileText(ctx context.Context, name string) (text, why string, err error) {
	copied, err := g.copy(ctx)
	if _, unfit := errors.AsType[*copyError](err); unfit {
		return "", err.Error(), nil
	}
	if err != nil {
		return "", "", err
	}
	defer func() { _ = copied.Remove() }()
	content, err := readInside(copied, name)
	if err != nil {
		return "", fmt.Sprintf("%s: %v", name, err), nil
	}
	return string(content), "", nil
}

// readInside reads a text file of a copy, without following links out of it.
func readInside(copied *workspace.Copy, name string) ([]byte, error) {
	root, err := os.OpenRoot(copied.Dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	file, err := root.Open(filepath.FromSlash(name))
	if errors.Is(err, os.ErrNotExist) {
		return nil, errors.New("there is no such file")
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() || info.Size() > maxAnswer {
		return nil, fmt.Errorf("it is not a file of at most %d bytes", maxAnswer)
	}
	content, err := io.ReadAll(file)
	if err == nil && !utf8.Valid(content) {
		return nil, errors.New("it is not text: not valid UTF-8")
	}
	return content, err
}

// scoring is the input of a check's command, on its standard input.
type scoring struct {
	ID         string         `json:"id"`
	Prompt     string         `json:"prompt"`
	Answer     string         `json:"answer"`
	Sample     map[string]any `json:"sample"`
	CostUSD    *float64       `json:"costUsd"`
	DurationMs int64          `json:"durationMs"`
	Turns      int            `json:"turns"`
}

// scoreByCommand runs the command of a check on a copy. A command that does not work with the
// answer, but works with an empty one, was broken by the answer, which is a fail.
func (g *grading) scoreByCommand(ctx context.Context, check task.AnswerCheck, answer *Answer, text string,
) ([]Row, health, error) {
	rows, problem, err := g.runScoring(ctx, check, answer, text)
	if err != nil || problem == "" {
		return rows, health{}, err
	}
	broken := fmt.Sprintf("the command of the check %s %s", check.Name, problem)
	_, without, err := g.unrecorded().runScoring(ctx, check, &Answer{}, "")
	if without != "" {
		return rows, health{broken: broken + "; with an empty answer: " + without, graderFault: true}, err
	}
	return rows, health{broken: broken}, err
}

func (g *grading) runScoring(ctx context.Context, check task.AnswerCheck, answer *Answer, text string,
) (rows []Row, problem string, err error) {
	input, err := jsonenc.Marshal(scoring{
		ID:         g.Task.ID,
		Prompt:     g.Task.Prompt,
		Answer:     text,
		Sample:     g.Task.Sample.Columns,
		CostUSD:    answer.CostUSD,
		DurationMs: answer.DurationMs,
		Turns:      answer.Turns,
	})
	if err != nil {
		return nil, "", err
	}
	copied, err := g.copy(ctx, gitSettings...)
	if _, unfit := errors.AsType[*copyError](err); unfit {
		return nil, err.Error(), nil
	}
	if err != nil {
		return nil, "", err
	}
	defer func() { _ = copied.Remove() }()
	place := g.Source.Hook(copied.Dir)
	argv, shell, err := g.guardShell(check.Command, copied.Dir, place)
	if err != nil {
		return nil, "", fmt.Errorf("command of the check %s: %w", check.Name, err)
	}
	var printed capture
	done, err := g.run(ctx, program{
		argv:     argv,
		dir:      copied.Dir,
		place:    place,
		env:      hookEnvironment(place),
		stdin:    append(input, '\n'),
		readable: visible(shell),
		timeout:  g.Task.Settings.Timeouts.Invariants,
		watch:    &printed,
		private:  true,
	})
	if err != nil {
		return nil, "", err
	}
	g.keep(check.Name+".stderr.log", done.stderr.Bytes())
	rows = parseRows(g.redactRows(printed.data))
	aborted := done.abortReason()
	switch {
	case aborted != "":
		return rows, aborted, nil
	case done.status() != 0:
		return rows, fmt.Sprintf("ended with status %d: %s", done.status(), done.stderr.last(300)), nil
	case len(rows) == 0:
		return rows, "printed no row: print {\"test\": \"name\", \"pass\": true}", nil
	}
	return rows, "", nil
}
