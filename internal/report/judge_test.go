package report

import (
	"bytes"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/document"

	"github.com/fit-eval/fit/internal/judge"
	"github.com/fit-eval/fit/ledger"
	"github.com/fit-eval/fit/stats"
)

var update = flag.Bool("update", false, "write the schema to docs/schema")

// judgedRun is a run that passed its checks and was judged by votes: p passes, f fails, e comes to
// nothing.
func judgedRun(task string, index int, votes string) ledger.Record {
	r := run(task, index, ledger.Pass)
	count := map[rune]int{}
	for _, letter := range votes {
		count[letter]++
		cost := 0.01
		r.JudgeVotes = append(r.JudgeVotes,
			ledger.JudgeVote{
				Verdict: map[rune]string{'p': ledger.Pass, 'f': ledger.Fail, 'e': ledger.Error}[letter],
				CostUSD: &cost,
			})
	}
	r.Digests.Judge = "sha256:judge"
	switch {
	case 2*count['p'] > len(votes):
		r.JudgeVerdict = &ledger.JudgeMajority{Verdict: ledger.Pass}
	case 2*count['f'] > len(votes):
		r.JudgeVerdict = &ledger.JudgeMajority{Verdict: ledger.Fail}
		r.Verdict = ledger.Fail
	default:
		r.Verdict, r.ErrorClass = ledger.Error, ledger.ErrorJudge
	}
	return r
}

// The vectors are those of Fleiss' kappa for three judges on ten items.
func TestVotesAgreeBeyondChance(t *testing.T) {
	var records []ledger.Record
	for i, votes := range strings.Fields("ppp ppp ppf fff pff ppp fff ppp ppf fff") {
		records = append(records, judgedRun(fmt.Sprintf("task-%d", i), 0, votes))
	}
	r := build(t, Input{Records: records, K: []int{1}, Detail: true})
	j := r.Groups[0].Judge
	if j == nil || j.Asked != 10 || j.Passed != 6 || j.Failed != 4 || j.Undecided != 0 || j.CostUSD == nil ||
		math.Abs(*j.CostUSD-0.3) > 1e-9 {
		t.Fatalf("%+v", j)
	}
	a := j.Agreement
	if a.Votes != 3 || a.Runs != 10 || a.Unanimous != 7 || math.Abs(a.Observed-0.8) > 1e-9 || a.Kappa == nil ||
		math.Abs(a.Kappa.Value-0.592760) > 1e-6 || a.Alpha == nil {
		t.Errorf("%+v", a)
	}
	if one := r.Groups[0].Tasks[2].Agreement; one == nil || one.Runs != 1 || one.Unanimous != 0 {
		t.Errorf("task: %+v", one)
	}
	var text, markdown bytes.Buffer
	if err := r.Text(&text, []int{1}); err != nil {
		t.Fatal(err)
	}
	if err := r.Markdown(&markdown, []int{1}, Full); err != nil {
		t.Fatal(err)
	}
	for _, out := range []string{text.String(), markdown.String()} {
		for _, want := range []string{
			"asked about 10 runs", "unanimous on 7 of 10 runs, 80% of pairs agree", "κ 0.59",
			"$0.30",
		} {
			if !strings.Contains(out, want) {
				t.Errorf("%q is missing in\n%s", want, out)
			}
		}
	}
}

func TestVotesThatCameToNothingLeaveAlphaAndNoKappa(t *testing.T) {
	r := build(t, Input{Records: []ledger.Record{
		judgedRun("a", 0, "ppe"), judgedRun("b", 0, "fff"),
		judgedRun("c", 0, "pfe"),
	}, K: []int{1}})
	j := r.Groups[0].Judge
	if j.Undecided != 1 || j.Agreement.Kappa != nil || j.Agreement.Alpha == nil || j.Agreement.Runs != 3 {
		t.Errorf("%+v %+v", j, j.Agreement)
	}
}

