package versus

import (
	"fmt"
	"io"
	"strings"

	"github.com/fit-eval/fit/internal/display"
)

// Markdown writes the report as Markdown, for step summaries and comments.
func (r *EvalReport) Markdown(w io.Writer) error {
	return write(w, r.sections(), markdownTable, markdownCell)
}

// Markdown writes the comparison as Markdown.
func (c *Comparison) Markdown(w io.Writer) error {
	return write(w, c.sections(), markdownTable, markdownCell)
}

// markdownCell makes a foreign text safe for a table and for a line: nothing in it is a link, an
// image, a tag or the end of a cell.
func markdownCell(text string) string {
	return strings.NewReplacer(`\`, `\\`, "|", `\|`, "<", "&lt;", "[", `\[`, "]", `\]`, "`", "\\`", "*", `\*`, "_",
		`\_`).Replace(display.Line(text))
}

func markdownTable(w io.Writer, s section) error {
	var out strings.Builder
	if s.title != "" {
		fmt.Fprintf(&out, "## %s\n\n", s.title)
	}
	if len(s.rows) > 0 {
		fmt.Fprintf(&out, "| %s |\n|%s\n", strings.Join(s.head, " | "), strings.Repeat(" --- |", len(s.head)))
	}
	for _, row := range s.rows {
		fmt.Fprintf(&out, "| %s |\n", strings.Join(row, " | "))
	}
	if len(s.rows) > 0 && len(s.lines) > 0 {
		out.WriteString("\n")
	}
	for _, line := range s.lines {
		if s.title == "" {
			fmt.Fprintf(&out, "**%s**\n", line)
			continue
		}
		fmt.Fprintf(&out, "- %s\n", line)
	}
	_, err := io.WriteString(w, out.String())
	return err
}
