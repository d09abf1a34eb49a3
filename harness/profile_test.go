package harness_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fit-eval/fit/agent"
	"github.com/fit-eval/fit/harness"
)

func TestProfileIsTakenApart(t *testing.T) {
	for name, test := range map[string]struct{ text, persona, protocol string }{
		"no front matter": {"Be kind.\n", "Be kind.", ""},
		"front matter":    {"---\nname: x\n---\nBe kind.\n", "Be kind.", ""},
		"empty fence":     {"---\n---\nBe kind.", "Be kind.", ""},
		"fence at end":    {"---\nname: x\n---", "", ""},
		"CRLF":            {"---\r\nname: x\r\n---\r\nBe kind.\r\n", "Be kind.", ""},
		"no end":          {"---\nname: x\n", "---\nname: x", ""},
		"hoisted": {"Before.\n\n## session PROTOCOL  \n\nSay so.\n\n### Detail\n\nMore.\n\n## After\n\nRest.",
			"Before.\n\n## After\n\nRest.", "Say so.\n\n### Detail\n\nMore."},
		"heading in code": {"## Session Protocol\n```sh\n# a comment\n## another\n```\nStill it.\n# End\n", "# End",
			"```sh\n# a comment\n## another\n```\nStill it."},
		"all in code":  {"~~~\n## Session Protocol\n~~~\nBody.", "~~~\n## Session Protocol\n~~~\nBody.", ""},
		"second stays": {"## Session Protocol\none\n## Session Protocol\ntwo", "## Session Protocol\ntwo", "one"},
		"level three":  {"### Session Protocol\nno", "### Session Protocol\nno", ""},
	} {
		p, err := harness.ParseProfile(test.text)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff([]string{test.persona, test.protocol}, []string{p.Persona(), p.Protocol()}); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestFrontMatterIsHonoured(t *testing.T) {
	p, err := harness.ParseProfile("---\nname: sec\ndescription: Finds holes.\nagent: codex\nmodel: big\ntools: Read, Grep\nskills: [audit]\nmaxTurns: 7\ncwd: sub\ncolor: red\n---\nx")
	if err != nil {
		t.Fatal(err)
	}
	if p.Name != "sec" || p.Agent != "codex" || p.Model != "big" || p.MaxTurns != 7 || p.Cwd != "sub" ||
		strings.Join(p.Tools, " ") != "Read Grep" || strings.Join(p.Skills, " ") != "audit" {
		t.Errorf("got %+v", p)
	}
	for text, want := range map[string]string{
		"---\nname: x\nmaxTurns: many\n---\n": "x.md:3:11: maxTurns",
		"---\ntools: 7\n---\n":                "x.md:2:8: tools",
		"---\nname: [\n---\n":                 "x.md:",
	} {
		if _, err := harness.ParseProfile(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

func TestProfilesAreFoundByNameOnly(t *testing.T) {
	dir := t.TempDir()
	outside := filepath.Join(dir, "outside.md")
	agents := filepath.Join(dir, "agents")
	for path, text := range map[string]string{outside: "secret", filepath.Join(agents, "alice.md"): "I am Alice."} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(outside, filepath.Join(agents, "link.md")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"../outside", "", ".", "a/b", "/etc/passwd", "link", "nobody", "a..b/../outside"} {
		if p, err := harness.LoadProfile(agents, name); err == nil {
			t.Errorf("profile %q was read: %q", name, p.Persona())
		}
	}
	if _, err := harness.LoadProfile(agents, "nobody"); !errors.Is(err, fs.ErrNotExist) ||
		!strings.Contains(err.Error(), "nobody.md; there are alice, link") {
		t.Errorf("a profile that is not there: %v", err)
	}
	if p, err := harness.LoadProfile(agents, "alice"); err != nil || p.Persona() != "I am Alice." {
		t.Errorf("%+v, %v", p, err)
	}
	if p, err := harness.LoadProfile(agents, "judge"); err != nil || !strings.Contains(p.Persona(), "judge") {
		t.Errorf("the judge that ships with the binary: %+v, %v", p, err)
	}
	if err := os.WriteFile(filepath.Join(agents, "judge.md"), []byte("Mine."), 0o600); err != nil {
		t.Fatal(err)
	}
	if p, err := harness.LoadProfile(agents, "judge"); err != nil || p.Persona() != "Mine." {
		t.Errorf("the project's own judge: %+v, %v", p, err)
	}
}

// members starts a facilitated session and returns the configs that the agents were made from.
func members(t *testing.T, cfg harness.FacilitatorConfig) map[string]harness.AgentConfig {
	t.Helper()
	got := map[string]harness.AgentConfig{}
	players := cast{}
	for _, c := range cfg.AgentConfigs {
		players[c.Name] = answerAll("x")
	}
	players["facilitator"] = askEverybodyThenConclude
	cfg.Output = &buffer{}
	cfg.Options.BatchWindow = time.Millisecond
	cfg.Query = func(c harness.AgentConfig) (agent.Agent, error) {
		got[c.Name] = c
		return players.query(c)
	}
	f, err := harness.NewFacilitator(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if result, err := f.Run(t.Context(), "go"); err != nil || !result.Success {
		t.Fatalf("%+v, %v", result, err)
	}
	return got
}

func TestSystemPromptsAreComposed(t *testing.T) {
	dir := t.TempDir()
	agents := filepath.Join(dir, ".claude", "agents")
	if err := os.MkdirAll(agents, 0o700); err != nil {
		t.Fatal(err)
	}
	profile := "---\ndescription: Explores.\nagent: codex\nmodel: small\ncwd: sub\n---\nI am Alice.\n\n## Session Protocol\n\nKnock first.\n"
	if err := os.WriteFile(filepath.Join(agents, "alice.md"), []byte(profile), 0o600); err != nil {
		t.Fatal(err)
	}
	got := members(t, harness.FacilitatorConfig{
		FacilitatorCwd: dir, FacilitatorProfile: "alice",
		AgentConfigs: []harness.AgentConfig{{Name: "alice", AgentProfile: "alice", Amend: "Be brief.", Model: "large"},
			{Name: "bob"}},
	})
	lead, alice, bob := got["facilitator"], got["alice"], got["bob"]
	if !lead.System.Replace || lead.Role != "facilitator" ||
		!strings.HasPrefix(lead.System.Text,
			"<agent_profile>\nI am Alice.\n</agent_profile>\n\n<session_protocol>\n"+
				harness.PromptText("facilitator")) {
		t.Errorf("lead: %+v", lead.System)
	}
	want := "<agent_profile>\nI am Alice.\n</agent_profile>\n\n<session_protocol>\n" +
		harness.PromptText("facilitated-agent") + "\n\nKnock first.\n\nBe brief.\n</session_protocol>"
	if diff := cmp.Diff(want, alice.System.Text); diff != "" || alice.System.Replace {
		t.Error(diff)
	}
	if alice.Role != "Explores." || alice.Agent != "codex" || alice.Model != "large" ||
		alice.Cwd != filepath.Join(dir, "sub") {
		t.Errorf("alice: %+v", alice)
	}
	if bob.System.Text != "<session_protocol>\n"+harness.PromptText("facilitated-agent")+"\n</session_protocol>" ||
		bob.Cwd != dir {
		t.Errorf("bob: %q in %s", bob.System.Text, bob.Cwd)
	}
	if diff := cmp.Diff([]string{"Read", "Glob", "Grep"}, lead.Tools); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"Bash", "Agent", "Task", "TaskOutput", "TaskStop", "Write", "Edit"},
		lead.DisallowedTools); diff != "" {
		t.Error(diff)
	}
	if len(bob.DisallowedTools) != 0 {
		t.Errorf("participants are denied nothing, bob is denied %v", bob.DisallowedTools)
	}
}

func TestBuiltInPromptsSayWhatTheyMust(t *testing.T) {
	for name, facts := range map[string][]string{
		"supervisor": {"Ask", "Conclude", "asynchronous", "[answer#ID]", "end your turn", "another Ask"},
		"facilitator": {"Ask", "Conclude", "asynchronous", "[answer#ID]", "end your turn",
			"no tools for doing the work", "RollCall", "not the method", "in parallel"},
		"discuss-lead": {"Ask", "Adjourn", "Recess", "Acknowledge", "asynchronous", "[answer#ID]", "end your turn",
			"no tools for doing the work", "RollCall", "posted to the thread"},
		"supervised-agent":  {"[ask#ID]", "inbox", "quote its id", "nothing to do"},
		"facilitated-agent": {"[ask#ID]", "inbox", "quote its id", "nothing to do"},
		"discuss-agent":     {"[ask#ID]", "inbox", "quote its id", "nothing to do", "reply in the thread"},
		"judge":             {"read-only", "Conclude once", "last act", "success only if"},
		"advisor":           {"assessment", "recommendation", "three short paragraphs", "modify nothing"},
	} {
		text := harness.PromptText(name)
		for _, fact := range facts {
			if !strings.Contains(text, fact) {
				t.Errorf("%s does not say %q", name, fact)
			}
		}
		for _, removed := range []string{"Tell", "Share", "Redirect"} {
			if strings.Contains(text, removed+" ") {
				t.Errorf("%s names the tool %s, which does not exist", name, removed)
			}
		}
	}
}

func TestDurations(t *testing.T) {
	for text, want := range map[string]time.Duration{"P14D": 14 * 24 * time.Hour, "PT12H": 12 * time.Hour,
		"P1DT6H": 30 * time.Hour, "PT30M": 30 * time.Minute, "PT45S": 45 * time.Second} {
		if got, err := harness.ParseDuration(text); err != nil || got != want {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "P", "PT", "14D", "P1Y", "P1M", "PT1.5H", "pt1h", "P1D ", "PT0S",
		"P99999999999999D", "P1DT"} {
		if got, err := harness.ParseDuration(text); err == nil {
			t.Errorf("%q was read as %v", text, got)
		}
	}
}
