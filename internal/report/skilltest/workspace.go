package skilltest

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path"
	"path/filepath"
	"strings"
	"unicode"

	"github.com/fit-eval/fit/internal/atomicfile"
	"github.com/fit-eval/fit/internal/evidence"
	"github.com/fit-eval/fit/internal/experiment"
	"github.com/fit-eval/fit/internal/report/results"
	"github.com/fit-eval/fit/internal/scratch"
	"github.com/fit-eval/fit/ledger"
	"github.com/fit-eval/fit/stats"
)

// The configurations, as the convention of workspaces names them.
var configurations = map[string]string{ArmWith: "with_skill", ArmWithout: "without_skill", ArmFormer: "old_skill"}

// Spread is a mean over runs, with its standard deviation.
type Spread struct {
	Mean   float64 `json:"mean"`
	StdDev float64 `json:"stddev"`
}

// Summary is what the runs of an arm come to: their assertions, and what they took.
type Summary struct {
	Runs int `json:"runs"`
	// WithoutVerdict counts the other runs, which are in no mean.
	WithoutVerdict int    `json:"runs_without_verdict,omitempty"`
	PassRate       Spread `json:"pass_rate"` // of the assertions of a run
	Seconds        Spread `json:"time_seconds"`
	// Tokens is nil if no run knows how many it took.
	Tokens *Spread `json:"tokens,omitempty"`
}

// measured is what the convention keeps of one run.
type measured struct {
	record  *ledger.Record
	rows    []results.SentenceRow
	passed  int
	seconds float64
	tokens  *int64 // nil: unknown
}

func (m *measured) passRate() float64 { return float64(m.passed) / float64(max(len(m.rows), 1)) }

// measure returns what is known of a run; nil if it has no verdict.
func measure(r *ledger.Record) *measured {
	rows := rowsOf(r)
	if len(rows) == 0 {
		return nil
	}
	m := &measured{record: r, rows: rows, seconds: float64(r.PhaseMs["agent"]) / 1000}
	if r.Tokens != nil {
		m.tokens = new(r.Tokens.Total())
	}
	for i := range rows {
		if rows[i].Pass {
			m.passed++
		}
	}
	return m
}

// summarise computes the means of the runs of each arm.
func summarise(records []ledger.Record) map[string]Summary {
	type values struct{ rates, seconds, tokens []float64 }
	known, all := map[string]*values{}, map[string]Summary{}
	for i := range records {
		arm, m := records[i].Arm, measure(&records[i])
		if known[arm] == nil {
			known[arm] = &values{}
		}
		if m == nil {
			all[arm] = Summary{WithoutVerdict: all[arm].WithoutVerdict + 1}
			continue
		}
		of := known[arm]
		of.rates, of.seconds = append(of.rates, m.passRate()), append(of.seconds, m.seconds)
		if m.tokens != nil {
			of.tokens = append(of.tokens, float64(*m.tokens))
		}
	}
	for arm, of := range known {
		s := Summary{
			Runs:           len(of.rates),
			WithoutVerdict: all[arm].WithoutVerdict,
			PassRate:       spreadOf(of.rates),
			Seconds:        spreadOf(of.seconds),
		}
		if len(of.tokens) > 0 {
			s.Tokens = new(spreadOf(of.tokens))
		}
		all[arm] = s
	}
	return all
}

func spreadOf(values []float64) Spread {
	s := Spread{Mean: stats.Mean(values)}
	for _, v := range values {
		s.StdDev += (v - s.Mean) * (v - s.Mean)
	}
	s.StdDev = math.Sqrt(s.StdDev / float64(max(len(values)-1, 1)))
	return s
}

// The files of the convention.
type (
	gradedText struct {
		Text     string `json:"text"`
		Passed   bool   `json:"passed"`
		Evidence string `json:"evidence"`
	}
	gradedSummary struct {
		Passed   int     `json:"passed"`
		Failed   int     `json:"failed"`
		Total    int     `json:"total"`
		PassRate float64 `json:"pass_rate"`
	}
	// gradingFile has the results under both names that are in use.
	gradingFile struct {
		Assertions   []gradedText  `json:"assertion_results"`
		Expectations []gradedText  `json:"expectations"`
		Summary      gradedSummary `json:"summary"`
	}
	timingFile struct {
		TotalTokens *int64  `json:"total_tokens,omitempty"`
		DurationMs  int64   `json:"duration_ms"`
		Seconds     float64 `json:"total_duration_seconds"`
	}
	benchmarkResult struct {
		gradedSummary
		Seconds float64 `json:"time_seconds"`
		Tokens  *int64  `json:"tokens,omitempty"`
	}
	benchmarkRun struct {
		EvalID        string          `json:"eval_id"`
		Configuration string          `json:"configuration"`
		RunNumber     int             `json:"run_number"`
		Result        benchmarkResult `json:"result"`
		Expectations  []gradedText    `json:"expectations"`
	}
	delta struct {
		PassRate float64  `json:"pass_rate"`
		Seconds  float64  `json:"time_seconds"`
		Tokens   *float64 `json:"tokens,omitempty"`
	}
	benchmarkFile struct {
		Metadata map[string]any `json:"metadata"`
		Runs     []benchmarkRun `json:"runs"`
		Summary  map[string]any `json:"run_summary"`
	}
)

