package evidence

import (
	"path"
	"slices"
	"strings"

	"github.com/fit-eval/fit/internal/lazyregexp"
	"github.com/fit-eval/fit/internal/patch"
	"github.com/fit-eval/fit/ledger"
	"github.com/fit-eval/fit/session"
)

// facts holds what the scores and the attribution are made from.
type facts struct {
	task     *Task
	record   *ledger.Record
	patch    *patch.Patch
	classes  *classifier
	files    []FileChange
	seen     *observer // nil: no agent spoke in a trace
	session  *session.EnrichedSession
	verify   *session.VerifyResult // nil: nothing was measured
	critical bool
}

// rubric measures the five scores.
func (f *facts) rubric() QualityRubric {
	return QualityRubric{
		Correctness:  f.correctness(),
		Completeness: f.completeness(),
		CodeQuality:  f.codeQuality(),
		MinimalDiff:  f.minimalDiff(),
		Verification: f.verification(),
	}
}

func score(value float64) *float64 { return &value }

func (f *facts) correctness() *float64 {
	switch {
	case f.critical:
		return score(0)
	case f.verify == nil:
		return nil
	case f.verify.Passed:
		return score(1)
	}
	return score(0)
}

// The scores of the verification.
const (
	verifiedLastEdit  = 1.0 // tests or a build passed after the last edit
	verifiedThenEdits = 0.7 // they did after an edit, and others followed
	verifiedUnknown   = 0.5 // they ran after an edit, and it is not known how they ended
	verifiedFailed    = 0.2 // the last ones after an edit failed
)

func (f *facts) verification() *float64 {
	if f.seen == nil {
		return nil
	}
	tests := &f.seen.tests
	switch {
	case tests.last == endedPassed:
		return score(verifiedLastEdit)
	case tests.last == 0 && tests.lastPostEdit != endedFailed && tests.passed:
		return score(verifiedThenEdits)
	case tests.lastPostEdit == endedFailed:
		return score(verifiedFailed)
	case tests.unknown:
		return score(verifiedUnknown)
	case !tests.firstEdit && tests.runs > 0 && len(f.files) > 0:
		return score(verifiedUnknown) // the edits were not seen, so their order is not known
	}
	return score(0)
}

// size counts the changed lines and files of the source code.
func size(files []FileChange) (lines, count int) {
	for _, file := range files {
		if file.Class == ClassSource {
			lines += file.Added + file.Removed
			count++
		}
	}
	return lines, count
}

func (f *facts) minimalDiff() *float64 {
	ref := f.task.Reference
	if ref == nil || ref.MaxLines <= 0 || ref.MaxFiles <= 0 || len(f.files) == 0 {
		return nil
	}
	lines, count := size(f.files)
	small := 0.7*within(lines, ref.MaxLines) + 0.3*within(count, ref.MaxFiles)
	if f.patch.Partial && small > 0 { // there is more, and nobody knows how much
		return nil
	}
	return score(small)
}

// within returns 1 up to a limit and falls to 0 at four times the limit.
func within(x, bound int) float64 {
	if x <= bound {
		return 1
	}
	return max(0, 1-float64(x-bound)/float64(3*bound))
}

func (f *facts) codeQuality() *float64 {
	if len(f.files) == 0 {
		return nil
	}
	violations := 0
	for i := range f.patch.Files {
		violations += f.countDebugLines(&f.patch.Files[i])
	}
	lint := f.record.Lint
	measured := lint != nil && lint.Error == ""
	if measured {
		violations += max(0, lint.After-lint.Before)
	}
	if !measured && violations == 0 {
		return nil // finding nothing proves nothing if nothing was searched
	}
	return score(1 / (1 + float64(violations)/3))
}

// countDebugLines counts the lines that were added for debugging, or to silence a checker.
func (f *facts) countDebugLines(file *patch.File) int {
	pattern := debugPattern(file.Path())
	if pattern == nil || f.classes.class(file.Path()) != ClassSource {
		return 0
	}
	count := 0
	for line := range file.Lines() {
		if line.Op == patch.Plus && pattern.MatchString(line.Text) {
			count++
		}
	}
	return count
}

