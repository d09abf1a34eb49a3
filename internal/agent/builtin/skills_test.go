package builtin

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/model/scripted"
	"github.com/fit-eval/fit/internal/model/scripted/scriptedtest"
)

func TestSkillsAreNamedInTheSystemPromptAndReadWithTheTool(t *testing.T) {
	b := newBench(t, `{"scenarios":[
		{"name":"with","when":{"system":"- try-it (.claude/skills/testing/SKILL.md): Use it when you have written a script."},
		 "turns":[{"calls":[{"read":".claude/skills/testing/SKILL.md"}]},{"text":"${last_result}"}]}],
		"turns":[{"text":"I know no skill."}]}`)
	if result := b.prompt(t.Context(), New(), b.config(), "Work."); result.Text != "I know no skill." {
		t.Errorf("without a skill: %q", result.Text)
	}
	b.write(".claude/skills/testing/SKILL.md",
		"---\r\nname: try-it\r\ndescription: >-\r\n  Use it when you have\r\n  written a script.\r\nallowed-tools: [Bash]\r\n---\r\nRun it once.\r\n")
	if result := b.prompt(t.Context(), New(), b.config(), "Work."); !strings.Contains(result.Text, "Run it once.") {
		t.Errorf("with a skill: %q", result.Text)
	}
}

// TestTheProjectIsInTheSystemPrompt: the first instruction file, its beginning where it is long,
// and each skill once, also behind a system prompt that replaces the agent's own; with context none
// nothing.
func TestTheProjectIsInTheSystemPrompt(t *testing.T) {
	b := newBench(t, `{"turns":[{"text":"x"}]}`)
	prompt := func(change func(*agent.Config)) string {
		t.Helper()
		cfg := b.config()
		change(&cfg)
		root, err := os.OpenRoot(b.dir)
		if err != nil {
			t.Fatal(err)
		}
		defer root.Close()
		return (&conversation{agent: New(), cfg: cfg, root: root}).systemPrompt()
	}
	as := func(*agent.Config) {}
	b.write("CLAUDE.md", "Second.")
	if got := prompt(as); !strings.HasSuffix(got, "\n\nThe instructions of this project (CLAUDE.md):\n\nSecond.") {
		t.Errorf("with CLAUDE.md: %q", got)
	}
	b.write("AGENTS.md", strings.Repeat("ü", maxInstructions)+"end")
	b.write(".claude/skills/a/SKILL.md", "---\nname: a\ndescription: Of Claude.\n---\n")
	b.write(".agents/skills/a/SKILL.md", "---\nname: a\ndescription: Of all.\n---\n")
	b.write(".agents/skills/b/SKILL.md", "---\nname: b\ndisable-model-invocation: true\n---\n")
	got := prompt(as)
	if strings.Contains(got, "Second") || strings.Contains(got, "end") ||
		strings.Count(got, "ü") != maxInstructions/2 ||
		!strings.Contains(got, "ü\n\n[This is the beginning of AGENTS.md; read the file for the rest.]") {
		t.Errorf("with a long AGENTS.md: %q", strings.ReplaceAll(got, "ü", ""))
	}
	if !strings.HasSuffix(got, "\n- a (.claude/skills/a/SKILL.md): Of Claude.") {
		t.Errorf("with skills: %q", strings.ReplaceAll(got, "ü", ""))
	}
	replaced := prompt(func(c *agent.Config) { c.SystemPrompt, c.ReplaceSystemPrompt = "Be kind.", true })
	if !strings.HasPrefix(replaced, "Be kind.\n\nThe instructions") || !strings.HasSuffix(replaced, "Of Claude.") {
		t.Errorf("with another system prompt: %q", strings.ReplaceAll(replaced, "ü", ""))
	}
	none := prompt(func(c *agent.Config) { c.SystemPrompt, c.Context = "Be kind.", agent.ContextNone })
	if none != fmt.Sprintf(ownSystemPrompt, b.dir)+"\n\nBe kind." {
		t.Errorf("with context none: %q", none)
	}
}

// TestSamplingReachesTheModel: where its protocol has words for it; otherwise it is refused.
func TestSamplingReachesTheModel(t *testing.T) {
	var bodies []string
	script := map[string]string{"": `{"turns":[{"text":"x"}]}`}
	url := scriptedtest.ServeAll(t, script, scripted.Options{
		LogBodies: true, OnRequest: func(r scripted.Record) { bodies = append(bodies, string(r.Body)) },
	})
	b := newBench(t, `{"turns":[{"text":"x"}]}`)
	cfg := b.config()
	cfg.ModelURL, cfg.Model, cfg.Temperature, cfg.Effort = url, "gpt-5.5", new(0.25), "low"
	b.prompt(t.Context(), New(), cfg, "Work.")
	for _, want := range []string{`"temperature":0.25`, `"effort":"low"`} {
		if len(bodies) != 1 || !strings.Contains(bodies[0], want) {
			t.Errorf("the model was not told %s: %q", want, bodies)
		}
	}
	for model, effort := range map[string]string{"gpt-5.5": "huge", "claude-sonnet-4-5": "low"} {
		t.Run(model, func(t *testing.T) {
			cfg.Model, cfg.Effort = model, effort
			if err := agent.Check(New(), cfg); err == nil || !strings.Contains(err.Error(), "effort") {
				t.Errorf("effort %s of %s: %v", effort, model, err)
			}
		})
	}
}

func TestSkillsThatCannotBeReadAreLeftOut(t *testing.T) {
	b := newBench(t, `{"turns":[{"text":"x"}]}`)
	outside := filepath.Join(t.TempDir(), "secret")
	if err := os.MkdirAll(outside, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(outside, "SKILL.md"), []byte("---\nname: secret\n---\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.write(".claude/skills/bare/SKILL.md", "No front matter.")
	b.write(".claude/skills/broken/SKILL.md", "---\nname: [\n---\n")
	b.write(".claude/skills/long/SKILL.md", "---\nname: long\ndescription: "+strings.Repeat("ä", 5000)+"\n---\n")
	b.write(".claude/skills/no-file/README.md", "x")
	b.write(".claude/skills/dir/SKILL.md/x", "a directory in the place of the file")
	if err := os.Symlink(outside, filepath.Join(b.dir, ".claude/skills/escape")); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(b.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	var names []string
	for _, s := range findSkills(root) {
		names = append(names, s.name)
		if len(s.description) > maxSkillDescription+4 {
			t.Errorf("%s: a description of %d bytes", s.name, len(s.description))
		}
	}
	if got := strings.Join(names, " "); got != "bare broken long" {
		t.Errorf("found %s", got)
	}
}
