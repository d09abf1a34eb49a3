package pi

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/agent/agenttest"
	"github.com/fit-eval/fit/internal/gateway"
	"github.com/fit-eval/fit/session"
)

func TestMain(m *testing.M) {
	agenttest.MaybeDump()
	if filepath.Base(os.Args[0]) == toolServerName {
		serveTools()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestArguments(t *testing.T) {
	home := sessionFiles{sessions: "/h/sessions"}
	quiet := []string{"--no-extensions", "--no-skills", "--no-prompt-templates", "--no-themes", "--no-context-files"}
	nothing := []string{"--system-prompt", "", "--append-system-prompt", ""}
	for name, test := range map[string]struct {
		arguments arguments
		want      []string
	}{
		"one prompt": {
			arguments{path: "pi", cfg: agent.Config{OneShot: true}, files: home},
			slices.Concat([]string{"pi", "--mode", "json", "--session-dir", "/h/sessions"}, nothing, quiet,
				[]string{"-p"}),
		},
		"several prompts": {
			arguments{path: "pi", files: home},
			slices.Concat([]string{"pi", "--mode", "rpc", "--session-dir", "/h/sessions"}, nothing, quiet),
		},
		"another endpoint, resumed": {
			arguments{
				path: "pi", cfg: agent.Config{Model: "m"}, endpoint: endpoint{provider: "fit"}, files: home,
				session: "/h/sessions/x.jsonl",
			},
			slices.Concat([]string{
				"pi", "--mode", "rpc", "--provider", "fit", "--model", "m", "--session-dir",
				"/h/sessions", "--session", "/h/sessions/x.jsonl",
			},
				nothing, quiet),
		},
		"prompt appended": {
			arguments{path: "pi", files: sessionFiles{sessions: "/s", appendFile: "/p.md"}},
			slices.Concat([]string{
				"pi", "--mode", "rpc", "--session-dir", "/s", "--system-prompt", "",
				"--append-system-prompt", "/p.md",
			}, quiet),
		},
		"prompt replaced": {
			arguments{path: "pi", files: sessionFiles{sessions: "/s", systemFile: "/p.md"}},
			slices.Concat([]string{
				"pi", "--mode", "rpc", "--session-dir", "/s", "--system-prompt", "/p.md",
				"--append-system-prompt", "",
			}, quiet),
		},
		"an effort, and a project": {
			arguments{
				path: "pi", cfg: agent.Config{Effort: "high"},
				files: sessionFiles{sessions: "/s", project: []string{"--skill", "/w/.agents/skills"}},
			},
			slices.Concat([]string{"pi", "--mode", "rpc", "--thinking", "high", "--session-dir", "/s"}, nothing, quiet,
				[]string{"--skill", "/w/.agents/skills"}),
		},
		"extended": {
			arguments{
				path: "pi", cfg: agent.Config{OneShot: true},
				files: sessionFiles{sessions: "/s", extension: "/c/bridge.ts"},
			},
			slices.Concat([]string{"pi", "--mode", "json", "--session-dir", "/s"}, nothing, quiet,
				[]string{"--extension", "/c/bridge.ts", "-p"}),
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, test.arguments.argv()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestChoiceOfEndpoint(t *testing.T) {
	both := []string{"ANTHROPIC_API_KEY=a", "OPENAI_API_KEY=o", "GITHUB_TOKEN=g"}
	for name, test := range map[string]struct {
		cfg  agent.Config
		want endpoint
		err  string
	}{
		"the vendor of the model": {
			cfg:  agent.Config{Environ: both, Model: "claude-x"},
			want: endpoint{provider: "anthropic", keys: map[string]string{"ANTHROPIC_API_KEY": "a"}},
		},
		"another vendor": {
			cfg:  agent.Config{Environ: both, Model: "gpt-5"},
			want: endpoint{provider: "openai", keys: map[string]string{"OPENAI_API_KEY": "o"}},
		},
		"a vendor that is named": {
			cfg:  agent.Config{Environ: both, Model: "openai/o3"},
			want: endpoint{provider: "openai", keys: map[string]string{"OPENAI_API_KEY": "o"}},
		},
		"a vendor without a key": {
			cfg: agent.Config{Environ: both, Model: "google/gemini-9"},
			err: "GEMINI_API_KEY is not set",
		},
		"nobody says which": {
			cfg:  agent.Config{Environ: both},
			want: endpoint{keys: map[string]string{"ANTHROPIC_API_KEY": "a", "OPENAI_API_KEY": "o"}},
		},
		"a model that many offer": {cfg: agent.Config{
			Environ: []string{"OPENROUTER_API_KEY=r"},
			Model:   "claude-x",
		}, want: endpoint{keys: map[string]string{"OPENROUTER_API_KEY": "r"}}},
		"no key at all": {
			cfg: agent.Config{Environ: []string{"GITHUB_TOKEN=g"}},
			err: "no key of any vendor",
		},
		"another endpoint": {
			cfg: agent.Config{ModelURL: "http://h/s/x/", Model: "m"},
			want: endpoint{
				provider: "fit", api: "openai-completions", baseURL: "http://h/s/x/v1", key: noKey,
				keys: map[string]string{},
			},
		},
		"another endpoint, Anthropic": {
			cfg: agent.Config{Environ: both, ModelURL: "http://h", Model: "claude-x"},
			want: endpoint{
				provider: "fit", api: "anthropic-messages", baseURL: "http://h", key: "ANTHROPIC_API_KEY",
				keys: map[string]string{"ANTHROPIC_API_KEY": "a"},
			},
		},
		"another endpoint, Responses": {
			cfg: agent.Config{ModelURL: "http://h", Model: "gpt-5.5"},
			want: endpoint{
				provider: "fit", api: "openai-responses", baseURL: "http://h/v1", key: noKey,
				keys: map[string]string{},
			},
		},
		"another endpoint, open model": {
			cfg: agent.Config{ModelURL: "http://h", Model: "gpt-oss-120b"},
			want: endpoint{
				provider: "fit", api: "openai-completions", baseURL: "http://h/v1", key: noKey,
				keys: map[string]string{},
			},
		},
		"another endpoint, no model": {cfg: agent.Config{ModelURL: "http://h"}, err: "set --model with --model-url"},
		"no such mode":               {cfg: agent.Config{Environ: both, Auth: "barter"}, err: "runs on keys only"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := chooseEndpoint(test.cfg)
			if (err == nil) != (test.err == "") || (err != nil && !strings.Contains(err.Error(), test.err)) {
				t.Fatalf("error %v, want %q", err, test.err)
			}
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(endpoint{})); diff != "" {
				t.Errorf("endpoint (-want +got):\n%s", diff)
			}
		})
	}
}

// TestTheChildSeesOnlyApprovedVariables starts a program through the adapter and compares the set
// of its variables.
func TestTheChildSeesOnlyApprovedVariables(t *testing.T) {
	for name, test := range map[string]struct {
		change  func(*agent.Config)
		own     []string
		keyless bool
	}{
		"a vendor's model": {func(cfg *agent.Config) { cfg.Model = "claude-x" }, []string{"ANTHROPIC_API_KEY"}, false},
		"any model":        {func(*agent.Config) {}, []string{"ANTHROPIC_API_KEY", "OPENAI_API_KEY"}, false},
		"another endpoint": {
			func(cfg *agent.Config) { cfg.Model, cfg.ModelURL = "m", "http://127.0.0.1:1" },
			[]string{"OPENAI_API_KEY"},
			false,
		},
		"long-lived": {
			func(cfg *agent.Config) { cfg.Model, cfg.OneShot = "gpt-5", false },
			[]string{"OPENAI_API_KEY"},
			false,
		},
		"no key to be seen": {
			func(cfg *agent.Config) { cfg.Model, cfg.ModelURL = "m", "http://127.0.0.1:1" }, nil,
			true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			program, visible := agenttest.Dumper(t), false
			cfg := agenttest.Config(t, program, "0.73.1", "HOME="+t.TempDir(), "PI_CODING_AGENT_DIR=/mine",
				"PI_PACKAGE_DIR=/p", "CLAUDECODE=1")
			cfg.Started = func(s agent.Started) { visible = s.KeyVisible }
			if !test.keyless {
				cfg.Environ = append(cfg.Environ, "ANTHROPIC_API_KEY=a", "OPENAI_API_KEY=o")
			}
			test.change(&cfg)
			s, err := New().Start(t.Context(), cfg)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			result, err := s.Prompt(t.Context(), "hello")
			if err != nil || result.Success || result.Outcome != session.OutcomeNoResult {
				t.Fatalf("a program that says nothing: %+v, %v", result, err)
			}
			agenttest.CheckVariables(t, program,
				append(test.own, "PI_CODING_AGENT_DIR", "PI_OFFLINE", "PI_TELEMETRY")...)
			if visible == test.keyless || result.Output.KeyVisible == test.keyless {
				t.Errorf("the key is said to be visible: %v, %v", visible, result.Output.KeyVisible)
			}
		})
	}
}

func TestTokensAndPromptsAreInFilesOfTheHome(t *testing.T) {
	retries := 0
	cfg := agent.Config{
		Dir: t.TempDir(), Home: t.TempDir(), Model: "m", SystemPrompt: "be brief", Retries: &retries,
		DisallowedTools: []string{"bash"}, Installation: &agent.Installation{Path: "pi"},
		MCPServers: []agent.MCPServer{
			{Name: "web", URL: "http://127.0.0.1:1/mcp", Headers: map[string]string{"Authorization": "Bearer s3cr3t"}},
			{Name: "local", Command: "srv", Args: []string{"-x"}, Env: map[string]string{"K": "v"}},
		},
	}
	e := endpoint{provider: "fit", api: "openai-responses", baseURL: "http://h/v1", key: noKey}
	p, err := prepare(cfg, e)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		filepath.Join(p.config, "fit", "bridge.json"): `{"deny":["bash"],"servers":{"local":{"type":"stdio","command":"srv","args":["-x"],"env":{"K":"v"}},` +
			`"web":{"type":"http","url":"http://127.0.0.1:1/mcp","headers":{"Authorization":"Bearer s3cr3t"}}}}`,
		filepath.Join(p.config, "settings.json"): `{"enableInstallTelemetry":false,"quietStartup":true,` +
			`"retry":{"baseDelayMs":1000,"enabled":true,"maxRetries":0,"provider":{"maxRetries":0}}}`,
		filepath.Join(p.config, "models.json"): `{"providers":{"fit":{"api":"openai-responses","apiKey":"no-key-needed","baseUrl":"http://h/v1",` +
			`"models":[{"contextWindow":200000,"id":"m","input":["text","image"],"maxTokens":32000,"reasoning":true}]}}}`,
		p.appendFile: "be brief",
	} {
		t.Run(path, func(t *testing.T) {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, string(data)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", filepath.Base(path), diff)
			}
			if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("%v, %v", info, err)
			}
		})
	}
	if argv := strings.Join((arguments{path: "pi", cfg: cfg, endpoint: e, files: p}).argv(),
		" "); strings.Contains(argv, "s3cr3t") {
		t.Errorf("argv: %s", argv)
	}
}

