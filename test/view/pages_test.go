package view

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/report/versus/versustest"
)

type comparison struct {
	Decision struct {
		Sentence string  `json:"sentence"`
		Effect   float64 `json:"effect"`
		MDE      float64 `json:"mde"`
	} `json:"decision"`
	Tasks []struct {
		TaskID string  `json:"taskId"`
		Delta  float64 `json:"delta"`
	} `json:"tasks"`
	RateA, RateB *struct{ Est float64 }
	CostA, CostB *float64
}

type experimentPage struct {
	Sentence, Claim, Overall string
	Rates                    []string
	Rows                     []struct {
		Task, Difference string
		Marks            [][]string
	}
}

// points shows a difference the way the pages do.
func points(difference float64, digits int) string {
	text := strings.Replace(fmt.Sprintf("%+.*f", digits, 100*difference), "-", "−", 1)
	if strings.Trim(text, "+−0.") == "" {
		return strings.TrimLeft(text, "+−")
	}
	return text
}

// Every number of the experiment's page is that of compare and report for the same directory.
func TestNumbersAreThoseOfTheCommands(t *testing.T) {
	t.Parallel()
	b, dir := chromium(t), demoDirectory(t)
	var want comparison
	answerOf(t, &want, "benchmark", "compare", dir, "--format", "json")
	args := map[string]any{"url": demoAddress(t), "word": "all tasks"}
	page := decode[experimentPage](t, b.run(t, "experiment", args))

	if len(page.Rows) != len(want.Tasks) {
		t.Errorf("the grid has %d tasks, compare has %d", len(page.Rows), len(want.Tasks))
	}
	byTask := map[string]string{}
	for _, row := range page.Rows {
		byTask[row.Task] = row.Difference
	}
	for _, task := range want.Tasks {
		if got := byTask[task.TaskID]; got != points(task.Delta, 0) {
			t.Errorf("difference of %s: the page shows %q, compare %q", task.TaskID, got, points(task.Delta, 0))
		}
	}
	for what, text := range map[string]string{
		"overall difference": points(want.Decision.Effect, 1),
		"rate of before":     fmt.Sprintf("%.1f%%", 100*want.RateA.Est),
		"rate of after":      fmt.Sprintf("%.1f%%", 100*want.RateB.Est),
	} {
		t.Run(what, func(t *testing.T) {
			if !strings.Contains(page.Overall, text) {
				t.Errorf("%s: %q is not in %q", what, text, page.Overall)
			}
		})
	}
	for _, text := range []string{
		fmt.Sprintf("$%.2f and $%.2f spent", *want.CostA, *want.CostB),
		fmt.Sprintf("minimum detectable difference (80%% power): %.1f percentage points", 100*want.Decision.MDE),
	} {
		if !strings.Contains(page.Claim, text) {
			t.Errorf("%q is not in %q", text, page.Claim)
		}
	}
	// The sentence is that of the decision, with its facts on a line of their own.
	said := strings.NewReplacer(" · ", "", ", ", "", ": ", "", ". ", "", ".", "", "(", "", ")", "", "\n", "", " ", "")
	plain := func(text string) string { return strings.ToLower(said.Replace(text)) }
	if !strings.Contains(plain(page.Claim), plain(want.Decision.Sentence)) {
		t.Errorf("the decision reads %q, compare says %q", page.Claim, want.Decision.Sentence)
	}
}

func TestExperiments(t *testing.T) {
	t.Parallel()
	b, url := chromium(t), demoAddress(t)
	rows := decode[int](t, b.run(t, "experiments", map[string]any{"url": url, "claim": "before", "runs": "24 of 24"}))
	if rows != 1 {
		t.Errorf("the list has %d rows", rows)
	}
	b.run(t, "locked", map[string]any{"url": url, "allow": []string{"401"}})
}

