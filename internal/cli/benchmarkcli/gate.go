package benchmarkcli

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/pflag"

	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/cli/experimentcli"
	"github.com/fit-eval/fit/internal/report"
)

// gates turn what a report says into an exit code, where the user asks for it.
type gates struct {
	minPassRate share
	allPass     bool
}

func (g *gates) register(flags *pflag.FlagSet) {
	flags.Var(&g.minPassRate, "min-pass-rate",
		"gate: exit 1 unless the lower confidence bound of every arm's pass rate is at least this")
	flags.BoolVar(&g.allPass, "all-pass", false, "gate: exit 1 unless every run passed")
}

// share is a flag from 0 to 1; nil is not given.
type share struct{ value *float64 }

// Set implements pflag.Value.
func (s *share) Set(text string) error {
	value, err := strconv.ParseFloat(text, 64)
	if err != nil || !(value >= 0 && value <= 1) {
		return errors.New("must be from 0 to 1, e.g. 0.8 for 80%")
	}
	s.value = &value
	return nil
}

func (s *share) String() string {
	if s.value == nil {
		return "0"
	}
	return strconv.FormatFloat(*s.value, 'g', -1, 64)
}

// Type implements pflag.Value.
func (*share) Type() string { return "share" }

// sound returns an error where no gate can pass: delivery is not proven, or something withholds
// every claim about the group.
func (g *gates) sound(group *report.Group, proof *experimentcli.Proof) error {
	if err := proof.Check(group.Name, group.Treatment); err != nil {
		return err
	}
	if g.given() {
		for _, reason := range group.Withheld {
			return console.Exitf(console.ExitNegative, "gate of arm %s: withheld because %s", group.Name,
				reason.Sentence())
		}
	}
	return nil
}

// given reports whether the pass rate decides.
func (g *gates) given() bool { return g.allPass || g.minPassRate.value != nil }

// check returns an error unless every gate passes. Without results no gate passes, and runs whose
// outcome is not certain count as failed.
func (g *gates) check(built *report.Report, proof *experimentcli.Proof) error {
	if g.given() && len(built.Groups) == 0 {
		return console.Exitf(console.ExitNegative, "gate: there are no results")
	}
	for i := range built.Groups {
		if err := g.sound(&built.Groups[i], proof); err != nil {
			return err
		}
	}
	for i := range built.Groups {
		group := built.Groups[i].Alone()
		t := &group.Totals
		if g.given() && t.Runs == 0 {
			return console.Exitf(console.ExitNegative, "gate: no run of arm %s has a verdict, %d missing", group.Name,
				t.Missing)
		}
		if g.allPass && (t.Passed != t.Runs || t.Missing+t.Retried > 0) {
			return console.Exitf(console.ExitNegative, "gate --all-pass: %d of %s of arm %s passed, %d missing%s",
				t.Passed, report.Count(t.Planned, "run"), group.Name, t.Missing, retriedText(t))
		}
		if least := g.minPassRate.value; least != nil && group.LowerLimit() < *least {
			missing := ""
			if t.Missing+t.Retried > 0 {
				missing = fmt.Sprintf(" (of %s %d missing%s; they count as failed)",
					report.Count(t.Planned, "run"), t.Missing, retriedText(t))
			}
			return console.Exitf(console.ExitNegative,
				"gate --min-pass-rate %g: the lower confidence bound of arm %s is %.3f%s", *least, group.Name,
				group.LowerLimit(), missing)
		}
	}
	return nil
}

// retriedText counts the runs that only passed after an error or a failed model call, which no gate
// rests on.
func retriedText(t *report.Totals) string {
	if t.Retried == 0 {
		return ""
	}
	return fmt.Sprintf(", %d retried after an error or a failed model call", t.Retried)
}
