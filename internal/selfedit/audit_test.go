package selfedit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// auditLines returns the audit log, each line checked to be an envelope with the number of its
// line.
func auditLines(t *testing.T, p *project) []auditLine {
	t.Helper()
	text, err := os.ReadFile(p.path(".git/fit/selfedit.ndjson"))
	must(t, err)
	var lines []auditLine
	for raw := range bytes.Lines(text) {
		var line auditLine
		decoder := json.NewDecoder(bytes.NewReader(raw))
		decoder.DisallowUnknownFields()
		must(t, decoder.Decode(&line))
		if line.Source != "selfedit" || line.Event.Type != "selfedit" || line.Seq != int64(len(lines)) {
			t.Errorf("line %d is %s", len(lines), raw)
		}
		lines = append(lines, line)
	}
	return lines
}

func TestEveryWriteIsLogged(t *testing.T) {
	p := newProject(t)
	editor := &Editor{Now: func() int64 { return 1234 }}
	_, err := editor.Edit(t.Context(), p.request(skill, "new\n"))
	must(t, err)
	p.mustEdit(".claude/skills/fresh.md", "")
	lines := auditLines(t, p)
	if len(lines) != 4 || lines[0].Event.Outcome != "started" || lines[2].Event.Outcome != "started" {
		t.Fatalf("the log is %+v", lines)
	}
	lines = []auditLine{lines[1], lines[3]}
	event := lines[0].Event
	if lines[0].TS != 1234 || event.Outcome != "written" || event.Path != skill ||
		event.OldSHA256 != hashOf([]byte("old\n")) ||
		event.NewSHA256 != hashOf([]byte("new\n")) || event.Rule != "Edit(.claude/skills/**)" ||
		event.Branch != "feature" || event.Bytes != 4 || event.Root != p.root {
		t.Errorf("the line is %+v", lines[0])
	}
	if lines[1].Event.OldSHA256 != "" || lines[1].TS < 1e12 {
		t.Errorf("the line is %+v", lines[1])
	}
}

func TestARefusalLeavesTheLogAloneAndARollbackIsLogged(t *testing.T) {
	p := newProject(t)
	p.mustRefuse("README.md", settingsAllow)
	if _, err := os.Stat(p.path(".git/fit")); !os.IsNotExist(err) {
		t.Errorf("a refusal made a log: %v", err)
	}
	editor := &Editor{afterPlacing: func() { p.git("checkout", "-q", "-b", "second") }}
	_, err := editor.Edit(t.Context(), p.request(skill, "new\n"))
	wantRefusal(t, err, branchScope)
	lines := auditLines(t, p)
	if len(lines) != 2 || lines[0].Event.Outcome != "started" || lines[1].Event.Outcome != "rolled_back" ||
		!strings.Contains(lines[1].Event.Reason, "second") {
		t.Errorf("the log is %+v", lines)
	}
}

func TestATornLineDoesNotSpoilTheNext(t *testing.T) {
	p := newProject(t)
	p.mustEdit(skill, "one\n")
	log := p.path(".git/fit/selfedit.ndjson")
	file, err := os.OpenFile(log, os.O_APPEND|os.O_WRONLY, 0)
	must(t, err)
	_, err = file.WriteString(`{"source":"selfedit","seq":2,"ts":`)
	must(t, err)
	must(t, file.Close())
	p.mustEdit(skill, "two\n")
	text, err := os.ReadFile(log)
	must(t, err)
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	if len(lines) != 5 || !strings.Contains(lines[3], `"seq":2,`) || !json.Valid([]byte(lines[3])) {
		t.Errorf("the log is %q", lines)
	}
}

// TestMain lets this program be an edit that is killed in its middle.
func TestMain(m *testing.M) {
	root := os.Getenv("SELFEDIT_KILLED_IN")
	if root == "" {
		os.Exit(runTests(m))
	}
	kill := func() { _ = unix.Kill(os.Getpid(), unix.SIGKILL) }
	editor := &Editor{}
	if os.Getenv("SELFEDIT_KILLED") == "before" {
		editor.beforePlacing = kill
	} else {
		editor.afterPlacing = kill
	}
	_, err := editor.Edit(context.Background(), Request{
		Path:    os.Getenv("SELFEDIT_PATH"),
		Dir:     root,
		Content: strings.NewReader("new\n"),
		Home:    root,
	})
	fmt.Println(err)
	os.Exit(1)
}