var (
	scriptDebugLine = lazyregexp.New(`\bconsole\.log\b|\bdebugger\b|@ts-(?:ignore|nocheck)\b|eslint-disable|:\s*any\b|\bas any\b|\bTODO\b|\bFIXME\b`)
	goDebugLine     = lazyregexp.New(`\bfmt\.Print(?:ln|f)?\(|\bspew\.Dump\(|//\s*nolint|\bTODO\b|\bFIXME\b|\bpanic\("(?:todo|not implemented)`)
	pythonDebugLine = lazyregexp.New(`^\s*print\(|\bpdb\.set_trace\(|\bbreakpoint\(\)|#\s*type:\s*ignore|#\s*noqa|\bTODO\b|\bFIXME\b`)
	otherDebugLine  = lazyregexp.New(`\bTODO\b|\bFIXME\b|\bdbg!\(|\bvar_dump\(|\bSystem\.out\.println\(`)
)

func debugPattern(name string) *lazyregexp.Regexp {
	switch path.Ext(name) {
	case ".js", ".mjs", ".cjs", ".jsx", ".ts", ".mts", ".cts", ".tsx", ".vue", ".svelte":
		return scriptDebugLine
	case ".go":
		return goDebugLine
	case ".py":
		return pythonDebugLine
	case ".rs", ".php", ".java", ".kt", ".rb", ".c", ".h", ".cc", ".cpp", ".cs", ".swift":
		return otherDebugLine
	}
	return nil
}

// completeness returns the mean of the parts that can be measured.
func (f *facts) completeness() *float64 {
	var parts []float64
	if asksForTests(f.task) {
		touched := 0.0
		if slices.ContainsFunc(f.files, func(c FileChange) bool { return c.Class == classTest && c.Added > 0 }) {
			touched = 1
		}
		parts = append(parts, touched)
	}
	if passed, checked := f.checkedRequirements(); checked > 0 {
		parts = append(parts, float64(passed)/float64(checked))
	}
	if ref := f.task.Reference; ref != nil && len(ref.Files) > 0 {
		found := 0
		for _, name := range ref.Files {
			if slices.ContainsFunc(f.files, func(c FileChange) bool { return c.Path == name || c.Old == name }) {
				found++
			}
		}
		parts = append(parts, float64(found)/float64(len(ref.Files)))
	}
	if len(parts) == 0 {
		return nil
	}
	sum := 0.0
	for _, part := range parts {
		sum += part
	}
	return score(sum / float64(len(parts)))
}

var (
	wantsTests = lazyregexp.New(`(?i)\b(?:add|write|include|provide|extend|update|create|cover)\b[^.\n]{0,60}\btests?\b|\b(?:regression|unit) tests? (?:is |are )?(?:added|written|included)\b`)
	wantsNone  = lazyregexp.New(`(?i)\b(?:do not|don't|never|without|no need to|must not)\b[^.\n]{0,40}\btests?\b`)
)

// asksForTests reports whether a task asks for tests to be written.
func asksForTests(task *Task) bool {
	texts := []string{task.Prompt}
	for _, requirement := range task.Requirements {
		texts = append(texts, requirement.Text)
	}
	for _, text := range texts {
		for sentence := range strings.SplitSeq(text, "\n") {
			if wantsTests.MatchString(sentence) && !wantsNone.MatchString(sentence) {
				return true
			}
		}
	}
	return false
}

// checkedRequirements counts the requirements that a row decides about, and those that it passed.
func (f *facts) checkedRequirements() (passed, checked int) {
	rows := rowsOf(f.record)
	for _, requirement := range f.task.Requirements {
		if pass, known := rows[requirement.Check]; known && requirement.Check != "" {
			checked++
			if pass {
				passed++
			}
		}
	}
	return passed, checked
}
