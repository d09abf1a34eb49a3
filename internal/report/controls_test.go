package report

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fit-eval/fit/ledger"
	"github.com/fit-eval/fit/stats"
)

// An experiment whose shadow of the baseline differs from it, or whose known effect is not found,
// claims nothing; one whose controls hold claims what it did without them.
func TestAClaimRestsOnItsControls(t *testing.T) {
	for name, test := range map[string]struct {
		shadow, known string
		late          bool   // the controls ran a day later
		want          string // empty: nothing is withheld
	}{
		"both hold": {"FFF", "PPP", false, ""},
		"the shadow differs": {
			"PPP", "PPP", false, "the shadow of the baseline, control-shadow, differs from it (+100.0 points, ",
		},
		"the effect has another direction": {
			"FFF", "PPP", false, "the effect of control-known (+100.0 points, p = 0.000488) is not worse, as the family declares it",
		},
		"the effect is not found":    {"FFF", "FFF", false, "the known effect of control-known was not found (+0.0 points, "},
		"the control has no verdict": {"EEE", "PPP", false, "the control control-shadow has no task with verdicts on both sides"},
		"the controls ran later": {
			"FFF", "PPP", true, "the control control-shadow shows nothing about the other arms: 0 of 36 runs of a ran while " +
				"control-shadow did",
		},
	} {
		t.Run(name, func(t *testing.T) {
			declared := "better"
			if strings.Contains(test.want, "is not worse") {
				declared = "worse"
			}
			var records []ledger.Record
			runs := map[string][]int{}
			for arm, word := range map[string]string{
				"a": "FFF", "b": "PPF", "control-shadow": test.shadow, "control-known": test.known,
			} {
				records = append(records, armRuns(arm, repeat(word, 12)...)...)
			}
			day := time.Date(2026, 7, 1, 0, 0, 0, 0, time.UTC)
			for i, r := range records {
				atMinute(&records[i], day, i%36)
				if test.late && strings.HasPrefix(r.Arm, "control") {
					atMinute(&records[i], day.AddDate(0, 0, 1), i%36)
				}
				if !slices.Contains(runs[r.TaskID], r.RunIndex) {
					runs[r.TaskID] = append(runs[r.TaskID], r.RunIndex)
				}
			}
			built := build(t, Input{Records: records, K: []int{1}, Planned: &Planned{
				Arms:     []string{"a", "b", "control-shadow", "control-known"},
				Runs:     runs,
				Controls: Controls{Shadow: "control-shadow", Known: "control-known", Effect: declared},
			}})
			if len(built.Groups) != 2 || len(built.Controls) != 2 {
				t.Fatalf("%d groups, %d controls", len(built.Groups), len(built.Controls))
			}
			c, err := Compare(&built.Groups[0], &built.Groups[1], CompareConfig{NonInferior: .05})
			if err != nil {
				t.Fatal(err)
			}
			head, _, _ := strings.Cut(textOf(t, c), "\n\n")
			wantIn(t, head, "controls: ")
			if len(c.Controls) != 2 || c.Validity != ValidityPage {
				t.Errorf("JSON says %+v of the controls, and %q of validity", c.Controls, c.Validity)
			}
			if test.want == "" {
				if c.Decision.Claim != stats.Improved || len(c.Withheld) > 0 {
					t.Errorf("%+v %s", c.Withheld, c.Decision.Sentence)
				}
				return
			}
			if c.Differ() || c.Decision.NonInferior.Shown || len(c.Withheld) != 1 ||
				c.Withheld[0].Key != reasonControls {
				t.Fatalf("%+v %s", c.Withheld, c.Decision.Sentence)
			}
			wantIn(t, c.Decision.Sentence, test.want)
		})
	}
}
