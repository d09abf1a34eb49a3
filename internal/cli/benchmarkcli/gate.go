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

// share is a flag from 0 to 1.
type share float64

// Set implements pflag.Value.
func (s *share) Set(text string) error {
	value, err := strconv.ParseFloat(text, 64)
	if err != nil || !(value >= 0 && value <= 1) {
		return errors.New("must be from 0 to 1, e.g. 0.8 for 80%")
	}
	*s = share(value)
	return nil
}

func (s *share) String() string { return strconv.FormatFloat(float64(*s), 'g', -1, 64) }

// Type implements pflag.Value.
func (*share) Type() string { return "share" }

// sound returns an error where no gate can pass: delivery is not proven, or something withholds
// every claim about the group.
func (g *gates) sound(group *report.Group, proof *experimentcli.Proof) error {
	if err := proof.Check(group.Name, group.Treatment); err != nil {
		return err
	}
	if g.allPass || g.minPassRate > 0 {
		for _, reason := range group.Withheld {
			return console.Exitf(console.ExitNegative, "gate of arm %s: withheld because %s", group.Name,
				reason.Sentence())
		}
	}
	return nil
}

// check returns an error unless every gate passes. Without results no gate passes.
func (g *gates) check(built *report.Report, proof *experimentcli.Proof) error {
	if (g.allPass || g.minPassRate > 0) && len(built.Groups) == 0 {
		return console.Exitf(console.ExitNegative, "gate: there are no results")
	}
	for i := range built.Groups {
		if err := g.sound(&built.Groups[i], proof); err != nil {
			return err
		}
	}
	for i := range built.Groups {
		group := &built.Groups[i]
		if t := &group.Totals; g.allPass && (t.Passed != t.Runs || t.Missing > 0) {
			return console.Exitf(console.ExitNegative, "gate --all-pass: %d of %d runs of arm %s passed, %d missing",
				t.Passed, t.Planned, group.Name, t.Missing)
		}
		if low := group.LowerLimit(); low < float64(g.minPassRate) {
			missing := ""
			if group.Totals.Missing > 0 {
				missing = fmt.Sprintf(" (%d of %d runs are missing and count as failed)", group.Totals.Missing,
					group.Totals.Planned)
			}
			return console.Exitf(console.ExitNegative,
				"gate --min-pass-rate %g: the lower confidence bound of arm %s is %.3f%s", g.minPassRate, group.Name,
				low, missing)
		}
	}
	return nil
}
