package harnesscli

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/harness"
)

func TestAResumeContextIsReadFromTheFlagAFileOrStandardInput(t *testing.T) {
	long := `{"reason":"` + strings.Repeat("long ", 40_000) + `"}`
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "resume.json"), []byte(long+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, value := range []string{long, "@resume.json", "-"} {
		con := &console.Console{Dir: dir, Stdin: strings.NewReader(long + "\n")}
		got, err := readResumeContext(con, value)
		if err != nil || got == nil || len(got.Reason) != 200_000 {
			t.Errorf("%.20s: %v", value, err)
		}
	}
	if got, err := readResumeContext(&console.Console{Dir: dir}, ""); got != nil || err != nil {
		t.Errorf("without a value: %v, %v", got, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "empty.json"), []byte("\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for value, want := range map[string]string{
		"@missing.json":       "missing.json",
		"@empty.json":         "it is empty",
		"[]":                  "must be a JSON object, not a JSON array",
		"nonsense":            "it is not JSON",
		`{"history_since":1}`: `"history_since" must not be a JSON number`,
	} {
		t.Run(value, func(t *testing.T) {
			_, err := readResumeContext(&console.Console{Dir: dir}, value)
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", value, err, want)
			}
		})
	}
}

// TestALeftContextThatCannotBeReadIsReported: the discussion continues with what is given.
func TestALeftContextThatCannotBeReadIsReported(t *testing.T) {
	r := room{dir: t.TempDir()}
	if err := os.WriteFile(filepath.Join(r.dir, resumeFile), []byte(`{"reason":"torn`), 0o600); err != nil {
		t.Fatal(err)
	}
	var stderr strings.Builder
	got := r.complete(&console.Console{Stderr: &stderr}, &harness.ResumeContext{Reason: "given"})
	if got.Reason != "given" || !strings.Contains(stderr.String(), "cannot read the state") {
		t.Errorf("%+v, %q", got, stderr.String())
	}
}

// TestWhatTheNextRunNeedsIsReplacedInOneStep keeps the old file open while a new one is written: a
// crash in between leaves the one or the other, and never half of one.
func TestWhatTheNextRunNeedsIsReplacedInOneStep(t *testing.T) {
	r := room{dir: t.TempDir()}
	leave := func(reason string) {
		t.Helper()
		err := r.leave(harness.Result{
			Verdict: harness.VerdictRecessed,
			Resume:  &harness.ResumeContext{Reason: reason},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	leave("the old reason")
	old, err := os.Open(filepath.Join(r.dir, resumeFile))
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	leave("another reason")
	before, err := io.ReadAll(old)
	if err != nil || !strings.Contains(string(before), "the old reason") {
		t.Errorf("the old file was written to: %q, %v", before, err)
	}
	after, err := os.ReadFile(filepath.Join(r.dir, resumeFile))
	if err != nil || !strings.Contains(string(after), "another reason") {
		t.Errorf("the new file holds %q, %v", after, err)
	}
	if files, err := os.ReadDir(r.dir); err != nil || len(files) != 1 {
		t.Errorf("files are left behind: %v, %v", files, err)
	}
}
