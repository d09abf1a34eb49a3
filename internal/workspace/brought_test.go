package workspace

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fit-eval/fit/internal/git"
)

// brings returns what an arm brings: a skill, an instruction file in place of the task's two, and a
// file over one of the task's.
func brings(t *testing.T) []Bring {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, map[string]string{
		"csv-tools/SKILL.md": "skill", "csv-tools/scripts/run.sh": "#!/bin/sh\n", "csv-tools/.git/HEAD": "ref: x\n",
		"NEW.md":         "of the arm",
		"files/main.txt": "of the arm", "files/new/deep.txt": "of the arm",
	})
	return []Bring{
		{Name: "files", Source: filepath.Join(dir, "files")},
		{
			Name:   "skill csv-tools",
			Source: filepath.Join(dir, "csv-tools"),
			To:     ".agents/skills/csv-tools",
			Alone:  []string{".agents/skills/csv-tools", ".codex/skills/csv-tools"},
		},
		{
			Name:     "instructions NEW.md",
			Source:   filepath.Join(dir, "NEW.md"),
			To:       "AGENTS.md",
			Replaces: []string{"CLAUDE.md", ".claude/CLAUDE.md", "AGENTS.md", ".clinerules"},
		},
	}
}

// What an arm brings is there for the agent, and neither in the diff nor in the copy that is
// graded, whatever the agent does to it; git sees no change.
func TestWhatAnArmBringsIsNeverGraded(t *testing.T) {
	own := map[string]string{
		"main.txt": "broken\n", "CLAUDE.md": "-> AGENTS.md", "AGENTS.md": "of the task", ".clinerules/a.md": "rules",
	}
	started := map[string]string{
		"main.txt": "of the arm", "AGENTS.md": "of the arm", "new/deep.txt": "of the arm",
		".agents/skills/csv-tools/SKILL.md":       "skill",
		".agents/skills/csv-tools/scripts/run.sh": "#!/bin/sh\n",
	}
	for _, mode := range []string{"workdir", "export", "worktree"} {
		t.Run(mode, func(t *testing.T) {
			files := map[string]string{}
			if mode == "workdir" {
				for name, content := range own {
					files["workdir/"+name] = content
				}
			} else {
				repo, _ := repository(t)
				if err := os.Remove(filepath.Join(repo, "main.txt")); err != nil {
					t.Fatal(err)
				}
				write(t, repo, own)
				for _, args := range [][]string{{"add", "-A"}, {"commit", "-q", "-m", "own"}} {
					if _, err := git.Output(t.Context(), repo, args...); err != nil {
						t.Fatal(err)
					}
				}
				files["tasks/one/task.yaml"] = fmt.Sprintf("workspace: %s\nrepo: %s\n", mode, repo)
			}
			fam, one := family(t, files)
			w := prepare(t, Config{Family: fam, Task: one, Brings: brings(t)})
			status := func(dir string) string {
				t.Helper()
				if mode == "workdir" {
					return ""
				}
				out, err := git.Output(t.Context(), dir, "status", "--porcelain")
				if err != nil {
					t.Fatal(err)
				}
				return out
			}
			if diff := cmp.Diff(started, withoutGit(list(t, w.Dir))); diff != "" {
				t.Error(diff)
			}
			if out := status(w.Dir); out != "" {
				t.Errorf("git status of the start: %s", out)
			}
			if out, _ := git.Output(t.Context(), w.Dir, "rev-list", "--count", "HEAD"); mode == "export" && out != "1" {
				t.Errorf("%s commits", out)
			}
			write(t, w.Dir, map[string]string{
				"answer.txt": "42", "AGENTS.md": "changed", ".agents/skills/csv-tools/notes.md": "by the agent",
				"new/other.txt": "by the agent",
			})
			d, err := w.Diff(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			var changed []string
			for _, change := range d.Files {
				changed = append(changed, change.Status+" "+change.Path)
			}
			if diff := cmp.Diff([]string{"added answer.txt", "added new/other.txt"}, changed); diff != "" {
				t.Error(diff)
			}
			copied, err := w.Copy(t.Context(), CopyConfig{})
			if err != nil {
				t.Fatal(err)
			}
			want := map[string]string{"answer.txt": "42", "new/other.txt": "by the agent"}
			for name, content := range own {
				want[name] = content
			}
			if diff := cmp.Diff(want, withoutGit(list(t, copied.Dir))); diff != "" {
				t.Error(diff)
			}
			if _, err := os.Lstat(filepath.Join(copied.Dir, ".agents")); err == nil {
				t.Error("an empty directory of the arm is left")
			}
			if out := status(w.Dir); mode != "workdir" && out != "?? answer.txt\n?? new/other.txt" {
				t.Errorf("git status at the end: %q", out)
			}
		})
	}
}

// withoutGit leaves out the repository, and the file that only tests of it need.
func withoutGit(files map[string]string) map[string]string {
	for name := range files {
		if isGitPath(name) || name == ".gitattributes" || name == "ignored.txt" {
			delete(files, name)
		}
	}
	return files
}

// Two skills of one name would be one of two versions, nobody knows which.
func TestASkillThatTheTaskHasIsRefused(t *testing.T) {
	for _, place := range []string{".agents/skills/csv-tools/SKILL.md", ".codex/skills/csv-tools/SKILL.md"} {
		fam, one := family(t, map[string]string{"workdir/" + place: "own"})
		_, err := Prepare(t.Context(), Config{
			Root: t.TempDir(), Name: "cell", Family: fam, Task: one,
			Brings: brings(t),
		})
		if taken, ok := errors.AsType[*TakenError](err); !ok || taken.Path != filepath.Dir(place) ||
			!strings.Contains(err.Error(), "skill csv-tools") {
			t.Errorf("%s: %v", place, err)
		}
	}
}

// A repository may keep one place for skills and link the others to it.
func TestWhatIsBroughtFollowsTheLinksOfTheTask(t *testing.T) {
	fam, one := family(t, map[string]string{
		"workdir/.claude/skills/own/SKILL.md": "own", "workdir/.agents/skills": "-> ../.claude/skills",
	})
	w := prepare(t, Config{Family: fam, Task: one, Brings: brings(t)[1:2]})
	want := list(t, w.Base().Dir)
	if got := list(t, w.Dir); got[".claude/skills/csv-tools/SKILL.md"] != "skill" || got[".agents/skills"] == "" {
		t.Errorf("got %v", got)
	}
	if err := w.Withdraw(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, list(t, w.Dir)); diff != "" {
		t.Error(diff)
	}
}

// An agent that puts links in the place of what was brought leads nobody out of its directory.
func TestWithdrawFollowsNoLinkOfTheAgent(t *testing.T) {
	fam, one := family(t, map[string]string{"workdir/AGENTS.md": "own"})
	w := prepare(t, Config{Family: fam, Task: one, Brings: brings(t)})
	outside := t.TempDir()
	write(t, outside, map[string]string{"skills/csv-tools/SKILL.md": "kept", "AGENTS.md": "kept"})
	for _, name := range []string{".agents", "AGENTS.md"} {
		if err := os.RemoveAll(filepath.Join(w.Dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	write(t, w.Dir, map[string]string{
		".agents": "-> " + outside, "AGENTS.md": "-> " + filepath.Join(outside, "AGENTS.md"),
	})
	if err := w.Withdraw(); err != nil {
		t.Fatal(err)
	}
	kept := map[string]string{"skills/csv-tools/SKILL.md": "kept", "AGENTS.md": "kept"}
	if diff := cmp.Diff(kept, list(t, outside)); diff != "" {
		t.Error(diff)
	}
	if got := list(t, w.Dir)["AGENTS.md"]; got != "own" {
		t.Errorf("AGENTS.md is %q", got)
	}
}

// The family's skills go where the agent looks for them; the rest of its .claude stays.
func TestTheFamilysSkillsGoToTheAgentsPlace(t *testing.T) {
	fam, one := family(t, map[string]string{
		".claude/skills/s/SKILL.md": "skill", ".claude/agents/a.md": "agent",
	})
	w := prepare(t, Config{Family: fam, Task: one, SkillsDir: ".agents/skills"})
	want := map[string]string{".agents/skills/s/SKILL.md": "skill", ".claude/agents/a.md": "agent"}
	if diff := cmp.Diff(want, list(t, w.Dir)); diff != "" {
		t.Error(diff)
	}
}