func TestServersThatCannotBeAttached(t *testing.T) {
	for _, server := range []agent.MCPServer{
		{Name: "both", URL: "http://x", Command: "srv"},
		{Name: "neither"},
		{URL: "http://x"},
	} {
		cfg := agent.Config{
			Dir: t.TempDir(), Home: t.TempDir(), MCPServers: []agent.MCPServer{server},
			Installation: &agent.Installation{Path: "pi"},
		}
		if _, err := prepare(cfg, endpoint{}); err == nil {
			t.Errorf("accepted: %+v", server)
		}
	}
}

func TestWhatItCannotDoIsRefused(t *testing.T) {
	unknown := func(string, session.TokenUsage, int64) (float64, bool) { return 0, false }
	for missing, change := range map[string]func(*agent.Config){
		"running on a subscription":     func(c *agent.Config) { c.Auth = agent.AuthSubscription },
		"has none; name it in a price":  func(c *agent.Config) { c.Account, c.Prices = aDollar(), unknown },
		"a dollar budget needs a price": func(c *agent.Config) { c.Account = aDollar() },
		"no model is named": func(c *agent.Config) {
			c.Account, c.Model, c.Prices = aDollar(), "", unknown
		},
		"no conversation":      func(c *agent.Config) { c.Resume = "../../etc" },
		"no working directory": func(c *agent.Config) { c.Dir = "" },
		"off, minimal, low":    func(c *agent.Config) { c.Effort = "huge" },
		"a temperature":        func(c *agent.Config) { c.Temperature = new(float64) },
		"nowhere.json":         func(c *agent.Config) { c.Settings = "/nowhere.json" },
		"not a JSON object":    func(c *agent.Config) { c.Settings = "pi_test.go" },
	} {
		t.Run(missing, func(t *testing.T) {
			cfg := agent.Config{
				Dir: t.TempDir(), Home: t.TempDir(), Model: "m", ModelURL: "http://x",
				Installation: &agent.Installation{Path: "pi"},
			}
			change(&cfg)
			if _, err := New().Start(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), missing) {
				t.Error(err)
			}
		})
	}
}