func runTests(m *testing.M) int {
	dir, err := os.MkdirTemp("", "fit-selfedit-")
	if err != nil {
		fmt.Println(err)
		return 1
	}
	defer os.RemoveAll(dir)
	firstDir = dir
	return m.Run()
}

// TestAKilledWriteHasALine: whatever moment a writer is killed in, a file that changed is in the
// log.
func TestAKilledWriteHasALine(t *testing.T) {
	for _, moment := range []string{"before", "after"} {
		for _, path := range []string{skill, ".claude/skills/fresh.md"} {
			t.Run(moment+" "+path, func(t *testing.T) {
				p := newProject(t)
				killed := exec.CommandContext(t.Context(), os.Args[0])
				killed.Env = append(os.Environ(), "SELFEDIT_KILLED_IN="+p.root, "SELFEDIT_KILLED="+moment,
					"SELFEDIT_PATH="+path)
				output, err := killed.CombinedOutput()
				if state := (*exec.ExitError)(nil); !errors.As(err, &state) || state.Exited() {
					t.Fatalf("the writer was not killed: %v\n%s", err, output)
				}
				content, _ := os.ReadFile(p.path(path))
				if changed := string(content) == "new\n"; changed != (moment == "after") {
					t.Fatalf("the file holds %q", content)
				}
				lines := auditLines(t, p)
				if len(lines) != 1 || lines[0].Event.Outcome != "started" || lines[0].Event.Path != path ||
					lines[0].Event.NewSHA256 != hashOf([]byte("new\n")) {
					t.Errorf("the log is %+v", lines)
				}
				p.mustEdit(path, "newer\n") // nothing that was left stands in the way
			})
		}
	}
}

func TestALogThatLeadsElsewhereStopsTheEdit(t *testing.T) {
	for name, divert := range map[string]func(p *project, victim string){
		"the log is a link": func(p *project,
			victim string,
		) {
			must(p.t, os.Symlink(victim, p.path(".git/fit/selfedit.ndjson")))
		},
		"the log is a hard link": func(p *project,
			victim string,
		) {
			must(p.t, os.Link(victim, p.path(".git/fit/selfedit.ndjson")))
		},
		"the log is a pipe": func(p *project,
			_ string,
		) {
			must(p.t, unix.Mkfifo(p.path(".git/fit/selfedit.ndjson"), 0o644))
		},
		"the directory is a link": func(p *project, victim string) {
			must(p.t, os.Remove(p.path(".git/fit")))
			must(p.t, os.Symlink(filepath.Dir(victim), p.path(".git/fit")))
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProject(t)
			dir, victim := outside(t)
			must(t, os.Mkdir(p.path(".git/fit"), 0o755))
			divert(p, victim)
			before := snapshot(t, p.root)
			if _, err := p.edit(skill, "new\n"); err == nil || isRefusal(err) {
				t.Errorf("got %v, want a failed write", err)
			}
			wantSame(t, before, snapshot(t, p.root))
			wantPrecious(t, dir)
		})
	}
}

func TestDiffCountsLines(t *testing.T) {
	for _, test := range []struct {
		before, after  string
		added, removed int
	}{
		{"", "", 0, 0},
		{"a\nb\nc\n", "a\nb\nc\n", 0, 0},
		{"a\nb\nc\n", "a\nX\nc\n", 1, 1},
		{"a\nb\nc\nd\n", "b\nd\ne\n", 1, 2},
		{"", "a\nb", 2, 0},
		{"a", "a\n", 1, 1},
	} {
		t.Run(test.before, func(t *testing.T) {
			if got := diffLines([]byte(test.before), []byte(test.after)); got.Added != test.added ||
				got.Removed != test.removed {
				t.Errorf("from %q to %q: %+v", test.before, test.after, got)
			}
		})
	}
}