// calibrated are 60 judged runs, 39 of them passed, and 80 labels as in the vector F of the
// correction: TPR 36/40, TNR 34/40.
func calibrated() ([]ledger.Record, *judge.Labels) {
	var records []ledger.Record
	for i := range 60 {
		votes := "f"
		if i < 39 {
			votes = "p"
		}
		records = append(records, judgedRun(fmt.Sprintf("task-%02d", i), 0, votes))
	}
	labels := &judge.Labels{Judge: judge.LabelledJudge{Digests: []string{"sha256:judge"}}}
	add := func(n int, human, verdict string) {
		for range n {
			labels.Labels = append(labels.Labels,
				judge.Label{Task: "calibration", Run: len(labels.Labels), Human: human, Judge: verdict})
		}
	}
	add(36, ledger.Pass, ledger.Pass)
	add(4, ledger.Pass, ledger.Fail)
	add(34, ledger.Fail, ledger.Fail)
	add(6, ledger.Fail, ledger.Pass)
	return records, labels
}

func TestThePassRateIsCorrectedForTheJudgesErrors(t *testing.T) {
	records, labels := calibrated()
	c := build(t, Input{Records: records, K: []int{1}, Labels: labels}).Groups[0].Judge.Corrected
	if c.Status != stats.StatusOK || c.PassRate == nil || math.Abs(c.PassRate.Est-0.666667) > 1e-6 ||
		math.Abs(c.PassRate.Lo-0.472681) > 1e-6 || math.Abs(c.PassRate.Hi-0.863786) > 1e-6 {
		t.Fatalf("%+v %+v", c, c.PassRate)
	}
	if c.Calibration.TP != 36 || c.Calibration.M1 != 40 || c.Calibration.TN != 34 || c.Calibration.M0 != 40 ||
		math.Abs(c.Observed-0.65) > 1e-9 {
		t.Errorf("%+v", c)
	}

	// Runs that fail the checks are not judged: they bring the rate down, and what is unsure about
	// their share makes the interval wider.
	for i := range 60 {
		records = append(records, run(fmt.Sprintf("task-%02d", i), 1, ledger.Fail))
	}
	half := build(t, Input{Records: records, K: []int{1}, Labels: labels}).Groups[0].Judge.Corrected
	if math.Abs(half.PassRate.Est-0.333333) > 1e-6 || half.PassRate.Lo > c.PassRate.Lo/2 ||
		half.PassRate.Hi < c.PassRate.Hi/2 || math.Abs(half.Judged.Est-0.666667) > 1e-6 {
		t.Errorf("%+v %+v", half.PassRate, half.Judged)
	}

	labels.Judge.Digests = []string{"sha256:another"}
	if stale := build(t, Input{
		Records: records, K: []int{1},
		Labels: labels,
	}).Groups[0].Judge.Corrected; stale.Status != statusStale || stale.PassRate != nil {
		t.Errorf("labels on another judge: %+v", stale)
	}
}

func TestAJudgeNoBetterThanACoinCorrectsNothing(t *testing.T) {
	records, labels := calibrated()
	labels.Labels = labels.Labels[:0]
	for i := range 40 {
		human, verdict := ledger.Pass, ledger.Pass
		if i%2 == 1 {
			human = ledger.Fail
		}
		if i%4 > 1 {
			verdict = ledger.Fail
		}
		labels.Labels = append(labels.Labels, judge.Label{Task: "x", Run: i, Human: human, Judge: verdict})
	}
	if c := build(t, Input{
		Records: records, K: []int{1},
		Labels: labels,
	}).Groups[0].Judge.Corrected; c.Status != stats.StatusUninformative || c.PassRate != nil {
		t.Errorf("%+v", c)
	}
}

func TestLabelsOnRunsOfTheLedger(t *testing.T) {
	var records []ledger.Record
	labels := &judge.Labels{Design: judge.DesignRandom}
	for i := range 120 {
		votes, human := "ppp", ledger.Pass
		switch {
		case i%3 == 0:
			votes, human = "fff", ledger.Fail
		case i%10 == 2:
			votes, human = "ppf", ledger.Fail
		case i%10 == 4:
			votes, human = "pff", ledger.Pass
		}
		task := fmt.Sprintf("task-%03d", i)
		records = append(records, judgedRun(task, 0, votes))
		if i%2 == 0 {
			labels.Labels = append(labels.Labels, judge.Label{Task: task, Human: human})
		}
	}
	labels.Labels = append(labels.Labels, judge.Label{Task: "nowhere", Human: ledger.Pass})
	r := build(t, Input{Records: records, K: []int{1}, Labels: labels})
	c := r.Groups[0].Judge.Corrected
	if c.Status != stats.StatusOK || !strings.Contains(c.PassRate.Method, "ppi") {
		t.Errorf("%+v %+v", c, c.PassRate)
	}
	if votes := r.Groups[0].Judge.Agreement.EffectiveVotes; votes == nil || *votes <= 1 || *votes > 3 {
		t.Errorf("effective votes: %v", votes)
	}
	if len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0], "1 label:") {
		t.Errorf("%v", r.Warnings)
	}
}