func TestAConversationGoesOnOnlyWhereItWasHeld(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	p := sessionFiles{sessions: t.TempDir()}
	header, err := json.Marshal(map[string]string{"type": "session", "id": "abc-1", "cwd": dir})
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{
		"2026_abc-1.jsonl": string(header) + "\n{}\n",
		"2026_abc-2.jsonl": "garbage",
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile(filepath.Join(p.sessions, name), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		})
	}
	for _, test := range []struct{ id, dir, want string }{
		{"abc-1", dir, ""},
		{"abc-1", other, "can continue only there"},
		{"abc-2", dir, "is broken"},
		{"abc-3", dir, "no conversation"},
		{"*", dir, "no conversation"},
	} {
		t.Run(test.id, func(t *testing.T) {
			err := p.canResume(test.id, test.dir)
			if (err == nil) != (test.want == "") || (err != nil && !strings.Contains(err.Error(), test.want)) {
				t.Errorf("in %s: %v, want %q", test.dir, err, test.want)
			}
		})
	}
}

func TestVersionsThatAreTooOldAreRefused(t *testing.T) {
	for version, ok := range map[string]bool{
		"0.73.1": true, "0.70.0": true, "1.0.0": true, "0.69.9": false,
		"0.5.48": false, "weird": true,
	} {
		t.Run(version, func(t *testing.T) {
			if err := program().Supports(version); (err == nil) != ok {
				t.Error(err)
			}
		})
	}
}

