package teams

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/testenv"
)

// TestAFullDiskIsNotTheFaultOfAnAgent holds sessions on disks that are too small for the trace, or
// for what the agents keep. Each ends with 3, keeps everything, and is resumed to the outcome that
// it would have had.
func TestAFullDiskIsNotTheFaultOfAnAgent(t *testing.T) {
	bwrap := testenv.NeedTool(t, "bwrap")
	type disk struct {
		what, agent string
		kilobytes   int
	}
	disks := []disk{
		{"trace", "builtin", 4},
		{"trace", "builtin", 8},
		{"trace", "builtin", 16},
		{"trace", "codex", 32},
		{"homes", "codex", 64},
	}
	if soaking() { // whose lines fill a disk makes no difference to it
		disks = append(disks, disk{"trace", "claude-code", 32})
	}
	for _, test := range disks {
		t.Run(fmt.Sprintf("%s of %s, %d kB", test.what, test.agent, test.kilobytes), func(t *testing.T) {
			t.Parallel()
			m := gather(t, twoRounds, test.agent)
			m.write(t, ".claude/agents/alice.md", "You are alice.\n")
			m.write(t, ".claude/agents/bob.md", "You are bob.\n")
			// the small disk is only there while the command runs, so its files are moved out
			small := map[string]string{"trace": "small/trace.ndjson", "homes": "trace.ndjson"}[test.what]
			homes := map[string]string{"trace": "homes", "homes": "small/homes"}[test.what]
			program, err := os.Executable()
			if err == nil {
				err = os.Symlink(program, filepath.Join(m.dir, "fit-harness"))
			}
			if err != nil {
				t.Fatal(err)
			}
			m.write(t, "held.sh", `./fit-harness "$@"; code=$?
if [ -e small/trace.ndjson ]; then cp small/trace.ndjson .; fi
if [ -e small/homes ]; then mkdir saved; cp -a small/homes saved/; fi
exit $code`)
			m.write(t, "small/.keep", "")
			command := exec.CommandContext(t.Context(), bwrap, "--dev-bind", "/", "/", "--size",
				fmt.Sprint(test.kilobytes<<10), "--tmpfs", filepath.Join(m.dir, "small"), "--chdir", m.dir,
				"sh", "held.sh", "facilitate", "--isolation", "none", "--agent", test.agent,
				"--lead-agent", "builtin", "--agent-model", "gpt-5.5", "--agent-profiles", "alice,bob",
				"--task-text", "Hold two rounds.", "--output", small, "--session-home", homes,
				"--session-timeout", patience)
			command.Dir, command.Env = m.dir, m.asProgram(t)
			var stderr bytes.Buffer
			command.Stderr = &stderr
			_ = command.Run() // its exit code is looked at
			if code := command.ProcessState.ExitCode(); code != 3 ||
				!strings.Contains(stderr.String(), "fit-harness resume") {
				t.Fatalf("exit code %d\n%s\n%s", code, stderr.String(), m.tail())
			}
			if test.what == "homes" {
				if err := os.RemoveAll(filepath.Join(m.dir, "small")); err != nil {
					t.Fatal(err)
				}
				if err := os.Rename(filepath.Join(m.dir, "saved"), filepath.Join(m.dir, "small")); err != nil {
					t.Fatal(err)
				}
			}
			m.hold(t, "resume", "trace.ndjson")
			m.checkRounds(t)
		})
	}
}
