package harnesscli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/cli/console"
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
	if _, err := readResumeContext(&console.Console{Dir: dir}, "@missing.json"); err == nil {
		t.Error("a file that is missing was read")
	}
}
