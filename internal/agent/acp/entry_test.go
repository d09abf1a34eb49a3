package acp

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/agent/agenttest"
	"github.com/fit-eval/fit/internal/document"
	"github.com/fit-eval/fit/session"
)

func TestEveryEntryOfTheTableIsValid(t *testing.T) {
	for _, entry := range table {
		if err := entry.Validate(); err != nil {
			t.Errorf("%s: %v", entry.ID, err)
		}
		if entry.Install == "" || entry.Login == "" || len(entry.Keys) == 0 || len(entry.Protocols) == 0 ||
			len(entry.Names) == 0 {
			t.Errorf("%s: the entry is not complete", entry.ID)
		}
	}
}

// TestAnotherAgentIsAnEntry: a file of ten lines is all that an agent costs which nobody knows.
func TestAnotherAgentIsAnEntry(t *testing.T) {
	p := perform(t, "")
	text := "kind: acp\nid: mine\ncommand: " + p.entry.Command + "\nargs: [\"{{.Model}}\"]\n" +
		"env: {MINE_URL: \"{{.URL}}/v1\", MINE_KEY: \"{{.Key}}\"}\nkeys: [MINE_KEY]\nresume: load\n" +
		"usage: turn\nerrors: [\"Oops: \"]\n"
	doc, err := document.Parse("agents.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	p.entry = Entry{}
	if err := doc.Decode(&p.entry); err != nil {
		t.Fatal(err)
	}
	p.config.Model, p.config.ModelURL = "says Oops: 500 broke", "http://127.0.0.1:1"
	result, err := p.prompt(t.Context())
	if err != nil || result.Outcome != session.OutcomeProvider {
		t.Errorf("outcome %q, error %v, %v", result.Outcome, result.Err, err)
	}
	info := New(p.entry).Info()
	if info.ID != "mine" || info.Capabilities.Resume != agent.Native || info.Capabilities.Usage != agent.Native ||
		info.Capabilities.SystemPromptAppend != agent.Unsupported {
		t.Errorf("%+v", info)
	}
}

func TestACommandLineIsAnAgent(t *testing.T) {
	p := perform(t, "")
	registry := agent.NewRegistry().WithSchemes(Scheme())
	id := "acp:'" + p.entry.Command + "' 'says {{Done}}'"
	made, err := registry.Get(id)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := registry.Get(string(made.Info().ID)); err != nil || string(again.Info().ID) != id {
		t.Errorf("found again: %v, %v", again, err)
	}
	if err := agent.Check(made, p.config); err != nil {
		t.Errorf("it may have a login of its own, and is refused: %v", err)
	}
	p.config.ModelURL = "http://127.0.0.1:1"
	talk, err := made.Start(t.Context(), p.config)
	if err != nil {
		t.Fatal(err)
	}
	defer talk.Close()
	result, err := talk.Prompt(t.Context(), "Do it")
	if err != nil || !result.Success || !strings.HasSuffix(result.Text, "{{Done}}") {
		t.Errorf("outcome %q, text %q, error %v, %v", result.Outcome, result.Text, result.Err, err)
	}
	for _, bad := range []string{"acp:", "acp:  ", "acp:x 'y"} {
		if _, err := registry.Get(bad); err == nil || !strings.Contains(err.Error(), "acp:COMMAND") {
			t.Errorf("%q: error %v", bad, err)
		}
	}
	p.config.Resume = "x"
	if _, err := made.Start(t.Context(), p.config); err == nil {
		t.Error("an agent of which nothing is known was resumed")
	}
}

// TestListsOfTools: a name that no agent has and a list that cannot be carried out are refused
// before anything is started; what a list takes away is not offered.
func TestListsOfTools(t *testing.T) {
	for _, tt := range []struct {
		allowed, disallowed []string
		want                string   // of the error
		denied              []string // otherwise
	}{
		{disallowed: []string{"WebFetch"}, denied: []string{"webfetch", "websearch"}},
		{disallowed: []string{"Write", "Edit"}, denied: []string{"apply_patch", "edit", "write"}},
		{
			allowed: []string{"Read", "Write", "Edit", "Bash", "Glob", "Task", "TodoWrite", "WebFetch"},
			denied:  []string{"skill"},
		},
		{allowed: []string{"Reed"}, want: `no tool "Reed"`},
		{disallowed: []string{"Bosh"}, want: `no tool "Bosh"`},
		{disallowed: []string{"Write"}, want: "together or not at all"},
		{allowed: []string{"ExitPlanModes", "mcp__x"}, want: `no tool "ExitPlanModes"`},
		{allowed: []string{"LS"}, want: "none of the tools LS"},
	} {
		e, cfg := table[0], agent.Config{AllowedTools: tt.allowed, DisallowedTools: tt.disallowed}
		err := checkTools(e, cfg)
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: error %v", tt, err)
		}
		if got := denied(e, cfg); tt.want == "" && !slices.Equal(got, tt.denied) {
			t.Errorf("%+v: denied %q", tt, got)
		}
	}
}

