package claudecode

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/agent/agenttest"
	"github.com/fit-eval/fit/internal/sandbox"
)

func TestMain(m *testing.M) {
	agenttest.MaybeDump()
	os.Exit(m.Run())
}

func TestArguments(t *testing.T) {
	base := []string{"claude", "-p", "--output-format", "stream-json", "--verbose"}
	skip := "--dangerously-skip-permissions"
	rest := []string{skip, "--setting-sources", "project,local", "--strict-mcp-config"}
	isolated := sandbox.Isolation{Kind: sandbox.IsolationBwrap}
	for name, test := range map[string]struct {
		args arguments
		want []string
	}{
		"one prompt": {arguments{path: "claude"}, slices.Concat(base, rest)},
		"nothing of the project": {
			arguments{path: "claude", cfg: agent.Config{Context: agent.ContextNone, Isolation: isolated}},
			slices.Concat(base, []string{skip, "--setting-sources", "", "--strict-mcp-config"}),
		},
		"programs of the project, where they are isolated": {
			arguments{path: "claude", cfg: agent.Config{Isolation: isolated}, files: sessionFiles{settings: "/h/s"}},
			slices.Concat(base, []string{
				skip, "--setting-sources", "project,local", "--settings", "/h/s", "--include-hook-events",
			}),
		},
		"settings of the caller": {
			arguments{path: "claude", cfg: agent.Config{Settings: "/x"}, files: sessionFiles{settings: "/h/s"}},
			slices.Concat(base, []string{
				skip, "--setting-sources", "user,project,local", "--settings", "/h/s", "--strict-mcp-config",
			}),
		},
		"long-lived": {
			arguments{path: "claude", longLived: true},
			slices.Concat(base, []string{"--input-format", "stream-json"}, rest),
		},
		"model, resumed": {
			arguments{path: "claude", cfg: agent.Config{Model: "m"}, resume: "id"},
			slices.Concat(base, rest, []string{"--model", "m", "--resume", "id"}),
		},
		"limits": {
			arguments{path: "claude", cfg: agent.Config{MaxTurns: 7}},
			slices.Concat(base, rest, []string{"--max-turns", "7"}),
		},
		"system prompt appended": {
			arguments{path: "claude", cfg: agent.Config{SystemPrompt: "be brief"}},
			slices.Concat(base, rest, []string{"--append-system-prompt", "be brief"}),
		},
		"system prompt replaced, from a file": {
			arguments{
				path: "claude", cfg: agent.Config{SystemPrompt: "long", ReplaceSystemPrompt: true},
				files: sessionFiles{promptFile: "/h/p"},
			},
			slices.Concat(base, rest, []string{"--system-prompt-file", "/h/p"}),
		},
		"tools": {
			arguments{path: "claude", cfg: agent.Config{
				AllowedTools:    []string{"Bash", "mcp__x__ask", "Read"},
				DisallowedTools: []string{"Write", "Task"},
			}},
			slices.Concat(base, rest, []string{"--tools", "Bash,Read", "--disallowedTools", "Write,Task"}),
		},
		"only tools of MCP servers": {
			arguments{
				path: "claude", cfg: agent.Config{AllowedTools: []string{"mcp__x"}},
				files: sessionFiles{mcpConfig: "/h/mcp.json"},
			},
			slices.Concat(base, rest, []string{"--mcp-config", "/h/mcp.json", "--tools", ""}),
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, test.args.argv()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// plan is a caller's home with a login to a plan in it.
func plan(t *testing.T) string {
	t.Helper()
	return planWith(t, `{"claudeAiOauth":{"accessToken":"secret","refreshToken":"r"}}`)
}

func planWith(t *testing.T, login string) string {
	t.Helper()
	home := t.TempDir()
	if err := os.MkdirAll(filepath.Join(home, ".claude"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, ".claude", credentials), []byte(login), 0o600); err != nil {
		t.Fatal(err)
	}
	return home
}

func TestChoiceOfLogin(t *testing.T) {
	withPlan, without := plan(t), t.TempDir()
	for name, test := range map[string]struct {
		cfg       agent.Config
		mode      string
		variables map[string]string
		err       string
	}{
		"a login is found": {agent.Config{Environ: []string{
			"HOME=" + withPlan,
			"ANTHROPIC_API_KEY=k",
		}}, "subscription", map[string]string{}, ""},
		"a login, but another endpoint": {
			agent.Config{Environ: []string{
				"HOME=" + withPlan,
				"ANTHROPIC_API_KEY=k",
			}, ModelURL: "http://x"},
			"apikey",
			map[string]string{"ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": "http://x"},
			"",
		},
		"another endpoint in the environment": {
			agent.Config{Environ: []string{
				"HOME=" + withPlan,
				"ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL=http://y",
			}},
			"apikey",
			map[string]string{"ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": "http://y"},
			"",
		},
		"a key": {agent.Config{Environ: []string{
			"HOME=" + without, "ANTHROPIC_API_KEY=k",
			"ANTHROPIC_AUTH_TOKEN=t",
		}}, "apikey", map[string]string{"ANTHROPIC_API_KEY": "k"}, ""},
		"a login, but the key is asked for": {agent.Config{Environ: []string{
			"HOME=" + withPlan,
			"ANTHROPIC_API_KEY=k",
		}, Auth: "apikey"}, "apikey", map[string]string{"ANTHROPIC_API_KEY": "k"}, ""},
		"a token of a plan": {
			agent.Config{Environ: []string{
				"HOME=" + without,
				"CLAUDE_CODE_OAUTH_TOKEN=o", "ANTHROPIC_API_KEY=k",
			}},
			"subscription",
			map[string]string{"CLAUDE_CODE_OAUTH_TOKEN": "o"},
			"",
		},
		"no key, but another endpoint": {
			agent.Config{
				Environ:  []string{"HOME=" + without},
				ModelURL: "http://x",
			},
			"apikey",
			map[string]string{"ANTHROPIC_API_KEY": noKey, "ANTHROPIC_BASE_URL": "http://x"},
			"",
		},
		"nothing": {
			agent.Config{Environ: []string{"HOME=" + without}},
			"", nil,
			"ANTHROPIC_API_KEY is not set",
		},
		"a plan that is not there": {agent.Config{
			Environ: []string{"HOME=" + without},
			Auth:    "subscription",
		}, "", nil, "no Claude login found"},
		"a plan at another endpoint": {agent.Config{
			Environ: []string{"HOME=" + withPlan},
			Auth:    "subscription", ModelURL: "http://x",
		}, "", nil, "own endpoint only"},
		"no such mode": {agent.Config{Auth: "barter"}, "", nil, "use subscription or apikey"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := chooseLogin(test.cfg)
			if (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
				t.Fatalf("error %v, want %q", err, test.err)
			}
			if diff := cmp.Diff(test.variables, got.variables); diff != "" || got.mode != test.mode {
				t.Errorf("mode %q, variables (-want +got):\n%s", got.mode, diff)
			}
			if secret := test.variables[keyVariable] != noKey && err == nil; got.secret != secret {
				t.Errorf("the key is said to be worth stealing: %v", got.secret)
			}
		})
	}
}

func TestTheInitEventMustAgreeWithTheLogin(t *testing.T) {
	subscribed := login{mode: agent.AuthSubscription, variables: map[string]string{}}
	keyed := login{mode: agent.AuthAPIKey, variables: map[string]string{keyVariable: "k"}}
	for _, test := range []struct {
		login  login
		source string
		agrees bool
	}{
		{subscribed, "none", true},
		{subscribed, "", true},
		{subscribed, keyVariable, false},
		{subscribed, "apiKeyHelper", false},
		{keyed, keyVariable, true},
		{keyed, "none", false},
		{keyed, "", true},
	} {
		t.Run(test.source, func(t *testing.T) {
			if err := test.login.agrees(test.source); (err == nil) != test.agrees {
				t.Errorf("%s, init says %q: %v", test.login.mode, test.source, err)
			}
		})
	}
}

// TestTheChildSeesOnlyApprovedVariables starts a program through the adapter and compares the set
// of its variables.
func TestTheChildSeesOnlyApprovedVariables(t *testing.T) {
	home := plan(t)
	always := []string{
		"CLAUDE_CONFIG_DIR", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "CLAUDE_CODE_MAX_RETRIES", hostVariable,
		"DISABLE_AUTOUPDATER", "DISABLE_ERROR_REPORTING",
		"DISABLE_TELEMETRY", "ENABLE_TOOL_SEARCH", "MCP_CONNECTION_NONBLOCKING", "MCP_TOOL_TIMEOUT",
	}
	if os.Geteuid() == 0 {
		always = append(always, "IS_SANDBOX")
	}
	for name, test := range map[string]struct {
		change func(*agent.Config)
		own    []string
	}{
		"subscription": {func(*agent.Config) {}, nil},
		"key":          {func(cfg *agent.Config) { cfg.Auth = agent.AuthAPIKey }, []string{"ANTHROPIC_API_KEY"}},
		"other endpoint": {
			func(cfg *agent.Config) { cfg.ModelURL = "http://127.0.0.1:1" },
			[]string{"ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			program := agenttest.Dumper(t)
			cfg := agenttest.Config(t, program, "2.1.197",
				"HOME="+home, "ANTHROPIC_API_KEY=k", "OPENAI_API_KEY=o", "CLAUDECODE=1", "CLAUDE_CODE_ENTRYPOINT=cli")
			test.change(&cfg)
			s, err := New().Start(t.Context(), cfg)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.Prompt(t.Context(), "hello"); err != nil {
				t.Fatal(err)
			}
			agenttest.CheckVariables(t, program, slices.Concat(always, test.own)...)
			copied := filepath.Join(cfg.Home, "config", credentials)
			if _, err := os.Stat(copied); (err == nil) != (test.own == nil) {
				t.Errorf("the login in the session's home: %v", err)
			}
		})
	}
}

func TestTokensOfMCPServersAreNotOnTheCommandLine(t *testing.T) {
	cfg := agent.Config{Home: t.TempDir(), MCPServers: []agent.MCPServer{
		{Name: "web", URL: "http://127.0.0.1:1/mcp", Headers: map[string]string{"Authorization": "Bearer s3cr3t"}},
		{Name: "local", Command: "srv", Args: []string{"-x"}},
	}}
	p, err := prepare(cfg, login{})
	if err != nil {
		t.Fatal(err)
	}
	if argv := strings.Join((arguments{path: "claude", cfg: cfg, files: p}).argv(), " "); strings.Contains(argv,
		"s3cr3t") {
		t.Errorf("argv: %s", argv)
	}
	info, err := os.Stat(p.mcpConfig)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mcp configuration: %v, %v", info, err)
	}
	cfg.MCPServers[0].Command = "both"
	if _, err := prepare(cfg, login{}); err == nil {
		t.Error("a server with a URL and a command was accepted")
	}
}

func TestVersionsThatAreTooOldAreRefused(t *testing.T) {
	for version, ok := range map[string]bool{
		"2.1.197": true, "2.1.0": true, "3.0.0": true, "2.0.99": false,
		"1.0.35": false, "weird": true,
	} {
		t.Run(version, func(t *testing.T) {
			if err := program().Supports(version); (err == nil) != ok {
				t.Error(err)
			}
		})
	}
}

func TestListsAndLevelsThatMeanNothingAreRefused(t *testing.T) {
	for name, test := range map[string]struct {
		cfg  agent.Config
		want string // in the error; empty: none
	}{
		"its own tools":             {agent.Config{AllowedTools: []string{"Bash", "Skill", "mcp__x__ask"}}, ""},
		"tools of others too":       {agent.Config{AllowedTools: []string{"Read", "apply_patch"}}, ""},
		"only a tool server's":      {agent.Config{AllowedTools: []string{"mcp__x"}}, ""},
		"a tool that nobody has":    {agent.Config{AllowedTools: []string{"Bash", "Bosh"}}, `no tool "Bosh"`},
		"an effort":                 {agent.Config{Effort: "xhigh"}, ""},
		"an effort that it ignores": {agent.Config{Effort: "hihg"}, `no effort "hihg"; it has low, medium`},
	} {
		t.Run(name, func(t *testing.T) {
			test.cfg.Environ = []string{keyVariable + "=k"}
			err := New().Check(test.cfg)
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
}

// TestNoSecretIsInTheSettings: they name the project's variables, and a file outlives the session.
func TestNoSecretIsInTheSettings(t *testing.T) {
	cfg := agenttest.Config(t, "claude", "2.1.197", keyVariable+"=sk-hunter2")
	if err := os.Mkdir(filepath.Join(cfg.Dir, ".claude"), 0o755); err != nil {
		t.Fatal(err)
	}
	theirs := `{"env": {"ANTHROPIC_API_KEY": "x", "HTTPS_PROXY": "x", "MINE": "x", "GIT_AUTHOR_NAME": "x"}}`
	if err := os.WriteFile(filepath.Join(cfg.Dir, ".claude", "settings.json"), []byte(theirs), 0o600); err != nil {
		t.Fatal(err)
	}
	for programs, want := range map[bool]string{
		false: `"env":{"GIT_AUTHOR_NAME":"fit","HTTPS_PROXY":"","MINE":""}`,
		true:  `"env":{"GIT_AUTHOR_NAME":"fit","HTTPS_PROXY":""}`,
	} {
		cfg.ProjectPrograms = programs
		if _, err := New().Start(t.Context(), cfg); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(cfg.Home, "settings.json")
		data, err := os.ReadFile(file)
		if err != nil || !strings.Contains(string(data), want) || strings.Contains(string(data), "hunter2") {
			t.Errorf("programs %v: %s, %v; want %s", programs, data, err, want)
		}
		if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("mode of the settings: %v, %v", info.Mode(), err)
		}
	}
}
