package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/fit-eval/fit/ledger"
	"github.com/fit-eval/fit/stats"
)

// skillPiece is a skill that an arm brings.
func skillPiece(name, given string) ledger.Piece {
	return ledger.Piece{
		Kind:   ledger.PieceSkill,
		Name:   name,
		Path:   ".claude/skills/" + name + "/SKILL.md",
		Digest: "sha256:" + name,
		From:   ledger.FromArm,
		Given:  given,
	}
}

// treated gives the runs of an arm what pieces returns for the n-th of them.
func treated(records []ledger.Record, pieces func(n int) []ledger.Piece) []ledger.Record {
	for i := range records {
		records[i].Treatment = &ledger.Treatment{Context: "project"}
		if pieces != nil {
			records[i].Treatment.Pieces = pieces(i)
		}
	}
	return records
}

// opening returns a skill that the first n runs opened.
func opening(n int) func(int) []ledger.Piece {
	return func(run int) []ledger.Piece {
		piece := skillPiece("csv-tools", ledger.GivenWhole)
		opened := run < n
		piece.Opened = &opened
		return []ledger.Piece{piece}
	}
}

func beforeRuns() []ledger.Record { return treated(armRuns("before", repeat("FFF", 12)...), nil) }

func textOf(t *testing.T, c *Comparison) string {
	t.Helper()
	var out bytes.Buffer
	if err := c.Text(&out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// Every answer says in how many runs the model was given what was changed, and opened it.
func TestAnAnswerSaysWhatTheModelsWereGiven(t *testing.T) {
	after := treated(armRuns("after", repeat("PPF", 12)...), opening(21))
	records := append(beforeRuns(), after...)
	built := build(t, Input{Records: records, Planned: &Planned{Arms: []string{"before", "after"}}, K: []int{1}})
	c, err := Compare(&built.Groups[0], &built.Groups[1], CompareConfig{})
	if err != nil {
		t.Fatal(err)
	}
	const line = "treatment: skill csv-tools given in 36 of 36 runs of after and 0 of 36 of before, opened in 21 of 36 " +
		"(58% [41, 74])"
	const chosen = "not randomised: runs of after that opened the skill csv-tools passed in 14 of 21 (67% [43, 85]), " +
		"the others in 10 of 15 (67% [38, 88])"
	var comparison, text, junit bytes.Buffer
	for _, err := range []error{
		c.Markdown(&comparison), built.Text(&text, []int{1}), built.JUnit(&junit),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, out := range map[string]string{"text": textOf(t, c), "Markdown": comparison.String()} {
		t.Run(name, func(t *testing.T) {
			if !strings.Contains(out, line) || !strings.Contains(out, chosen) {
				t.Errorf("%s of a comparison lacks the treatment:\n%s", name, out)
			}
		})
	}
	wantIn(t, text.String(), "treatment: skill csv-tools given in 36 of 36 runs, opened in 21 of 36 (58% [41, 74])")
	wantIn(t, markdownOf(t, built, []int{1}, Compact), "- treatment: skill csv-tools given in 36 of 36 runs, opened in")
	wantIn(t, junit.String(), `<property name="treatment" value="skill csv-tools given in 36 of 36 runs, opened in`)
	if encoded, err := json.Marshal(c); err != nil || !bytes.Contains(encoded, []byte(`"whole":36,`)) ||
		!bytes.Contains(encoded, []byte(`"notRandomised":true`)) {
		t.Errorf("%s %v", encoded, err)
	}
	if c.Decision.Claim != stats.Improved || strings.Contains(c.Decision.Sentence, "unknown") ||
		strings.Contains(c.Decision.Sentence, "opened") || c.Treatment.Undelivered() != "" {
		t.Errorf("%s %s", c.Decision.Sentence, c.Treatment.Undelivered())
	}
}

func TestLinesOfTreatment(t *testing.T) {
	one := func(pieces ...ledger.Piece) func(int) []ledger.Piece {
		return func(int) []ledger.Piece { return pieces }
	}
	with := func(change func(*ledger.Piece)) func(int) []ledger.Piece {
		piece := skillPiece("csv-tools", ledger.GivenWhole)
		change(&piece)
		return one(piece)
	}
	var many []ledger.Piece
	for i := range 61 {
		many = append(many, skillPiece(fmt.Sprintf("s%02d", i), ledger.GivenWhole))
	}
	grades := func(run int) []ledger.Piece {
		grade := []string{ledger.GivenWhole, ledger.GivenPart, ledger.GivenName, ledger.GivenUnknown}[run%4]
		piece := skillPiece("csv-tools", grade)
		if grade == ledger.GivenUnknown {
			piece.Why = "a subscription does not pass the gateway"
		}
		return []ledger.Piece{piece}
	}
	for name, test := range map[string]struct {
		before, after func(int) []ledger.Piece
		want          string
		remark        string
	}{
		"grades": {
			nil, grades,
			"skill csv-tools given in 27 of 36 runs of after (whole in 9, in part in 9, by name only in 9, delivery " +
				"unknown in 9: a subscription does not pass the gateway) and 0 of 36 of before",
			"delivery unknown in 9 of 72 runs",
		},
		"many skills share a line": {nil, one(many...), "skills s00, s01, s02 and 58 more given in 36 of 36 runs of " +
			"after and 0 of 36 of before", ""},
		"two versions": {
			with(func(p *ledger.Piece) { p.Digest = "sha256:old" }), with(func(*ledger.Piece) {}),
			"skill csv-tools (another version in each arm) given in 36 of 36 runs of after and 36 of 36 of before", "",
		},
		"what the task brings to one agent": {nil, with(func(p *ledger.Piece) {
			p.Kind, p.Name, p.From = ledger.PieceInstructions, "CLAUDE.md", ledger.FromTask
		}), "instructions CLAUDE.md given in 36 of 36 runs of after and 0 of 36 of before", ""},
		"a skill that was never opened": {
			nil, opening(0),
			"skill csv-tools given in 36 of 36 runs of after and 0 of 36 of before, opened in 0 of 36 (0% [0, 10])",
			"the skill csv-tools was never opened",
		},
		"a version that was never opened": {
			func(run int) []ledger.Piece {
				pieces := opening(0)(run)
				pieces[0].Digest = "sha256:old"
				return pieces
			}, opening(36),
			"opened in 36 of 36 of after (100% [90, 100]) and 0 of 36 of before (0% [0, 10])",
			"the skill csv-tools was never opened in before",
		},
	} {
		t.Run(name, func(t *testing.T) {
			built := build(t, Input{K: []int{1}, Planned: &Planned{Arms: []string{"before", "after"}}, Records: append(
				treated(armRuns("before", repeat("FFF", 12)...), test.before),
				treated(armRuns("after", repeat("PPF", 12)...), test.after)...,
			)})
			c, err := Compare(&built.Groups[0], &built.Groups[1], CompareConfig{})
			if err != nil {
				t.Fatal(err)
			}
			if lines := strings.Join(c.Treatment.Lines, "\n"); !strings.Contains(lines, test.want) {
				t.Errorf("%q is not in:\n%s", test.want, lines)
			}
			if remark := c.Treatment.Remark(); remark != test.remark {
				t.Errorf("remark %q, want %q", remark, test.remark)
			}
			first, _, _ := strings.Cut(textOf(t, c), "\n")
			if !strings.Contains(first, test.remark) {
				t.Errorf("%q is not in the first line: %s", test.remark, first)
			}
		})
	}
}

// What all arms have in the same version is not what was changed.
func TestASharedSkillThatNobodyOpensIsNoPartOfTheDecision(t *testing.T) {
	shared := func(run int) []ledger.Piece {
		pieces := opening(0)(run)
		pieces[0].From = ledger.FromFamily
		return pieces
	}
	c := compared(t, CompareConfig{}, treated(armRuns("a", repeat("FFF", 12)...), shared),
		treated(armRuns("b", repeat("PPF", 12)...), shared))
	if c.Treatment.Remark() != "" {
		t.Error(c.Treatment.Remark())
	}
	wantIn(t, textOf(t, c), "skill csv-tools given in 36 of 36 runs of b and 36 of 36 of a, opened in 0 of 36 of b")
}

// Results of older versions say nothing about delivery: that is said once, and the claim stands.
func TestOldResultsHaveUnknownDelivery(t *testing.T) {
	c := compared(t, CompareConfig{}, armRuns("a", repeat("FFF", 12)...), armRuns("b", repeat("PPF", 12)...))
	text := textOf(t, c)
	if first, _, _ := strings.Cut(text, "\n"); c.Decision.Claim != stats.Improved ||
		!strings.Contains(first, "than a; delivery unknown (95% CI") {
		t.Error(first)
	}
	if n := strings.Count(text, "treatment: "); n != 1 {
		t.Errorf("said %d times:\n%s", n, text)
	}
	if arm := c.Treatment.Arms[0]; arm.Context["none"] != 36 || arm.Unrecorded != 36 {
		t.Errorf("%+v", arm)
	}
	wantIn(t, c.Treatment.Undelivered(), "delivery is unknown in 72 of 72 runs: recorded by an earlier version")
}

// A run that lacked its treatment is missing data, which could change the answer.
func TestRunsWithoutTheirTreatmentAreMissing(t *testing.T) {
	after := treated(armRuns("after", repeat("PPF", 12)...), opening(36))
	for i := range after {
		if after[i].RunIndex == 2 && i < 30 {
			after[i].Verdict, after[i].ErrorClass = ledger.Error, ledger.ErrorNotDelivered
		}
	}
	built := build(t, Input{Records: append(beforeRuns(), after...), K: []int{1}})
	c, err := Compare(&built.Groups[1], &built.Groups[0], CompareConfig{})
	if err != nil {
		t.Fatal(err)
	}
	if c.Unsure.B.Missing != 10 || c.Bounds == nil || c.Treatment.Arms[0].NotDelivered != 10 {
		t.Errorf("%+v %+v", c.Unsure, c.Treatment.Arms[0])
	}
	wantIn(t, textOf(t, c), "skill csv-tools given in 26 of 26 runs of after and 0 of 36 of before",
		"treatment: 10 runs of after lacked it and count as missing data (not_delivered)")
}

// A family of arms has the same line for all of them, and says the same first.
func TestSeveralArmsHaveOneLineOfTreatment(t *testing.T) {
	records := slices.Concat(beforeRuns(), treated(armRuns("after", repeat("PPF", 12)...), opening(0)),
		treated(armRuns("third", repeat("FFF", 12)...), nil))
	built := build(t, Input{Records: records, K: []int{1}})
	groups := []*Group{&built.Groups[1], &built.Groups[0], &built.Groups[2]}
	family, err := CompareArms(groups, true, CompareConfig{})
	if err != nil {
		t.Fatal(err)
	}
	var text, markdown bytes.Buffer
	if err := family.Text(&text); err != nil {
		t.Fatal(err)
	}
	if err := family.Markdown(&markdown); err != nil {
		t.Fatal(err)
	}
	for _, out := range []string{text.String(), markdown.String()} {
		wantIn(t, out, "the skill csv-tools was never opened", "treatment: skill csv-tools given in 36 of 36 runs of after, "+
			"0 of 36 of before and 0 of 36 of third, opened in 0 of 36")
	}
	wantIn(t, family.Pairs[0].Decision.Sentence, "the skill csv-tools was never opened")
}

func TestAgentsThatReadDifferentPartsOfTheirProjectAreNamed(t *testing.T) {
	after := treated(armRuns("after", repeat("PPF", 12)...), nil)
	for i := range after {
		after[i].Treatment.Context = "none"
	}
	wantIn(t, textOf(t, compared(t, CompareConfig{}, beforeRuns(), after)),
		"treatment: agents read different parts of their project: context project of before and none of after")
}

// The answer names everything in which the arms differ: what was declared, and what comes with the
// agent or model.
func TestAnAnswerNamesWhatTheArmsDifferIn(t *testing.T) {
	planned := &Planned{Arms: []string{"before", "after", "third"}, Declared: &Declared{
		Differs: map[string][]string{"after": {"skill csv-tools", "lead codex"}, "third": {"model opus"}},
		Requests: []RequestPair{{Baseline: "before", Arm: "after", Differences: []RequestDifference{
			{What: "tools", Before: "12", After: "14", Cause: "the agent or model", Undeclared: true},
			{What: "lead", After: "codex", Cause: "lead"},
			{What: "options", Before: `{"top_p":1}`, Undeclared: true},
		}}},
	}}
	records := slices.Concat(beforeRuns(), treated(armRuns("after", repeat("PPF", 12)...), nil),
		treated(armRuns("third", repeat("PPF", 12)...), nil))
	built := build(t, Input{Records: records, Planned: planned, K: []int{1}})
	before, after, third := &built.Groups[0], &built.Groups[1], &built.Groups[2]
	for _, test := range []struct {
		a, b *Group
		want []string
	}{
		{before, after, []string{
			"after differs from before in: skill csv-tools, lead codex\n",
			"comes with the agent or model: tools (12; 14), options ({\"top_p\":1}; none)\n",
		}},
		{after, before, []string{
			"before differs from after in: after has skill csv-tools, lead codex\n",
			"comes with the agent or model: tools (14; 12), options (none; {\"top_p\":1})\n",
		}},
		{after, third, []string{"third differs from after in: after has skill csv-tools, lead codex, third has model opus\n"}},
	} {
		c, err := Compare(test.a, test.b, CompareConfig{})
		if err != nil {
			t.Fatal(err)
		}
		wantIn(t, textOf(t, c), test.want...)
	}
	family, err := CompareArms([]*Group{before, after, third}, true, CompareConfig{})
	if err != nil {
		t.Fatal(err)
	}
	var text, junit bytes.Buffer
	for _, err := range []error{family.Text(&text), built.JUnit(&junit)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	wantIn(t, text.String(), "third differs from the baseline in: model opus\n",
		"after against before: comes with the agent or model: tools (12; 14)")
	wantIn(t, junit.String(), `<property name="differs" value="lead codex">`)
	wantIn(t, markdownOf(t, built, []int{1}, Compact), "- differs from the baseline in: skill csv-tools, lead codex\n")
	if encoded, err := json.Marshal(family); err != nil || !strings.Contains(string(encoded), `"cause":"lead"`) {
		t.Errorf("%s %v", encoded, err)
	}
}