func TestMistakesInAnEntry(t *testing.T) {
	good := Entry{ID: "x", Command: "x"}
	for want, spoil := range map[string]func(*Entry){
		"command":          func(e *Entry) { e.Command = "" },
		"usage: \"turns\"": func(e *Entry) { e.Usage = "turns" },
		"setModel: \"x\"":  func(e *Entry) { e.SetModel = "x" },
		"resume: \"yes\"":  func(e *Entry) { e.Resume = "yes" },
		"toolName: \"x\"":  func(e *Entry) { e.ToolName = "x" },
		"silence: \"5\"":   func(e *Entry) { e.Silence = "5" },
		"files: \"../x\"":  func(e *Entry) { e.Files = map[string]string{"../x": ""} },
		"args: ":           func(e *Entry) { e.Args = []string{"{{.Modell}}"} },
		"env: \"A=B\"":     func(e *Entry) { e.Env = map[string]string{"A=B": "x"} },
		"env.A: ":          func(e *Entry) { e.Env = map[string]string{"A": "{{if}}"} },
		"files: a: ":       func(e *Entry) { e.Files = map[string]string{"a": "{{.Nothing}}"} },
		"mode: ":           func(e *Entry) { e.Mode = "{{" },
		"places.skills: ":  func(e *Entry) { e.Places.Skills = []string{"../skills"} },
	} {
		t.Run(want, func(t *testing.T) {
			entry := good
			spoil(&entry)
			if err := entry.Validate(); err == nil || !strings.Contains(err.Error(), want) ||
				strings.Contains(err.Error(), "\n") {
				t.Errorf("%s: error %v", want, err)
			}
		})
	}
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
}

// TestTheEnvironmentIsClean: one stray variable breaks some agents, and none of the caller's
// secrets is theirs.
func TestTheEnvironmentIsClean(t *testing.T) {
	for _, entry := range table {
		t.Run(entry.ID, func(t *testing.T) {
			t.Parallel()
			program := agenttest.Dumper(t)
			cfg := agenttest.Config(t, program, "1.0.0", "IS_SANDBOX=yes", entry.Keys[0]+"=k")
			cfg.OneShot, cfg.Model, cfg.ModelURL = false, "some-model", "http://127.0.0.1:1"
			talk, err := New(entry).Start(t.Context(), cfg)
			if err != nil {
				t.Fatal(err)
			}
			defer talk.Close()
			if _, err := talk.Prompt(t.Context(), "Do it"); err == nil {
				t.Error("a program that says nothing was a success")
			}
			var own []string
			v, err := valuesOf(entry, cfg, filepath.Join(cfg.Home, "home"))
			if err != nil {
				t.Fatal(err)
			}
			for name, text := range entry.Env {
				if value, err := render(text, v); err == nil && value != "" {
					own = append(own, name)
				}
			}
			own = slices.AppendSeq(own, maps.Keys(entry.Pins))
			slices.Sort(own)
			agenttest.CheckVariables(t, program, slices.Compact(own)...)
		})
	}
}
