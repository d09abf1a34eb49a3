package teams

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/cli"
	"github.com/fit-eval/fit/internal/sandbox"
	"github.com/fit-eval/fit/internal/testenv"
)

// advise writes the instruction files and a skill that three vendors read, each with a mark.
func (m *meeting) advise(t *testing.T, dir, mark string) {
	t.Helper()
	name := strings.ToLower(mark)
	skill := "---\nname: " + name + "\ndescription: Use this to greet, " + mark + "-SKILL.\n---\nGreet politely.\n"
	for name, content := range map[string]string{
		"CLAUDE.md":                            mark + "-TEXT\n",
		"AGENTS.md":                            mark + "-TEXT\n",
		".claude/skills/" + name + "/SKILL.md": skill,
		".agents/skills/" + name + "/SKILL.md": skill,
	} {
		m.write(t, filepath.Join(dir, name), content)
	}
}

// home is the home of the person who calls.
func (m *meeting) home(t *testing.T) string {
	t.Helper()
	for _, entry := range m.con.Environ {
		if home, found := strings.CutPrefix(entry, "HOME="); found {
			relative, err := filepath.Rel(m.dir, home)
			if err != nil {
				t.Fatal(err)
			}
			return relative
		}
	}
	t.Fatal("nobody has a home")
	return ""
}

// TestARunReadsItsDirectoryAndNothingElse: the instruction files and skills of --cwd reach the
// model unless --context none says otherwise; those above it and at home never do.
func TestARunReadsItsDirectoryAndNothingElse(t *testing.T) {
	for agent, model := range map[string]string{
		"claude-code": "scripted-model", "codex": "gpt-5.5", "pi-agent": "scripted-model",
	} {
		for name, test := range map[string]struct {
			flags []string
			want  bool
		}{
			"by default":   {[]string{"--isolation", "none"}, true},
			"in a sandbox": {[]string{"--isolation", "bwrap"}, true},
			"none":         {[]string{"--isolation", "none", "--context", "none"}, false},
		} {
			if name == "in a sandbox" && agent != "codex" && !soaking() {
				continue
			}
			t.Run(agent+"/"+name, func(t *testing.T) {
				t.Parallel()
				m := gather(t, `{"turns":[{"text":"Done."}]}`, agent)
				m.advise(t, "above/work", "IN-WORK")
				m.advise(t, "above", "ABOVE")
				home := m.home(t)
				m.advise(t, home, "AT-HOME")
				for _, own := range []string{".claude", ".codex", ".pi/agent"} {
					m.advise(t, filepath.Join(home, own), "AT-HOME")
				}
				m.hold(t, append([]string{
					"run", "--agent", agent, "--model", model, "--cwd", "above/work", "--task-text", "Greet.",
					"--output", "trace.ndjson",
				}, test.flags...)...)
				asked := m.asked()
				for _, mark := range []string{"IN-WORK-TEXT", "IN-WORK-SKILL"} {
					if strings.Contains(asked, mark) != test.want {
						t.Errorf("%s reached the model: %v", mark, !test.want)
					}
				}
				for _, mark := range []string{"ABOVE-", "AT-HOME-"} {
					if strings.Contains(asked, mark) {
						t.Errorf("%s reached the model", mark)
					}
				}
			})
		}
	}
}

// advised is a facilitator that asks one participant.
const advised = `{"scenarios":[
  {"name":"facilitator","when":{"tool":"orchestration/Conclude"},"turns":[
    {"calls":[{"mcp":"orchestration/Ask","input":{"question":"Is it documented?","to":"docs"}}]},
    {"text":"Waiting."},
    {"calls":[{"read":"library/notes.txt"}]},
    {"calls":[{"mcp":"orchestration/Conclude","input":{"verdict":"success","summary":"It is."}}]},
    {"text":"Over."}]},
  {"name":"docs","when":{"system":"You are the writer"},"turns":[
    {"calls":[{"mcp":"orchestration/Answer","input":{"message":"Documented."}}]},{"text":"Done."}]}],
  "turns":[{"text":"A title."}]}`

