package judge

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fit-eval/fit/internal/evidence"
	"github.com/fit-eval/fit/internal/jsonenc"
	"github.com/fit-eval/fit/ledger"
	"github.com/fit-eval/fit/stats"
)

// population is runs of two arms on many tasks, each of which says in its prompt whether it is good
// work.
func population(tasks int, good func(task int, arm string) bool) []Subject {
	var subjects []Subject
	for i := range tasks {
		for _, arm := range []string{"a", "b"} {
			s := subject(fmt.Sprintf("t%02d", i), arm, 0)
			s.Task.Cluster = fmt.Sprintf("c%02d", i/2)
			s.VerifyOutput = fmt.Sprintf("%d %s %v", i, arm, good(i, arm))
			subjects = append(subjects, s)
		}
	}
	return subjects
}

func isGood(text string) bool { return strings.Contains(text, " true\n") }

// labelAll labels every run by the truth.
func labelAll(labels *Labels, subjects []Subject) {
	for i := range subjects {
		at, human := subjects[i].cell(), ledger.Fail
		if isGood(subjects[i].VerifyOutput + "\n") {
			human = ledger.Pass
		}
		labels.Labels = append(labels.Labels, Label{
			Task:      at.TaskID,
			Arm:       at.Arm,
			Run:       at.RunIndex,
			Dimension: evidence.Correctness,
			Human:     human,
		})
	}
}

func correctness(names ...string) Settings {
	return Settings{
		Panel:      panel(names...),
		Prompts:    Prompts{promptSingle: "frame", promptPair: "frame", evidence.Correctness: "question"},
		Dimensions: []string{evidence.Correctness},
	}
}

func TestLabelling(t *testing.T) {
	path := filepath.Join(t.TempDir(), "labels.yaml")
	head := "# who labelled: me\ndesign: balanced\nlabels:\n  - {task: old, human: pass} # of a benchmark\n"
	if err := os.WriteFile(path, []byte(head), 0o600); err != nil {
		t.Fatal(err)
	}
	labels, err := LoadLabels(path)
	if err != nil {
		t.Fatal(err)
	}
	settings := correctness("m")
	subjects := population(10, func(task int, arm string) bool { return task%2 == 0 })
	item, ok := labels.Next(subjects, settings, evidence.Correctness, 1)
	if !ok || strings.Contains(item.Evidence, "claude") || !strings.Contains(item.Evidence, "return sum // done") {
		t.Errorf("the item is %q", item.Evidence)
	}
	for {
		item, ok := labels.Next(subjects, settings, evidence.Correctness, 1)
		if !ok {
			break
		}
		if err := labels.Add(item, isGood(item.Evidence)); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(path)
	if err != nil || !strings.HasPrefix(string(text), head) {
		t.Errorf("what people wrote is gone: %s, %v", text, err)
	}
	if n, err := labels.Split(subjects, 1); err != nil || n != 20 {
		t.Fatalf("split %d, %v", n, err)
	}
	again, err := LoadLabels(path)
	if err != nil {
		t.Fatal(err)
	}
	if pass, fail := again.Count(evidence.Correctness); pass != 10 || fail != 10 {
		t.Errorf("%d passes and %d fails", pass, fail)
	}
	counts, byCluster := map[string]int{}, map[string]string{}
	for _, one := range again.Labels {
		if one.Dimension == "" {
			if one.Split != "" {
				t.Error("a label of a benchmark was split")
			}
			continue
		}
		var task int
		if _, err := fmt.Sscanf(one.Task, "t%d", &task); err != nil {
			t.Fatal(err)
		}
		cluster := fmt.Sprint(task / 2)
		if before := byCluster[cluster]; before != "" && before != one.Split {
			t.Errorf("cluster %s is in %s and in %s", cluster, before, one.Split)
		}
		byCluster[cluster] = one.Split
		counts[one.Split]++
	}
	if counts[SplitTest] != 8 || counts[SplitDev] != 8 || counts[splitTrain] != 4 {
		t.Errorf("splits %v", counts)
	}
	if n, err := again.Split(subjects, 99); err != nil || n != 0 {
		t.Errorf("split %d once more, %v", n, err)
	}
}

func TestMistakesInLabels(t *testing.T) {
	for source, want := range map[string]string{
		"labels:\n  - {task: a, human: maybe}":                                                     "l.yaml:2:",
		"labels:\n  - {task: a, human: pass, dimension: style}":                                    "l.yaml:2:",
		"labels:\n  - {task: a, human: pass, dimension: correctness}":                              "needs its arm",
		"labels:\n  - {task: a, human: pass}\n  - {task: a, human: fail}":                          "l.yaml:3:5: ",
		"labels:\n  - {task: a, human: pass, colour: red}":                                         "colour",
		"design: odd\nlabels: []":                                                                  "l.yaml:1:",
		"labels: [{task: a, arm: x, human: pass, dimension: correctness}, {task: a, human: fail}]": "",
	} {
		t.Run(source, func(t *testing.T) {
			_, err := parseLabels("l.yaml", []byte(source))
			if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
				t.Errorf("%q: error %v, want %q", source, err, want)
			}
		})
	}
}