// WriteWorkspace writes what other tools read of a test into its run directory: grading.json,
// timing.json and outputs for each run, and benchmark.json.
func WriteWorkspace(dir string, a *Answer) error {
	bench := benchmarkFile{
		Metadata: map[string]any{"skill_name": a.Skill, "claim": a.Comparison.Decision.Claim},
		Runs:     []benchmarkRun{},
		Summary:  map[string]any{},
	}
	for arm, s := range a.Summaries {
		bench.Summary[configurations[arm]] = s
	}
	base, with := a.Summaries[a.Comparison.A.Arm], a.Summaries[ArmWith]
	difference := delta{
		PassRate: with.PassRate.Mean - base.PassRate.Mean,
		Seconds:  with.Seconds.Mean - base.Seconds.Mean,
	}
	if with.Tokens != nil && base.Tokens != nil {
		difference.Tokens = new(with.Tokens.Mean - base.Tokens.Mean)
	}
	bench.Summary["delta"] = difference
	files := &evidence.Directory{Root: dir}
	for i := range a.records {
		m := measure(&a.records[i])
		if m == nil {
			continue
		}
		one, err := a.writeRun(dir, files, m)
		if err != nil {
			return fmt.Errorf("write the workspace of %s: %w", a.Skill, err)
		}
		bench.Runs = append(bench.Runs, one)
	}
	return writeJSON(filepath.Join(dir, "benchmark.json"), bench)
}

func (a *Answer) writeRun(dir string, files *evidence.Directory, m *measured) (benchmarkRun, error) {
	r := m.record
	summary := gradedSummary{
		Passed:   m.passed,
		Failed:   len(m.rows) - m.passed,
		Total:    len(m.rows),
		PassRate: m.passRate(),
	}
	run := benchmarkRun{
		EvalID:        r.TaskID,
		Configuration: configurations[r.Arm],
		RunNumber:     r.RunIndex + 1,
		Result:        benchmarkResult{summary, m.seconds, m.tokens},
		Expectations:  []gradedText{},
	}
	for i := range m.rows {
		row := &m.rows[i]
		graded := gradedText{Text: a.texts[[2]string{r.TaskID, row.Test}], Passed: row.Pass, Evidence: row.Message}
		if len(row.Evidence) > 0 {
			graded.Evidence = strings.Join(row.Evidence, "\n")
		}
		run.Expectations = append(run.Expectations, graded)
	}
	to := filepath.Join(dir, evalDir(r.TaskID), run.Configuration, fmt.Sprintf("run-%d", run.RunNumber))
	if err := scratch.RemoveAll(to); err != nil {
		return run, err
	}
	if err := os.MkdirAll(filepath.Join(to, "outputs"), 0o700); err != nil {
		return run, err
	}
	err := writeJSON(filepath.Join(to, "grading.json"), gradingFile{run.Expectations, run.Expectations, summary})
	return run, errors.Join(err,
		writeJSON(filepath.Join(to, "timing.json"), timingFile{m.tokens, r.PhaseMs["agent"], m.seconds}),
		copyOutputs(dir, files, r, filepath.Join(to, "outputs")))
}

// evalDir names the directory of a case. The id may be any text: one that is not a file name is
// followed by a part of its hash, so that no two cases share a directory.
func evalDir(id string) string {
	name := strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) || r == '-' || r == '_' {
			return r
		}
		return '-'
	}, id)
	if len(name) > 100 {
		name = name[:100]
	}
	if name = strings.ToValidUTF8(name, ""); name != id {
		sum := sha256.Sum256([]byte(id))
		name += "-" + hex.EncodeToString(sum[:4])
	}
	return "eval-" + name
}

// maxOutput bounds a file that is copied to the outputs, maxOutputs how many are.
const (
	maxOutput  = 16 << 20
	maxOutputs = 200
)

// copyOutputs copies the files that a run made or changed, and its last message. The run's
// directory is the agent's: nothing but regular files is copied, and no link is followed out of it.
func copyOutputs(dir string, files *evidence.Directory, r *ledger.Record, to string) error {
	top := filepath.Join(dir, filepath.FromSlash(r.RunDir))
	if answer, err := os.ReadFile(filepath.Join(top, experiment.AnswerFile)); err == nil {
		if err := os.WriteFile(filepath.Join(to, experiment.AnswerFile), answer, 0o600); err != nil {
			return err
		}
	}
	diff, err := files.Diff(r)
	if err != nil {
		return nil // a run whose files are gone has no outputs
	}
	from, err := os.OpenRoot(filepath.Join(top, "cwd"))
	if err != nil {
		return nil
	}
	defer from.Close()
	into, err := os.OpenRoot(to)
	if err != nil {
		return err
	}
	defer into.Close()
	parsed := evidence.ParseDiff(diff)
	for i := range min(len(parsed.Files), maxOutputs) {
		if err := copyOutput(from, into, parsed.Files[i].Path()); err != nil {
			return err
		}
	}
	return nil
}

func copyOutput(from, into *os.Root, name string) error {
	name = path.Clean(name)
	info, err := from.Lstat(name)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxOutput {
		return nil // deleted, a link, or too large
	}
	source, err := from.Open(name)
	if err != nil {
		return nil
	}
	defer source.Close()
	if err := into.MkdirAll(path.Dir(name), 0o700); err != nil {
		return err
	}
	target, err := into.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = io.Copy(target, io.LimitReader(source, maxOutput))
	return errors.Join(err, target.Close())
}

func writeJSON(file string, value any) error {
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return err
	}
	return atomicfile.WriteSynced(file, 0o600, append(text, '\n'))
}