func TestTheVersionIsAskedOnce(t *testing.T) {
	modules := t.TempDir()
	program := filepath.Join(modules, "node_modules", "@somebody", "agent", "cli.js")
	bin := filepath.Join(modules, "node_modules", ".bin")
	for _, dir := range []string{filepath.Dir(program), bin} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(program, []byte("#!/bin/sh\necho asked >> "+program+".log\necho 0.73.1\n"),
		0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(program, filepath.Join(bin, "pi")); err != nil {
		t.Fatal(err)
	}
	host := agent.Host{Environ: []string{"PATH=" + bin + ":/usr/bin:/bin", "OPENAI_API_KEY=o"}, CacheDir: t.TempDir()}
	for range 2 {
		found, err := New().Probe(t.Context(), host)
		if err != nil || found.Version != "0.73.1" || found.Login != agent.AuthAPIKey {
			t.Errorf("%+v, %v", found, err)
		}
		if !slices.Contains(found.ReadPaths, filepath.Join(modules, "node_modules")) {
			t.Errorf("the packages are not among %q", found.ReadPaths)
		}
	}
	if log, err := os.ReadFile(program + ".log"); err != nil || strings.Count(string(log), "asked") != 1 {
		t.Errorf("asked: %q, %v", log, err)
	}
}

// aDollar is an account with a dollar.
func aDollar() *gateway.Account { return gateway.NewAccount("this test", gateway.Budget{USD: 1}, nil) }