// Labels are of runs that are there, and those of a cluster are in one split.
func TestLabelsThatDoNotFitTheRuns(t *testing.T) {
	subjects := population(4, func(int, string) bool { return true }) // two tasks to a cluster
	one := func(task, split string) string {
		return fmt.Sprintf("  - {task: %s, arm: a, dimension: correctness, human: pass, split: %s}\n", task, split)
	}
	for labels, want := range map[string]string{
		one("t00", SplitTest) + one("t01", SplitTest) + one("t02", SplitDev): "",
		one("t00", SplitTest) + one("t01", SplitDev):                         "l.yaml:3:5: ",
		one("t00", SplitTest) + one("t99", SplitTest):                        "there is no run 0 of task t99",
		"  - {task: t99, human: pass}\n":                                     "",
	} {
		t.Run(labels, func(t *testing.T) {
			source := []byte("labels:\n" + labels)
			parsed, err := parseLabels("l.yaml", source)
			if err != nil {
				t.Fatal(err)
			}
			err = parsed.Check(subjects)
			if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
				t.Errorf("%s: error %v, want %q", labels, err, want)
			}
		})
	}
}

// TestCalibration: a judge that errs on every fifth run.
func TestCalibration(t *testing.T) {
	dir := t.TempDir()
	labels := NewLabels(filepath.Join(dir, "labels.yaml"))
	settings := correctness("m")
	subjects := population(100, func(task int, arm string) bool { return task%2 == 0 })
	say := func(q *question, _ Member) string {
		good := isGood(q.user())
		if strings.Contains(q.about, "3/") { // tasks t03, t13, … are misjudged
			good = !good
		}
		if good {
			return verdictJSON(Pass, cite(q))
		}
		return verdictJSON(Fail, cite(q))
	}
	result := Derive(answered(settings, subjects, say), settings, subjects, nil)
	status := func(r *Result) Calibration {
		t.Helper()
		calibrations, err := labels.Calibrations(r)
		if err != nil || len(calibrations) != 1 {
			t.Fatalf("%d calibrations, %v", len(calibrations), err)
		}
		return calibrations[0]
	}
	corrected := func(r *Result) BiasCorrection {
		t.Helper()
		c := status(r)
		correction, err := c.Correct("a", r.judged(c.Dimension), stats.DefaultLevel)
		if err != nil {
			t.Fatal(err)
		}
		return correction
	}
	if c := corrected(result); c.Status != stats.StatusUncalibrated || c.CorrectedRate != nil || c.ObservedRate != 0.6 {
		t.Errorf("without labels: %+v", c)
	}
	if _, err := labels.Measure(result, evidence.Correctness, SplitTest, false, 1); err == nil {
		t.Error("measured without labels")
	}
	labelAll(labels, subjects)
	if _, err := labels.Split(subjects, 1); err != nil {
		t.Fatal(err)
	}
	if _, err := labels.Measure(result, evidence.Correctness, SplitDev, false, 1); err != nil {
		t.Error(err)
	}
	if c := status(result); c.Status != stats.StatusUncalibrated {
		t.Errorf("the dev split calibrates: %+v", c)
	}
	m, err := labels.Measure(result, evidence.Correctness, SplitTest, false, 2)
	if err != nil {
		t.Fatal(err)
	}
	pooled := m.Pooled()
	if pooled.TPR() != 1 || pooled.TNR() >= 1 || pooled.TNR() < 0.6 || m.Unjudged != 0 || len(m.PerArm) != 2 {
		t.Errorf("measured %+v", m)
	}
	if kappa, ac1, err := m.Agreement(); err != nil || kappa.Value <= 0.5 || ac1.Value <= 0.5 {
		t.Errorf("kappa %v, AC1 %v, %v", kappa, ac1, err)
	}
	c := corrected(result)
	if c.Status != stats.StatusOK || c.CorrectedRate == nil || c.N != 100 || c.M1 != pooled.M1 {
		t.Fatalf("corrected %+v", c)
	}
	if want, _, _ := stats.RoganGladen(0.6, pooled.TPR(), pooled.TNR()); math.Abs(*c.CorrectedRate-want) > 1e-9 ||
		*c.CI95Low > 0.5 || *c.CI95High < 0.5 {
		t.Errorf("corrected to %v [%v, %v], want %v around 0.5", *c.CorrectedRate, *c.CI95Low, *c.CI95High, want)
	}

	// the same panel again: sealed
	if _, err := labels.Measure(result, evidence.Correctness, SplitTest, false, 3); !errors.Is(err, errSealed) {
		t.Errorf("error %v, want the split to be sealed", err)
	}
	// another prompt is another judge
	changed := correctness("m")
	changed.Prompts[evidence.Correctness] = "another question"
	other := Derive(answered(changed, subjects, say), changed, subjects, nil)
	if c := status(other); c.Status != statusStale {
		t.Errorf("after a change of the prompt: %+v", c)
	}
	if c := corrected(other); c.Status != stats.StatusUncalibrated || c.CorrectedRate != nil {
		t.Errorf("corrected by a stale calibration: %+v", c)
	}
	if _, err := labels.Measure(other, evidence.Correctness, SplitTest, false, 4); !errors.Is(err, errSealed) {
		t.Errorf("error %v: another word of the prompt opened the seal", err)
	}
	// so are other labels
	kept := slices.Clone(labels.Labels)
	at := slices.IndexFunc(kept, func(one Label) bool { return one.Split == SplitTest && one.Passed() })
	labels.Labels[at].Human = ledger.Fail
	if c := status(result); c.Status != statusStale || !strings.Contains(c.Reason, "the labels changed") {
		t.Errorf("after a change of a label: %+v", c)
	}
	labels.Labels = kept
	if c := status(result); c.Status != stats.StatusOK {
		t.Errorf("with the labels as they were: %+v", c)
	}
	// a second look, by whichever judge, burns the labels for both
	if _, err := labels.Measure(other, evidence.Correctness, SplitTest, true, 4); err != nil {
		t.Fatal(err)
	}
	for _, result := range []*Result{result, other} {
		if c := status(result); c.Status != stats.StatusUncalibrated || !strings.Contains(c.Reason, "2 times") {
			t.Errorf("after a second look: %+v", c)
		}
	}
	if c := corrected(result); c.CorrectedRate != nil {
		t.Error("corrected by labels that were burnt")
	}
}

