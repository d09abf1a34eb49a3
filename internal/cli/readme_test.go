package cli_test

import (
	"bytes"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/cli"
	"github.com/fit-eval/fit/internal/cli/console"
)

// TestTheReadmeShowsWhatIsPrinted runs what the first five minutes of the README show. A line of
// "…" stands for anything, and so do durations.
func TestTheReadmeShowsWhatIsPrinted(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	printed := func(args ...string) string {
		t.Helper()
		var out bytes.Buffer
		con := &console.Console{
			Stdin: strings.NewReader(""), Stdout: &out, Stderr: &out,
			Environ: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}, Dir: t.TempDir(),
		}
		if code := cli.Run(t.Context(), args, con); code != console.ExitGood {
			t.Fatalf("%s: exit %d\n%s", strings.Join(args, " "), code, out.String())
		}
		return out.String()
	}
	solo := printed("fit", "demo", "--solo")
	traceFile := regexp.MustCompile(`/\S+/trace\.ndjson`).FindString(solo)
	for command, output := range map[string]string{
		"fit demo":                        printed("fit", "demo"),
		"fit-harness run --agent builtin": solo, // the same agent, task and script; a reader has a model of their own
		"fit-trace timeline trace.ndjson": printed("fit-trace", "timeline", traceFile),
		"fit-trace sql trace.ndjson": printed("fit-trace", "sql", traceFile,
			"select name, count(*) as uses from tool_calls group by 1"),
	} {
		t.Run(command, func(t *testing.T) {
			for _, line := range shownAfter(t, string(page), command) {
				pattern := regexp.MustCompile(`Duration: \S+`).ReplaceAllString(regexp.QuoteMeta(line), `Duration: \S+`)
				if !regexp.MustCompile(`(?m)^` + pattern + ` *$`).MatchString(output) {
					t.Errorf("the README shows for %q\n%s\nwhich is not in\n%s", command, line, output)
				}
			}
		})
	}
}

// shownAfter is what a page shows below a command: the indented lines up to the next command or the
// end of the block.
func shownAfter(t *testing.T, page, command string) []string {
	t.Helper()
	const indent = "    "
	_, block, found := strings.Cut(page, "\n"+indent+"$ "+command)
	if !found {
		t.Fatalf("the README does not show %q", command)
	}
	var shown []string
	for line := range strings.SplitSeq(block[strings.Index(block, "\n")+1:], "\n") {
		text, indented := strings.CutPrefix(line, indent)
		if line != "" && !indented || strings.HasPrefix(text, "$ ") {
			break
		}
		if text != "" && text != "…" {
			shown = append(shown, text)
		}
	}
	if len(shown) == 0 {
		t.Fatalf("the README shows nothing below %q", command)
	}
	return shown
}