func TestSeveralExperiments(t *testing.T) {
	t.Parallel()
	b, dir := chromium(t), t.TempDir()
	for _, name := range []string{"skills-june", "skills-july", strings.Repeat("a-name-that-is-far-too-long-", 4)} {
		if err := os.CopyFS(filepath.Join(dir, name), os.DirFS(demoDirectory(t))); err != nil {
			t.Fatal(err)
		}
	}
	b.run(t, "filterExperiments", map[string]any{"url": serve(t, dir), "word": "june", "left": 1})
}

func TestOrderOfTheGrid(t *testing.T) {
	t.Parallel()
	chromium(t).run(t, "gridOrder", map[string]any{"url": demoAddress(t)})
}

func TestCell(t *testing.T) {
	t.Parallel()
	b, url := chromium(t), demoAddress(t)
	text := decode[string](t, b.run(t, "cell", map[string]any{"url": url, "task": "even", "arm": "after"}))
	for _, want := range []string{"attempt 1 of 1", "behaviour", "even.sh"} {
		if !strings.Contains(text, want) {
			t.Errorf("the cell does not say %q: %s", want, text)
		}
	}
	aligned := decode[string](t, b.run(t, "sideBySide", map[string]any{
		"url": url, "task": "even", "arm": "before", "other": "after",
	}))
	if !strings.Contains(aligned, "similarity") {
		t.Errorf("side by side reads %q", aligned)
	}
}

// Labelling changes labels.yaml, and says neither who did the work nor what judges think of it.
func TestBlindLabels(t *testing.T) {
	t.Parallel()
	b, dir := chromium(t), filepath.Join(t.TempDir(), "judged")
	if err := writeJudged(dir, 12, false); err != nil {
		t.Fatal(err)
	}
	counted := decode[string](t, b.run(t, "labels", map[string]any{
		"url": serve(t, dir), "secrets": []string{"pear", "quince", "claude", "sonnet"},
	}))
	if !strings.HasPrefix(counted, "correctness: 2 pass, 1 fail, 45 left") {
		t.Errorf("after three labels the page counts %q", counted)
	}
	content, err := os.ReadFile(filepath.Join(dir, "labels.yaml"))
	if err != nil || strings.Count(string(content), "dimension: correctness, human: ") != 3 {
		t.Errorf("labels.yaml: %s %v", content, err)
	}
}

func TestKeyboardAlone(t *testing.T) {
	t.Parallel()
	b := chromium(t)
	b.run(t, "keyboard", map[string]any{"url": demoAddress(t)})
}

// What cannot be shown is said, with the way out; the rest is shown.
func TestDamagedAndEmptyDirectories(t *testing.T) {
	t.Parallel()
	b, dir := chromium(t), t.TempDir()
	b.run(t, "says", map[string]any{
		"url": serve(t, dir), "texts": []string{"No run directory", "fit demo --view"}, "what": "an empty directory",
	})

	damaged := filepath.Join(dir, "damaged")
	if err := os.CopyFS(damaged, os.DirFS(demoDirectory(t))); err != nil {
		t.Fatal(err)
	}
	ledger := filepath.Join(damaged, "results.jsonl")
	content, err := os.ReadFile(ledger)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(content), "\n")
	lines[3] = strings.Replace(lines[3], `"verdict"`, `"verdikt"`, 1)
	if err := os.WriteFile(ledger, []byte(strings.Join(lines, "")+`{"torn`), 0o600); err != nil {
		t.Fatal(err)
	}
	url := serve(t, dir)
	b.run(t, "says", map[string]any{
		"url": url, "experiment": "damaged", "texts": []string{"results.jsonl, line 4"}, "what": "a damaged directory",
	})
}

// A long grid shows its rows and its head wherever it is scrolled to, and its columns stay.
func TestScrollThroughTheGrid(t *testing.T) {
	t.Parallel()
	b, dir := chromium(t), filepath.Join(t.TempDir(), "long")
	if err := writeContest(dir, 1250, versustest.Solves, "gives-up"); err != nil { // 5,000 cells
		t.Fatal(err)
	}
	b.run(t, "scrollGrid", map[string]any{"url": serve(t, dir)})
}
