package ledger

import (
	"errors"
	"fmt"
	"math"
)

func (k Key) String() string {
	return fmt.Sprintf("%s/%s/%d#%d", k.TaskID, k.Arm, k.RunIndex, k.Attempt)
}

// Validate checks what every record must be, before it is written and after it was read.
func (r *Record) Validate() error {
	if wrong := r.wrongNumbers(); len(wrong) > 0 {
		return errors.New(wrong[0].text)
	}
	switch {
	case r.TaskID == "":
		return errors.New("a record needs a taskId")
	case r.RunIndex < 0:
		return errors.New("runIndex must not be negative")
	case r.Arm == "":
		return errors.New("a record needs an arm")
	case r.Attempt < 1:
		return errors.New("attempts are counted from 1")
	}
	if err := r.Grade.validate(); err != nil {
		return err
	}
	if r.PreflightError != nil && (r.Grade != nil || r.Invariants != nil || r.HiddenTests != nil ||
		r.JudgeVerdict != nil || r.AgentError != nil || r.Score != nil) {
		return errors.New("after a failed preflight nothing is graded, but the record has a grade")
	}
	return r.validateVerdict()
}

// wrongNumber is an impossible measurement, and how to leave it out.
type wrongNumber struct {
	text  string
	clear func()
}

func (r *Record) wrongNumbers() []wrongNumber {
	var wrong []wrongNumber
	if r.Turns < 0 {
		wrong = append(wrong, wrongNumber{"turns must not be negative", func() { r.Turns = 0 }})
	}
	if r.DurationMs < 0 {
		wrong = append(wrong, wrongNumber{"durationMs must not be negative", func() { r.DurationMs = 0 }})
	}
	if r.CostUSD != nil && !(*r.CostUSD >= 0 && !math.IsInf(*r.CostUSD, 0)) {
		wrong = append(wrong, wrongNumber{"costUsd must be a number that is not negative", func() { r.CostUSD = nil }})
	}
	if r.Score != nil && !(*r.Score >= 0 && *r.Score <= 1) {
		wrong = append(
			wrong,
			wrongNumber{fmt.Sprintf("score %v is outside [0, 1]", *r.Score), func() { r.Score = nil }},
		)
	}
	return wrong
}

// Repair makes a record valid, if it identifies its attempt: impossible measurements are left out,
// and a verdict that its grade does not support becomes an error. Invalid says what was wrong.
func (r *Record) Repair() {
	for _, number := range r.wrongNumbers() {
		number.clear()
		r.Invalid = append(r.Invalid, number.text)
	}
	err := r.Validate()
	if err == nil {
		return
	}
	r.Invalid = append(r.Invalid, err.Error())
	r.ErrorMessage = fmt.Sprintf("the executor made an invalid record with verdict %q: %v", r.Verdict, err)
	r.Verdict, r.ErrorClass, r.ErrorCause, r.Score = Error, ErrorInternal, "", nil
	if r.Grade.validate() != nil || r.PreflightError != nil {
		r.Grade, r.Invariants, r.HiddenTests, r.JudgeVerdict, r.AgentError = nil, nil, nil, nil, nil
	}
}

func (r *Record) validateVerdict() error {
	switch r.Verdict {
	case Pass, Fail:
		if r.ErrorClass != "" {
			return fmt.Errorf("a verdict of %s has no errorClass", r.Verdict)
		}
		if r.Grade == nil {
			return fmt.Errorf("a verdict of %s needs a grade", r.Verdict)
		}
		if !r.Final {
			return errors.New("a verdict is final")
		}
		if r.Verdict == Pass && r.Grade.Verdict != Pass {
			return errors.New("a pass needs a grade that passes")
		}
	case Error:
		if r.ErrorClass == "" {
			return errors.New("an error needs an errorClass")
		}
	default:
		return fmt.Errorf("verdict %q is none of %s, %s, %s", r.Verdict, Pass, Fail, Error)
	}
	return nil
}

func (g *Grade) validate() error {
	switch {
	case g == nil:
		return nil
	case g.Verdict != Pass && g.Verdict != Fail && g.Verdict != Error:
		return fmt.Errorf("grade verdict %q is none of %s, %s, %s", g.Verdict, Pass, Fail, Error)
	case g.Score != nil && !(*g.Score >= 0 && *g.Score <= 1):
		return fmt.Errorf("grade score %v is outside [0, 1]", *g.Score)
	case g.Malformed < 0:
		return errors.New("malformed must not be negative")
	}
	return nil
}
