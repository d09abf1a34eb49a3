package report

import (
	"fmt"
	"strings"

	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/ledger"
	"github.com/fit-eval/fit/stats"
)

const dash = "—"

func icon(ok bool) string {
	if ok {
		return "✅"
	}
	return "❌"
}

// verdictIcon shows a verdict; missing data has its own sign.
func verdictIcon(verdict string) string {
	switch verdict {
	case ledger.Pass:
		return "✅"
	case ledger.Fail:
		return "❌"
	case "":
		return dash
	default:
		return "⚠️"
	}
}

func (v Value) text() string {
	if v.Err != "" {
		return v.Err
	}
	return fmt.Sprintf("%.4f", v.Est)
}

// atKText shows the pass@k of a task with its limits.
func (t *Task) atKText(k string) string {
	value := t.PassAtK[k]
	interval, known := t.PassAtKInterval[k]
	if value.Err != "" || !known {
		return value.text()
	}
	return fmt.Sprintf("%.4f [%.4f, %.4f]", value.Est, interval.Lo, interval.Hi)
}

func atKText(at stats.AtK) string {
	if !at.Defined() {
		return stats.ErrKExceedsN.Error()
	}
	return intervalText(&at.Interval)
}

// intervalText shows an estimate with its limits.
func intervalText(i *stats.Interval) string {
	if i == nil {
		return dash
	}
	return fmt.Sprintf("%.4f [%.4f, %.4f]", i.Est, i.Lo, i.Hi)
}

// percent formats a rate with its limits for people.
func percent(i *stats.Interval) string {
	if i == nil {
		return dash
	}
	return fmt.Sprintf("%.1f%% [%.1f, %.1f]", 100*i.Est, 100*i.Lo, 100*i.Hi)
}

// Count formats a count with its noun in the singular or plural.
func Count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	if stem, found := strings.CutSuffix(what, "y"); found && !strings.HasSuffix(stem, "a") {
		return fmt.Sprintf("%d %sies", n, stem)
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// cell makes a text safe for one cell of a Markdown table.
func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "<", "&lt;", "\n", " ").Replace(display.Line(text))
}