// A judge that is kinder to one arm would fake a difference: each arm then gets its own correction.
func TestArmsOnWhichTheJudgeErrsDifferentlyAreCorrectedOneByOne(t *testing.T) {
	var records []ledger.Record
	labels := &judge.Labels{}
	for i := range 80 {
		for _, arm := range []string{"a", "b"} {
			votes, human := "p", ledger.Pass
			if i%2 == 1 {
				votes, human = "f", ledger.Fail
			}
			if arm == "b" && i%4 == 1 { // the judge lets half of b's bad work pass
				votes = "p"
			}
			r := judgedRun(fmt.Sprintf("task-%03d", i), 0, votes)
			r.Arm = arm
			records = append(records, r)
			labels.Labels = append(labels.Labels, judge.Label{Task: r.TaskID, Arm: arm, Human: human})
		}
	}
	r := build(t, Input{Records: records, K: []int{1}, Labels: labels})
	for _, g := range r.Groups {
		if c := g.Judge.Corrected; !c.PerArm || math.Abs(c.PassRate.Est-0.5) > 1e-9 || c.Caveat == "" {
			t.Errorf("%s: %+v", g.Name, c)
		}
	}
	c, err := Compare(&r.Groups[0], &r.Groups[1], CompareConfig{})
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if err := c.Text(&text); err != nil {
		t.Fatal(err)
	}
	if strings.Count(text.String(), "corrected for the judge's errors: 50.0%") != 2 ||
		!strings.Contains(text.String(), "the judge on a and b") {
		t.Error(text.String())
	}
	labels.Labels[0].Arm = ""
	if _, err := Build(Input{Records: records, Labels: labels}); err == nil ||
		!strings.Contains(err.Error(), "which arm") {
		t.Error(err)
	}
}

func TestLabelsAreReadWithTheirMistakes(t *testing.T) {
	for content, want := range map[string]string{
		"labels:\n  - {task: a, run: 0, human: pass}\n":                             "",
		"design: random\nlabels:\n  - {task: a, human: fail, judge: pass}\n":        "",
		"labels:\n  - {task: a, run: 0, human: good}\n":                             "labels.yaml:2:",
		"labels:\n  - {task: a, human: pass}\n  - {task: a, run: 0, human: fail}\n": "labels.yaml:3:",
		"labels:\n  - {task: a, human: pass, verdict: pass}\n":                      "verdict",
		"design: some\nlabels: []\n":                                                "labels.yaml:1:",
	} {
		t.Run(content, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "labels.yaml")
			if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := judge.LoadLabels(path)
			if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
				t.Error(err)
			}
		})
	}
}

func TestThePublishedSchemaOfLabelsIsThatOfTheStructs(t *testing.T) {
	path := filepath.Join("..", "..", "docs", "schema", "labels.schema.json")
	want, err := document.SchemaOf("labels.yaml", judge.Labels{})
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(path, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s is not what the structs say (%v): run go test ./report -update", path, err)
	}
}

// TestLabelsOfAHeadToHeadDoNotCount: they share the file, and are about other judges.
func TestLabelsOfAHeadToHeadDoNotCount(t *testing.T) {
	path := filepath.Join(t.TempDir(), "labels.yaml")
	text := "labels:\n  - {task: t, arm: a, human: pass, judge: pass}\n" +
		"  - {task: t, arm: a, dimension: correctness, split: test, human: fail}\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	labels, err := judge.LoadLabels(path)
	if err != nil {
		t.Fatal(err)
	}
	matched, err := match(labels, nil)
	if err != nil || len(matched.Labels) != 1 || matched.Unjudged != 0 {
		t.Errorf("%+v, %v", matched, err)
	}
}
