package benchmarkcli

import (
	"os"
	"path/filepath"

	"github.com/fit-eval/fit/internal/grade"
	"github.com/fit-eval/fit/internal/task"
)

// answer is what a sample is graded with: nothing, or its reference answer, which an agent that
// behaved well has given. It is nil for other tasks.
func (l *taskLinter) answer(dir string, reference bool) (*grade.Answer, error) {
	sample, nothing := l.t.Sample, 0.0
	switch {
	case sample == nil:
		return nil, nil
	case !reference:
		return &grade.Answer{CostUSD: &nothing}, nil
	}
	if name := sample.AnswerFile; name != "" {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return nil, err
		}
		if err := os.WriteFile(file, []byte(*sample.Reference), 0o644); err != nil {
			return nil, err
		}
	}
	return &grade.Answer{
		Text:    *sample.Reference,
		CostUSD: &nothing,
		Trace:   func(check task.AnswerCheck) (bool, string, error) { return !check.Not, "", nil },
	}, nil
}

// datasetDoubts says once what is true for all samples.
func (l *linter) datasetDoubts() {
	if len(l.family.Tasks) > 0 && l.family.Tasks[0].Sample != nil && l.family.Tasks[0].Sample.Reference == nil {
		l.findings = append(l.findings, finding{Level: "warning", Message: "there is no reference (e.g. " +
			"reference: \"{{answer}}\"), so it is unknown whether the checks can be passed"})
	}
}
