package versus_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/fit-eval/fit/internal/agent/catalog"
	"github.com/fit-eval/fit/internal/evidence"
	"github.com/fit-eval/fit/internal/report/versus"
	"github.com/fit-eval/fit/internal/report/versus/versustest"
)

func options() versus.Options { return versus.Options{Dialects: catalog.Default().Dialects()} }

// written makes a run directory.
func written(t testing.TB, d versustest.Directory) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "run")
	if err := d.Write(dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

func build(t testing.TB, dir string, o versus.Options) *versus.EvalReport {
	t.Helper()
	source, err := versus.Open(t.Context(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	built, err := source.Report()
	if err != nil {
		t.Fatal(err)
	}
	return built
}

func robot(t testing.TB, built *versus.EvalReport) string {
	t.Helper()
	var out bytes.Buffer
	if err := built.Robot(&out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestAReportSaysWhatEachAgentDid(t *testing.T) {
	t.Parallel()
	built := build(t, written(t, three()), options())
	cells := map[string]versus.Cell{}
	for _, cell := range built.Cells {
		cells[cell.Arm] = cell
	}
	solver, deleter, idle := cells["claude-code"], cells["codex"], cells["pi-agent"]
	if solver.Status != evidence.StatusOK || solver.Resolved == nil || !*solver.Resolved || solver.Diff.Added != 1 {
		t.Errorf("the one that solves: %+v", solver)
	}
	if deleter.Status != evidence.StatusDisqualified || deleter.Resolved == nil || *deleter.Resolved ||
		len(deleter.Integrity) == 0 || deleter.Integrity[0].Kind != evidence.FlagTestDeleted ||
		deleter.Integrity[0].File != "calc_test.go" || deleter.Integrity[0].Line == 0 {
		t.Errorf("the one that deletes the test: %+v", deleter)
	}
	if deleter.Blended == nil || *deleter.Blended != 0 {
		t.Errorf("a disqualified run scores %v, want 0", deleter.Blended)
	}
	if idle.Status != evidence.StatusOK || idle.Resolved == nil || *idle.Resolved || len(idle.Errors) != 1 ||
		idle.Errors[0].Category != evidence.CauseNoChange {
		t.Errorf("the one that gives up: %+v", idle)
	}
	if !strings.HasPrefix(built.Statement, "no statistical claim: one task") {
		t.Errorf("one task says %q", built.Statement)
	}
	if tool := (versus.Tool{Version: "v1.2.3", Commit: "abcdef"}); len(built.RunID) != 16 ||
		built.Seed != 7 || built.Tool != tool {
		t.Errorf("head: %s, %d, %+v", built.RunID, built.Seed, built.Tool)
	}
	for _, pair := range built.Pairs {
		if pair.Claim != "insufficient" {
			t.Errorf("one task claims %s about %s and %s", pair.Claim, pair.A, pair.B)
		}
	}
}

func TestAReportDependsOnTheContentAlone(t *testing.T) {
	t.Parallel()
	d := three()
	d.Tasks, d.Runs = 2, 2
	dir := written(t, d)
	first := robot(t, build(t, dir, options()))
	if again := robot(t, build(t, dir, options())); again != first {
		t.Error("with a cache the report is another")
	}
	if without := robot(t, build(t, dir, versus.Options{})); without != first {
		t.Error("with a cache and no dialects the report is another")
	}
	moved := filepath.Join(t.TempDir(), "elsewhere", "moved")
	if err := os.MkdirAll(filepath.Dir(moved), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(dir, moved); err != nil {
		t.Fatal(err)
	}
	if after := robot(t, build(t, moved, options())); after != first {
		t.Error("in another place the report is another")
	}
	if err := os.RemoveAll(filepath.Join(moved, "cache")); err != nil {
		t.Fatal(err)
	}
	if after := robot(t, build(t, moved, options())); after != first {
		t.Error("without its cache the report is another")
	}
}

// A ledger that travels alone, as fit-benchmark writes it, has no tasks.json.
func TestAReportTakesDirectoriesOfTheBenchmark(t *testing.T) {
	t.Parallel()
	d := three()
	d.Workspace = ""
	built := build(t, written(t, d), options())
	if len(built.Cells) != 3 || len(built.PerAgent) != 3 || built.Isolation != "" {
		t.Errorf("%d cells, %d agents, isolation %q", len(built.Cells), len(built.PerAgent), built.Isolation)
	}
}

func TestAWorktreeIsCalledLeaky(t *testing.T) {
	t.Parallel()
	d := three()
	d.Workspace = "worktree"
	built := build(t, written(t, d), options())
	if built.Isolation != "worktree (leaky)" || !strings.Contains(strings.Join(built.Warnings, "\n"), "leaky") {
		t.Errorf("isolation %q, warnings %q", built.Isolation, built.Warnings)
	}
}

// What the environment did is missing data: it leaves the denominator and is counted.
func TestEnvironmentalRunsLeaveTheDenominator(t *testing.T) {
	t.Parallel()
	d := three()
	d.Tasks = 12
	d.Does = func(task int, arm versustest.Arm, _ int) string {
		if arm.Name == "pi-agent" && task < 3 {
			return versustest.NoService
		}
		return versustest.Solves
	}
	built := build(t, written(t, d), options())
	for _, agent := range built.PerAgent {
		want := 0
		if agent.Arm == "pi-agent" {
			want = 3
		}
		if agent.ExcludedEnv != want || agent.NRuns != 12-want || agent.PassRate == nil || agent.PassRate.Est != 1 {
			t.Errorf("%s: %d excluded of %d runs, rate %+v", agent.Arm, agent.ExcludedEnv, agent.NRuns, agent.PassRate)
		}
	}
	for _, pair := range built.Pairs {
		if pair.Claim == "A>B" || pair.Claim == "B>A" {
			t.Errorf("%s and %s: %s although exclusions differ", pair.A, pair.B, pair.Claim)
		}
	}
}

// A clear difference on enough tasks is claimed, and an open flag takes the claim away.
func TestAClaimNeedsTasksAndNoOpenFlag(t *testing.T) {
	t.Parallel()
	d := versustest.Directory{
		Arms: []versustest.Arm{
			{Name: "good", Agent: "claude-code", Model: "m", Does: versustest.Solves},
			{Name: "bad", Agent: "codex", Model: "n", Does: versustest.Mistakes},
		},
		Tasks:     14,
		Runs:      1,
		Workspace: "export",
	}
	built := build(t, written(t, d), options())
	if pair := built.Pairs[0]; pair.Claim != "A>B" || pair.Diff == nil || pair.Diff.Est != 1 {
		t.Errorf("claim %s, difference %+v, because %q", pair.Claim, pair.Diff, pair.Obstacles)
	}
	if built.Statement != "claimed: good > bad" {
		t.Errorf("statement %q", built.Statement)
	}
	d.Does = func(task int, arm versustest.Arm, _ int) string {
		if task == 0 && arm.Name == "good" {
			return versustest.Deletes
		}
		return arm.Does
	}
	flagged := build(t, written(t, d), options())
	if pair := flagged.Pairs[0]; pair.Claim == "A>B" ||
		!strings.Contains(strings.Join(pair.Obstacles, " "), "integrity") {
		t.Errorf("with an open flag: claim %s because %q", pair.Claim, pair.Obstacles)
	}
}

// Whoever removes or changes the proof of a run takes the run out of the report: nothing is said
// to be resolved, and nothing is claimed about its arm.
func TestARunWithoutItsFilesProvesNothing(t *testing.T) {
	t.Parallel()
	d := versustest.Directory{
		Arms: []versustest.Arm{
			{Name: "good", Agent: "claude-code", Model: "m", Does: versustest.Solves},
			{Name: "bad", Agent: "codex", Model: "n", Does: versustest.Mistakes},
		},
		Tasks:     40,
		Runs:      1,
		Workspace: "export",
	}
	for name, harm := range map[string]func(string) error{
		"diff.patch":   os.Remove,
		"trace.ndjson": func(file string) error { return os.WriteFile(file, nil, 0o600) },
	} {
		dir := written(t, d)
		files, err := filepath.Glob(filepath.Join(dir, "runs", "*", "good", "*", "*", name))
		if err != nil || len(files) != 40 {
			t.Fatalf("%d files, %v", len(files), err)
		}
		if err := harm(files[0]); err != nil {
			t.Fatal(err)
		}
		named, err := filepath.Rel(dir, files[0])
		if err != nil {
			t.Fatal(err)
		}
		built := build(t, dir, options())
		unreadable := 0
		for _, cell := range built.Cells {
			if cell.Problem == "" {
				continue
			}
			unreadable++
			if cell.Status != evidence.StatusEnvError || cell.Resolved != nil || cell.Arm != "good" {
				t.Errorf("%s: cell %+v", name, cell)
			}
		}
		if unreadable != 1 || built.Pairs[0].Claim == "A>B" ||
			!strings.Contains(strings.Join(built.Warnings, "\n"), named) {
			t.Errorf("%s: %d runs, claim %s, warnings %q", name, unreadable, built.Pairs[0].Claim, built.Warnings)
		}
	}
}

// The cache is what makes reports on large directories quick: traces are compared with what was
// recorded of them, and not decoded.
func TestWithItsCacheAReportDecodesNoTrace(t *testing.T) {
	dir := written(t, three())
	want := robot(t, build(t, dir, options()))
	blind := options()
	blind.Dialects = nil
	if got := robot(t, build(t, dir, blind)); got != want {
		t.Errorf("a trace was decoded:\n%s", got)
	}
	if err := os.RemoveAll(filepath.Join(dir, "cache")); err != nil {
		t.Fatal(err)
	}
	if got := robot(t, build(t, dir, blind)); got == want {
		t.Error("without the cache nothing was decoded either")
	}
}

func TestTheSchemaDescribesTheReport(t *testing.T) {
	t.Parallel()
	document := robot(t, build(t, written(t, three()), options()))
	source, err := versus.Schema("EvalReport", nil)
	if err != nil {
		t.Fatal(err)
	}
	var schema jsonschema.Schema
	if err := json.Unmarshal(source, &schema); err != nil {
		t.Fatal(err)
	}
	resolved, err := schema.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	var instance map[string]any
	if err := json.Unmarshal([]byte(document), &instance); err != nil {
		t.Fatal(err)
	}
	if err := resolved.Validate(instance); err != nil {
		t.Errorf("the report does not fit its schema: %v", err)
	}
	delete(instance, "cells")
	if resolved.Validate(instance) == nil {
		t.Error("a report without cells fits the schema")
	}
	for name, wrong := range map[string]string{
		"ErrorAttribution": `{"category": "bad luck", "tier": "capability", "method": "llm", "confidence": 1,
			"evidence": [], "tags": []}`,
		"JudgeVerdict": `{"result": "Perhaps", "confidence": 1, "critique": "", "evidence": [], "dimension": "",
			"model": "m", "promptHash": "", "abstained": false, "droppedClaims": 0, "member": ""}`,
		"EvalAgentId": `"nobody"`,
	} {
		t.Run(name, func(t *testing.T) {
			for _, fits := range []bool{false, true} {
				document := wrong
				if fits {
					document = strings.NewReplacer("bad luck", "wrong_fix", `"Perhaps"`, "null", "nobody", "somebody").
						Replace(wrong)
				}
				source, err := versus.Schema(name, nil, "somebody")
				var schema jsonschema.Schema
				var instance any
				err = errors.Join(err, json.Unmarshal(source, &schema), json.Unmarshal([]byte(document), &instance))
				if err != nil {
					t.Fatal(err)
				}
				resolved, err := schema.Resolve(nil)
				if err != nil {
					t.Fatal(err)
				}
				if err := resolved.Validate(instance); (err == nil) != fits {
					t.Errorf("%s: %v for %s", name, err, document)
				}
			}
		})
	}
	for _, name := range versus.SchemaNames(nil) {
		if _, err := versus.Schema(name, nil); err != nil {
			t.Error(err)
		}
	}
}

// What the standard requires of a log, and what people want of it: the file and the line.
func TestSARIFHasTheRequiredShape(t *testing.T) {
	t.Parallel()
	built := build(t, written(t, three()), options())
	var out bytes.Buffer
	if err := built.SARIF(&out); err != nil {
		t.Fatal(err)
	}
	var log struct {
		Schema  string `json:"$schema"`
		Version string `json:"version"`
		Runs    []struct {
			Tool struct {
				Driver struct {
					Name  string `json:"name"`
					Rules []struct {
						ID string `json:"id"`
					} `json:"rules"`
				} `json:"driver"`
			} `json:"tool"`
			Results []struct {
				RuleID    string `json:"ruleId"`
				RuleIndex int    `json:"ruleIndex"`
				Level     string `json:"level"`
				Message   struct {
					Text string `json:"text"`
				} `json:"message"`
				Locations []struct {
					PhysicalLocation struct {
						ArtifactLocation struct {
							URI string `json:"uri"`
						} `json:"artifactLocation"`
						Region struct {
							StartLine int `json:"startLine"`
						} `json:"region"`
					} `json:"physicalLocation"`
				} `json:"locations"`
			} `json:"results"`
		} `json:"runs"`
	}
	if err := json.Unmarshal(out.Bytes(), &log); err != nil {
		t.Fatal(err)
	}
	if log.Version != "2.1.0" || log.Schema == "" || len(log.Runs) != 1 || log.Runs[0].Tool.Driver.Name == "" {
		t.Fatalf("log: %s", out.String())
	}
	run := log.Runs[0]
	found := false
	for _, result := range run.Results {
		if result.Message.Text == "" || run.Tool.Driver.Rules[result.RuleIndex].ID != result.RuleID ||
			(result.Level != "error" && result.Level != "warning") {
			t.Errorf("result %+v", result)
		}
		if result.RuleID == "integrity/test_deleted" && len(result.Locations) == 1 {
			place := result.Locations[0].PhysicalLocation
			found = found || place.ArtifactLocation.URI == "calc_test.go" && place.Region.StartLine >= 1
		}
	}
	if !found {
		t.Errorf("the deleted test has no place: %s", out.String())
	}
}

// What agents name and print is shown and never obeyed.
func TestHostileNamesAreHarmless(t *testing.T) {
	t.Parallel()
	d := three()
	d.Arms[0].Agent = "evil\x1b]0;title\x07|<b>"
	built := build(t, written(t, d), options())
	for name, show := range map[string]func(*bytes.Buffer) error{
		"text":     func(b *bytes.Buffer) error { return built.Text(b) },
		"markdown": func(b *bytes.Buffer) error { return built.Markdown(b) },
		"robot":    func(b *bytes.Buffer) error { return built.Robot(b) },
		"sarif":    func(b *bytes.Buffer) error { return built.SARIF(b) },
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			if err := show(&out); err != nil {
				t.Fatal(err)
			}
			if strings.ContainsAny(out.String(), "\x1b\x07") || out.Len() == 0 {
				t.Errorf("%s prints control characters, or nothing", name)
			}
			if !strings.Contains(out.String(), "docs/validity.md") {
				t.Errorf("%s does not name the page on validity", name)
			}
		})
	}
}

func TestACompareAcrossDirectoriesPairsTasks(t *testing.T) {
	t.Parallel()
	arms := []versustest.Arm{{Name: "agent", Agent: "claude-code", Model: "m", Does: versustest.Mistakes}}
	d := versustest.Directory{
		Arms:      arms,
		Tasks:     14,
		Runs:      1,
		Workspace: "export",
	}
	before := written(t, d)
	d.Arms = []versustest.Arm{{Name: "agent", Agent: "claude-code", Model: "m", Does: versustest.Solves}}
	after := written(t, d)
	var sides []versus.Side
	compare := func(allow ...string) *versus.Comparison {
		sides = nil
		for _, dir := range []string{after, before} {
			opened := options()
			opened.Allow = allow
			source, err := versus.Open(t.Context(), dir, opened)
			if err != nil {
				t.Fatal(err)
			}
			sides = append(sides, versus.Side{Name: filepath.Base(filepath.Dir(dir)), Source: source})
		}
		compared, err := versus.Compare(sides)
		if err != nil {
			t.Fatal(err)
		}
		return compared
	}
	compared := compare()
	if len(compared.Pairs) != 1 || compared.Pairs[0].Claim != "inconclusive" || compared.Pairs[0].Diff.NTasks != 14 ||
		!strings.HasPrefix(compared.Statement, "observed (not one experiment): nothing is claimed") {
		t.Errorf("compared: %s %+v", compared.Statement, compared.Pairs)
	}
	if compared = compare("historical"); compared.Pairs[0].Claim != "A>B" {
		t.Errorf("allowed: %+v", compared.Pairs)
	}
	sides[1].Arm = "nobody"
	if _, err := versus.Compare(sides); err == nil || !strings.Contains(err.Error(), "it has agent") {
		t.Errorf("an unknown arm: %v", err)
	}
}

func three() versustest.Directory {
	return versustest.Three([3]string{"claude-code", "codex", "pi-agent"}, "claude-sonnet-4-5")
}