// TestAMemberReadsItsDirectoryAndTheLeadDoesNot: a participant reads what its own directory brings;
// the lead, which looks into that directory, reads none of it, and nothing of its own beside it.
func TestAMemberReadsItsDirectoryAndTheLeadDoesNot(t *testing.T) {
	t.Parallel()
	m := gather(t, advised, "claude-code", "codex")
	m.write(t, ".claude/agents/docs.md", "---\nagent: codex\nmodel: gpt-5.5\ncwd: library\n---\nYou are the writer.\n")
	m.write(t, "library/notes.txt", "all is well\n")
	m.advise(t, "library", "IN-LIBRARY")
	m.advise(t, ".", "OF-LEAD")
	m.hold(t, "facilitate", "--lead-agent", "claude-code", "--lead-model", "scripted-model", "--agent-profiles", "docs",
		"--agent", "codex", "--task-text", "Review the release.", "--output", "trace.ndjson",
		"--session-timeout", patience)
	m.check(t, map[string]string{"facilitator": "claude-code", "docs": "codex"},
		map[string]string{"docs": "Documented."})
	lead, member := 0, ""
	for _, request := range m.requests {
		if !strings.Contains(request, "You are the writer") { // of the lead: no word of anybody's directory
			lead++
			for _, mark := range []string{"IN-LIBRARY-", "OF-LEAD-"} {
				if strings.Contains(request, mark) {
					t.Errorf("%s reached the lead", mark)
				}
			}
			continue
		}
		member += request
	}
	for mark, want := range map[string]bool{"IN-LIBRARY-TEXT": true, "IN-LIBRARY-SKILL": true, "OF-LEAD-": false} {
		t.Run(mark, func(t *testing.T) {
			if strings.Contains(member, mark) != want {
				t.Errorf("%s reached the participant: %v", mark, !want)
			}
		})
	}
	if lead < 4 {
		t.Errorf("the lead asked its model only %d times", lead)
	}
}

// TestProgramsOfAProjectNeedASandboxOrAWord: a hook of the project runs in a sandbox; without one
// it is refused by the name of its file before anything is spent, unless --context project is said.
func TestProgramsOfAProjectNeedASandboxOrAWord(t *testing.T) {
	t.Parallel()
	if !sandbox.DetectBwrap(t.Context()).Bwrap.OK {
		testenv.Missing(t, "bubblewrap, in which the programs of a project run")
	}
	m := gather(t, `{"turns":[{"text":"Done."}]}`, "claude-code")
	run := func(flags ...string) (code int, hooked bool) {
		t.Helper()
		m.write(t, "work/.claude/settings.json",
			`{"hooks":{"UserPromptSubmit":[{"hooks":[{"type":"command","command":"touch hooked"}]}]}}`)
		m.err.Reset()
		code = cli.Run(t.Context(), append([]string{
			"fit-harness", "run", "--agent", "claude-code", "--model", "scripted-model", "--cwd", "work",
			"--task-text", "Greet.", "--output", "trace.ndjson",
		}, flags...), m.con)
		mark := filepath.Join(m.dir, "work/hooked")
		_, err := os.Stat(mark)
		_ = os.Remove(mark)
		return code, err == nil
	}
	if code, hooked := run("--isolation", "none"); code != 2 || hooked || m.asked() != "" ||
		!strings.Contains(m.err.String(), ".claude/settings.json") {
		t.Errorf("without a word: exit code %d, hook ran: %v\n%s", code, hooked, m.err.String())
	}
	for _, test := range []struct {
		flags []string
		want  bool
	}{
		{[]string{"--isolation", "none", "--context", "project"}, true},
		{[]string{"--isolation", "none", "--context", "none"}, false},
		{[]string{"--isolation", "bwrap"}, true},
	} {
		code, hooked := run(test.flags...)
		recorded := strings.Contains(m.tail(), `"projectPrograms":[".claude/settings.json"]`)
		if code != 0 || hooked != test.want || recorded != test.want {
			t.Errorf("%v: exit code %d, hook ran: %v, recorded: %v\n%s", test.flags, code, hooked, recorded,
				m.err.String())
		}
		_ = os.Remove(filepath.Join(m.dir, "trace.ndjson"))
	}
}
