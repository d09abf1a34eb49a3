package profile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestProfileIsTakenApart(t *testing.T) {
	for name, test := range map[string]struct{ text, persona, protocol string }{
		"no front matter": {"Be kind.\n", "Be kind.", ""},
		"front matter":    {"---\nname: x\n---\nBe kind.\n", "Be kind.", ""},
		"empty fence":     {"---\n---\nBe kind.", "Be kind.", ""},
		"fence at end":    {"---\nname: x\n---", "", ""},
		"CRLF":            {"---\r\nname: x\r\n---\r\nBe kind.\r\n", "Be kind.", ""},
		"hoisted": {
			"Before.\n\n## session PROTOCOL  \n\nSay so.\n\n### Detail\n\nMore.\n\n## After\n\nRest.",
			"Before.\n\n## After\n\nRest.", "Say so.\n\n### Detail\n\nMore.",
		},
		"heading in code": {
			"## Session Protocol\n```sh\n# a comment\n## another\n```\nStill it.\n# End\n", "# End",
			"```sh\n# a comment\n## another\n```\nStill it.",
		},
		"all in code":  {"~~~\n## Session Protocol\n~~~\nBody.", "~~~\n## Session Protocol\n~~~\nBody.", ""},
		"second stays": {"## Session Protocol\none\n## Session Protocol\ntwo", "## Session Protocol\ntwo", "one"},
		"level three":  {"### Session Protocol\nno", "### Session Protocol\nno", ""},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := parse("x.md", []byte(test.text))
			if err != nil {
				t.Errorf("%s: %v", name, err)
				return
			}
			if diff := cmp.Diff([]string{test.persona, test.protocol}, []string{p.Persona, p.Protocol}); diff != "" {
				t.Errorf("%s: %s", name, diff)
			}
		})
	}
}

func TestFrontMatterIsHonoured(t *testing.T) {
	p, err := parse("x.md", []byte("---\nname: sec\ndescription: Finds holes.\nagent: codex\nmodel: big\ntools: Read, Grep\nskills: [audit]\nmaxTurns: 7\ncwd: sub\ncolor: red\n---\nx"))
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
		"---\nname: x\n":                      "do not end",
		"---\ntools: Read\nBody":              "do not end",
		"\n---\ntools: Read\n---\nBody":       "must start in the first line",
		"\ufeff---\ntools: Read\n---\nBody":   "must start in the first line",
		"---\ntool: Read\n---\n":              `no setting "tool"; did you mean tools?`,
		"---\nTools: Read\n---\n":             `no setting "Tools"; did you mean tools?`,
		"---\nmax-turns: 3\n---\n":            `no setting "max-turns"; did you mean maxTurns?`,
		"---\nallowed-tools: Read\n---\n":     `"allowed-tools" is not supported; list the tools`,
		"---\ndisallowedTools: Bash\n---\n":   `"disallowedTools" is not supported`,
		"---\ntools: []\n---\nBody":           "tools is empty",
		"---\ntools: \"\"\n---\nBody":         "tools is empty",
		"---\ntools: \",\"\n---\nBody":        "tools is empty",
		"----\ntools: Read\n----\nBody":       "looks like a setting",
		"--- # yaml\ntools: Read\n---\nBody":  "looks like a setting",
		"tools: Read\n---\nBody":              "looks like a setting",
		" \n":                                 "is empty",
	} {
		t.Run(text, func(t *testing.T) {
			if _, err := parse("x.md", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%q: %v, want %s", text, err, want)
			}
		})
	}
}

func TestProfilesAreFoundByNameOnly(t *testing.T) {
	dir := t.TempDir()
	outside := filepath.Join(dir, "outside.md")
	agents := filepath.Join(dir, "agents")
	for path, text := range map[string]string{outside: "secret", filepath.Join(agents, "alice.md"): "I am Alice."} {
		t.Run(path, func(t *testing.T) {
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		})
	}
	if err := os.Symlink(outside, filepath.Join(agents, "link.md")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"../outside", "", ".", "a/b", "/etc/passwd", "link", "nobody", "a..b/../outside"} {
		if p, err := Load(agents, name); err == nil {
			t.Errorf("profile %q was read: %q", name, p.Persona)
		}
	}
	if _, err := Load(agents, "nobody"); !errors.Is(err, fs.ErrNotExist) ||
		!strings.Contains(err.Error(), "nobody.md; there are alice, link") {
		t.Errorf("a profile that is not there: %v", err)
	}
	if p, err := Load(agents, "alice"); err != nil || p.Persona != "I am Alice." {
		t.Errorf("%+v, %v", p, err)
	}
	if p, err := Load(agents, "judge"); err != nil || !strings.Contains(p.Persona, "judge") {
		t.Errorf("the judge that ships with the binary: %+v, %v", p, err)
	}
	if err := os.WriteFile(filepath.Join(agents, "judge.md"), []byte("Mine."), 0o600); err != nil {
		t.Fatal(err)
	}
	if p, err := Load(agents, "judge"); err != nil || p.Persona != "Mine." {
		t.Errorf("the project's own judge: %+v, %v", p, err)
	}
}

func TestBuiltInPromptsSayWhatTheyMust(t *testing.T) {
	for name, facts := range map[string][]string{
		"supervisor": {"Ask", "Conclude", "asynchronous", "[answer#ID]", "end your turn", "another Ask"},
		"facilitator": {
			"Ask", "Conclude", "asynchronous", "[answer#ID]", "end your turn",
			"no tools for doing the work", "RollCall", "not the method", "in parallel",
		},
		"discuss-lead": {
			"Ask", "Adjourn", "Recess", "Acknowledge", "asynchronous", "[answer#ID]", "end your turn",
			"no tools for doing the work", "RollCall", "posted to the thread",
		},
		"supervised-agent":  {"[ask#ID]", "inbox", "quote its id", "nothing to do"},
		"facilitated-agent": {"[ask#ID]", "inbox", "quote its id", "nothing to do"},
		"discuss-agent":     {"[ask#ID]", "inbox", "quote its id", "nothing to do", "reply in the thread"},
		"judge":             {"read-only", "Conclude once", "last act", "success only if"},
		"advisor":           {"assessment", "recommendation", "three short paragraphs", "modify nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			text := Text(name)
			if name != "judge" && name != "advisor" {
				facts = append(facts, "[system]", "lines that begin with `| `")
			}
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
		})
	}
}