// TestAJudgeThatIsKinderToOneArm: labels show it, and each arm is corrected by its own errors.
// A calibration is about a prompt, a panel and a population: it is carried to another directory
// where these are the same, and is no label of an arm that was not labelled.
func TestACalibrationIsCarriedByAFile(t *testing.T) {
	settings := correctness("m")
	subjects := population(40, func(task int, arm string) bool { return task%2 == 0 })
	for i := range subjects {
		subjects[i].ArmHash = "hash of " + subjects[i].Run.Key.Arm
	}
	judged := func(settings Settings, subjects []Subject) *Result {
		say := func(q *question, _ Member) string {
			if isGood(q.user()) {
				return verdictJSON(Pass, cite(q))
			}
			return verdictJSON(Fail, cite(q))
		}
		return Derive(answered(settings, subjects, say), settings, subjects, nil)
	}
	result := judged(settings, subjects)
	labels := NewLabels(filepath.Join(t.TempDir(), "labels.yaml"))
	if _, err := labels.Carry(result, subjects); err == nil {
		t.Error("nothing was carried without an error")
	}
	labelAll(labels, subjects)
	if _, err := labels.Split(subjects, 1); err != nil {
		t.Fatal(err)
	}
	if _, err := labels.Measure(result, evidence.Correctness, SplitTest, false, 1); err != nil {
		t.Fatal(err)
	}
	carried := func() *Carried {
		c, err := labels.Carry(result, subjects)
		if err != nil {
			t.Fatal(err)
		}
		data, err := jsonenc.Marshal(c)
		if err == nil {
			c, err = ReadCarried(data)
		}
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	for _, changed := range []func(*Carried){
		func(c *Carried) { c.Measurements[0].PerArm[0].M1 *= 100 },
		func(c *Carried) { c.Measurements[0].LabelsDigest = "" },
		func(c *Carried) { c.Arms["b"] = "another b" },
		func(c *Carried) { c.Seal = "" },
	} {
		c := carried()
		changed(c)
		data, err := jsonenc.Marshal(c)
		if err == nil {
			_, err = ReadCarried(data)
		}
		if err == nil || !strings.Contains(err.Error(), "does not fit its seal") {
			t.Errorf("changed after its export: %v", err)
		}
	}
	reworded := correctness("m")
	reworded.Prompts[evidence.Correctness] = "another question"
	for name, other := range map[string]struct {
		settings Settings
		subjects []Subject
		want     string
	}{
		"a prompt": {reworded, subjects, "another prompt or panel"},
		"a panel":  {correctness("n"), subjects, "another prompt or panel"},
		"tasks":    {settings, subjects[:20], "other tasks"},
	} {
		t.Run(name, func(t *testing.T) {
			there := NewLabels(filepath.Join(t.TempDir(), "labels.yaml"))
			err := there.Accept(carried(), judged(other.settings, other.subjects), other.subjects, 2)
			if err == nil || !strings.Contains(err.Error(), other.want) {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	there := NewLabels(filepath.Join(t.TempDir(), "labels.yaml"))
	moved := slices.Clone(subjects)
	for i := range moved {
		if moved[i].Run.Key.Arm == "b" {
			moved[i].ArmHash = "another b"
		}
	}
	if err := there.Accept(carried(), result, moved, 2); err != nil {
		t.Fatal(err)
	}
	known, err := there.Calibrations(result)
	if err != nil || len(known) != 1 || !known[0].Valid() || !known[0].Carried {
		t.Fatalf("%+v, %v", known, err)
	}
	if a, b := known[0].Own("a"), known[0].Own("b"); a.M1 == 0 || b.M1 != 0 {
		t.Errorf("labels of a: %+v, and of another b: %+v", a, b)
	}
	if err := there.Accept(carried(), result, moved, 3); !errors.Is(err, errSealed) {
		t.Errorf("carried twice: %v", err)
	}
	kept, err := os.ReadFile(there.calibrationPath())
	if err != nil {
		t.Fatal(err)
	}
	for _, change := range []func(string) string{
		func(line string) string { return strings.Replace(line, `"m1":`, `"m1":5`, 1) },
		func(line string) string { return regexp.MustCompile(`,"seal":"[^"]*"`).ReplaceAllString(line, "") },
	} {
		changed := change(string(kept))
		if err := os.WriteFile(there.calibrationPath(), []byte(changed), 0o600); err != nil || changed == string(kept) {
			t.Fatal(err, changed)
		}
		if _, err := there.Calibrations(result); err == nil || !strings.Contains(err.Error(), "does not fit its seal") {
			t.Errorf("changed after its import: %v", err)
		}
	}
}

func TestAJudgeThatIsKinderToOneArm(t *testing.T) {
	labels := NewLabels(filepath.Join(t.TempDir(), "labels.yaml"))
	settings := correctness("m")
	subjects := population(100, func(task int, arm string) bool { return task%2 == 0 })
	say := func(q *question, _ Member) string {
		var task int
		if _, err := fmt.Sscanf(q.about, "t%d/", &task); err != nil {
			t.Fatal(err)
		}
		good := isGood(q.user())
		if strings.Contains(q.about, "/a/") && task%8 == 1 { // bad work that passes
			good = true
		}
		if strings.Contains(q.about, "/b/") && task%8 == 0 { // good work that fails
			good = false
		}
		if good {
			return verdictJSON(Pass, cite(q))
		}
		return verdictJSON(Fail, cite(q))
	}
	result := Derive(answered(settings, subjects, say), settings, subjects, nil)
	labelAll(labels, subjects)
	if _, err := labels.Split(subjects, 5); err != nil {
		t.Fatal(err)
	}
	if _, err := labels.Measure(result, evidence.Correctness, SplitTest, false, 1); err != nil {
		t.Fatal(err)
	}
	calibrations, err := labels.Calibrations(result)
	if err != nil {
		t.Fatal(err)
	}
	a, okA := calibrations[0].For("a")
	b, okB := calibrations[0].For("b")
	if !okA || !okB || !calibrations[0].Homogeneity.PerAgent || a.Agent != "a" || b.Agent != "b" {
		t.Fatalf("%+v %v, %+v %v: want the errors of each arm", a, okA, b, okB)
	}
	corrections := make([]BiasCorrection, 2)
	for i, arm := range []string{"a", "b"} {
		corrections[i], err = calibrations[0].Correct(arm, result.judged(evidence.Correctness), stats.DefaultLevel)
		if err != nil {
			t.Fatal(err)
		}
	}
	observed := corrections[0].ObservedRate - corrections[1].ObservedRate
	gap := *corrections[0].CorrectedRate - *corrections[1].CorrectedRate
	if observed < 0.2 || math.Abs(gap) > 0.12 {
		t.Errorf("a gap of %.2f was seen and corrected to %.2f, want 0", observed, gap)
	}
	if rates, _ := calibrations[0].For("c"); rates.M1+rates.M0 > 0 {
		t.Error("an arm without labels is corrected by the labels of others, although they differ")
	}
}

func TestMembersAreChosenByTheirAccuracy(t *testing.T) {
	subjects := population(80, func(task int, arm string) bool { return task%2 == 0 })
	for _, test := range []struct {
		name   string
		errors map[string]int // every n-th run is misjudged
		want   string
	}{
		{"one is best", map[string]int{"coin": 2, "good": 1000, "poor": 3}, "good"},
		{"together they are better", map[string]int{"five": 5, "seven": 7, "eleven": 11}, "eleven,seven,five"},
	} {
		t.Run(test.name, func(t *testing.T) {
			settings := correctness(sortedKeys(test.errors)...)
			labels := NewLabels(filepath.Join(t.TempDir(), "labels.yaml"))
			labelAll(labels, subjects)
			for i := range labels.Labels {
				labels.Labels[i].Split = SplitDev
			}
			number := 0
			numbers := map[string]int{}
			say := func(q *question, m Member) string {
				if _, seen := numbers[q.about]; !seen {
					number++
					numbers[q.about] = number
				}
				good := isGood(q.user()) != (numbers[q.about]%test.errors[m.Name] == 0)
				if good {
					return verdictJSON(Pass, cite(q))
				}
				return verdictJSON(Fail, cite(q))
			}
			replies := answered(settings, subjects, say)
			selection, choices := labels.Select(Derive(replies, settings, subjects, nil))
			if got := strings.Join(selection[evidence.Correctness], ","); got != test.want {
				t.Errorf("chose %s, want %s (%+v)", got, test.want, choices)
			}
			result := Derive(replies, settings, subjects, selection)
			verdict := result.Cells[0].Dimensions[evidence.Correctness]
			if got := verdict.Pass + verdict.Fail; got != len(selection[evidence.Correctness]) {
				t.Errorf("%d votes count, want %d", got, len(selection[evidence.Correctness]))
			}
			if len(choices[0].Members) > 1 && (choices[0].EffectiveVotes == nil || *choices[0].EffectiveVotes < 2) {
				t.Errorf("effective votes %v", choices[0].EffectiveVotes)
			}
		})
	}
}

// Whatever the file looks like, rewriting it keeps its labels.
func FuzzLabels(f *testing.F) {
	f.Add([]byte("# ours\ndesign: random\nlabels:\n  - {task: t, arm: a, run: 1, dimension: correctness, human: pass}\n"))
	f.Add([]byte("judge:\n  digests: [x]\nlabels:\n" +
		"  - task: \"a\\n- b\"\n    human: fail\n    judge: pass\n    split: dev\n"))
	f.Fuzz(func(t *testing.T, source []byte) {
		labels, err := parseLabels("labels.yaml", source)
		if err != nil {
			return
		}
		again, err := parseLabels("labels.yaml", labels.text())
		if err != nil || !cmp.Equal(labels.Labels, again.Labels, cmpopts.EquateEmpty()) ||
			labels.Design != again.Design || !cmp.Equal(labels.Judge, again.Judge, cmpopts.EquateEmpty()) {
			t.Errorf("%q is written as %q: %v", source, labels.text(), err)
		}
	})
}
