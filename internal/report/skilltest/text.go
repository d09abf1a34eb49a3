package skilltest

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"

	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/internal/report"
)

// readings says in words what an assertion says, in the order in which people should look.
var readings = []struct{ reading, short, text string }{
	{OnlyWith, "helps", "pass only with the skill: here it helps"},
	{onlyWithout, "harms", "pass only without the skill: here it harms"},
	{flaky, "flaky", "pass in some runs and fail in others"},
	{InNeither, "never", "fail in both arms: broken, or too hard"},
	{inBoth, "always", "pass in both arms and say nothing about the skill"},
	{unknown, "unknown", "have no run with a verdict in one of the arms"},
}

// shownText bounds an assertion in the table.
const shownText = 60

// Text writes the answer for a terminal: the decision first.
func (a *Answer) Text(w io.Writer) error {
	if len(a.UnjudgedCases) > 0 {
		fmt.Fprintf(w, "not run: %s with sentences only, which nothing decides: %s\n",
			report.Count(len(a.UnjudgedCases), "case"), display.Line(join(a.UnjudgedCases)))
	}
	if err := a.Comparison.Text(w); err != nil {
		return err
	}
	fmt.Fprintf(w, "\nassertions of %s\n", display.Line(a.Skill))
	table := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintf(table, "case\tassertion\tby\t%s\t%s\t\n", display.Line(a.Comparison.A.Arm),
		display.Line(a.Comparison.B.Arm))
	for i := range a.Assertions {
		one := &a.Assertions[i]
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", display.Line(one.Case),
			display.CutBytes(display.Line(one.Text), shownText), cmp.Or(one.Shown, "code"), one.Without, one.With,
			shortOf(one.Reading))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(w)
	for _, r := range readings {
		n := 0
		for i := range a.Assertions {
			if a.Assertions[i].Reading == r.reading {
				n++
			}
		}
		if n > 0 {
			fmt.Fprintf(w, "%s: %d %s\n", r.short, n, r.text)
		}
	}
	a.facts(w)
	return nil
}

// String returns the count as tables have it.
func (c Count) String() string { return fmt.Sprintf("%d of %d", c.Passed, c.Runs) }

// String returns the means in words.
func (s Summary) String() string {
	if s.Runs == 0 {
		return "none of " + report.Count(s.WithoutVerdict, "run") + " has a verdict"
	}
	text := fmt.Sprintf("%.0f%% of the assertions pass, %.1f s, ", 100*s.PassRate.Mean, s.Seconds.Mean)
	if s.Tokens == nil {
		text += "an unknown number of tokens"
	} else {
		text += fmt.Sprintf("%.0f tokens", s.Tokens.Mean)
	}
	if s.WithoutVerdict > 0 {
		text += fmt.Sprintf(" (%d of %d runs)", s.Runs, s.Runs+s.WithoutVerdict)
	}
	return text
}

func shortOf(reading string) string {
	for _, r := range readings {
		if r.reading == reading {
			return r.short
		}
	}
	return reading
}

// facts writes the lines below the table.
func (a *Answer) facts(w io.Writer) {
	fmt.Fprintf(w, "tokens: the description adds about %d to every call, the body about %d once it is opened\n",
		a.DescriptionTokens, a.BodyTokens)
	base, with := a.Summaries[a.Comparison.A.Arm], a.Summaries[a.Comparison.B.Arm]
	fmt.Fprintf(w, "per run with a verdict: %s; of %s: %s\n", with, display.Line(a.Comparison.A.Arm), base)
	if s := a.Silent; s != nil {
		fmt.Fprintf(w, "negative cases: %d; the skill was opened in %d of %d of their runs", s.Cases, s.Opened, s.Runs)
		if s.Unknown > 0 {
			fmt.Fprintf(w, ", and in %s nobody knows", report.Count(s.Unknown, "run"))
		}
		fmt.Fprintln(w)
	}
	if a.Unjudged > 0 {
		fmt.Fprintf(w, "unjudged: %s on sentences of runs, which nobody gave and which count nothing\n",
			report.Count(a.Unjudged, "verdict"))
	}
	for _, leak := range a.Leaks {
		fmt.Fprintf(w, "note: case %s repeats the skill and tests memory: %q\n", display.Line(leak.Case),
			display.CutBytes(display.Line(leak.Shared), 100))
	}
	for _, id := range slices.SortedFunc(maps.Keys(a.Feedback), naturally) {
		fmt.Fprintf(w, "feedback on case %s: %s\n", display.Line(id), display.Line(a.Feedback[id]))
	}
	if a.Needed != nil {
		fmt.Fprintln(w, a.Needed.sentence(a.Comparison.Decision.NTasks))
	}
}

func join(names []string) string {
	text := ""
	for i, name := range names {
		switch {
		case i == 12:
			return text + ", …"
		case i > 0:
			text += ", "
		}
		text += name
	}
	return text
}
