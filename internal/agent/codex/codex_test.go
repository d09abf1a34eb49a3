package codex

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/agent/agenttest"
	"github.com/fit-eval/fit/internal/gateway"
	"github.com/fit-eval/fit/internal/sandbox"
	"github.com/fit-eval/fit/price"
	"github.com/fit-eval/fit/session"
)

func TestMain(m *testing.M) {
	agenttest.MaybeDump()
	if filepath.Base(os.Args[0]) == player {
		playServer()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestArguments(t *testing.T) {
	flags := []string{"--json", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "--ignore-rules"}
	settings := []string{
		"--disable", "plugins", "--disable", "apps", "--disable", "unbounded_connection_retries",
		"-c", "analytics.enabled=false",
		"-c", "check_for_update_on_startup=false",
		"-c", "tools.experimental_request_user_input.enabled=false",
		"-c", "allow_login_shell=false",
		"-c", `shell_environment_policy.exclude=["CODEX_API_KEY"]`,
	}
	texts := []string{
		"-c", "project_root_markers=[]", "-c", `approval_policy="never"`, "-c", `sandbox_mode="danger-full-access"`,
	}
	noPrograms := []string{"--disable", "hooks"}
	nothing := []string{
		"--disable", "hooks", "-c", "project_doc_max_bytes=0", "-c", "skills.include_instructions=false",
	}
	isolated := sandbox.Isolation{Kind: sandbox.IsolationBwrap}
	endpoint := []string{
		"-c", `model_provider="fit"`, "-c", `model_providers.fit.name="fit"`, "-c",
		`model_providers.fit.base_url="http://h/s/x/v1"`,
		"-c", `model_providers.fit.wire_api="responses"`, "-c", `model_providers.fit.env_key="CODEX_API_KEY"`,
		"-c", "model_providers.fit.request_max_retries=0", "-c", "model_providers.fit.stream_max_retries=0",
	}
	none := 0
	for name, test := range map[string]struct{ got, want []string }{
		"one prompt": {
			arguments{path: "codex"}.exec(),
			slices.Concat([]string{"codex", "exec"}, flags, settings, texts, noPrograms, []string{"--", "-"}),
		},
		"nothing of the project": {
			arguments{path: "codex", cfg: agent.Config{Context: agent.ContextNone, Isolation: isolated}}.exec(),
			slices.Concat([]string{"codex", "exec"}, flags, settings, nothing, []string{"--", "-"}),
		},
		"model, resumed, isolated": {
			arguments{path: "codex", cfg: agent.Config{Model: "m", Isolation: isolated}, resume: "id"}.exec(),
			slices.Concat([]string{"codex", "exec", "resume"}, flags, []string{"--model", "m"}, settings, texts,
				[]string{"--", "id", "-"}),
		},
		"programs of the project that must not run": {
			arguments{
				path: "codex", login: agent.AuthSubscription, cfg: agent.Config{Effort: "high"},
				project: project{login: true, shell: true, servers: []string{"theirs"}, set: []string{"BASH_ENV"}},
			}.server(),
			slices.Concat([]string{"codex", "app-server"}, settings, texts, []string{
				"-c", `forced_login_method="chatgpt"`, "-c", `shell_environment_policy.inherit="all"`,
				"-c", "shell_environment_policy.include_only=[]",
			}, noPrograms, []string{
				"-c", "mcp_servers.theirs.enabled=false", "-c", `shell_environment_policy.set.BASH_ENV=""`,
				"-c", `model_reasoning_effort="high"`,
			}),
		},
		"long-lived, other endpoint": {
			arguments{path: "codex", cfg: agent.Config{Model: "m", ModelURL: "http://h/s/x/", Retries: &none}}.server(),
			slices.Concat([]string{"codex", "app-server"}, settings, texts, noPrograms, endpoint),
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, test.got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
		})
	}
}

func TestWhatNeedsTheAppServer(t *testing.T) {
	plain := agent.Config{OneShot: true, Model: "m"}
	if needsServer(plain, project{}) {
		t.Error("a plain run does not need it")
	}
	for name, change := range map[string]func(*agent.Config){
		"several prompts": func(c *agent.Config) { c.OneShot = false },
		"turns":           func(c *agent.Config) { c.MaxTurns = 1 },
		"budget":          func(c *agent.Config) { c.Account = aDollar() },
		"resumed":         func(c *agent.Config) { c.Resume = "x" },
		"no model":        func(c *agent.Config) { c.Model = "" },
	} {
		t.Run(name, func(t *testing.T) {
			cfg := plain
			change(&cfg)
			if !needsServer(cfg, project{}) {
				t.Errorf("%s: needs it", name)
			}
		})
	}
	if !needsServer(plain, project{settings: true}) {
		t.Error("settings of the project: needs it")
	}
}

// loggedIn is a caller's home with a login in it.
func loggedIn(t *testing.T, login string) string {
	t.Helper()
	home := t.TempDir()
	if err := os.MkdirAll(filepath.Join(home, ".codex"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, ".codex", loginName), []byte(login), 0o600); err != nil {
		t.Fatal(err)
	}
	return home
}

const planLogin = `{"OPENAI_API_KEY":null,"tokens":{"access_token":"secret","refresh_token":"r"}}`

func TestChoiceOfLogin(t *testing.T) {
	plan, stored, without := "HOME="+loggedIn(t, planLogin), "HOME="+loggedIn(t,
		`{"OPENAI_API_KEY":"stored"}`), "HOME="+t.TempDir()
	broken := "HOME=" + loggedIn(t, "{")
	elsewhere := "CODEX_HOME=" + filepath.Join(loggedIn(t, planLogin), ".codex")
	for name, test := range map[string]struct {
		cfg  agent.Config
		mode string
		key  string
		err  string
	}{
		"a login is found": {
			agent.Config{Environ: []string{plan, "OPENAI_API_KEY=o"}},
			"subscription",
			"", "",
		},
		"a login in another place": {
			agent.Config{Environ: []string{without, elsewhere}},
			"subscription", "",
			"",
		},
		"a login, but a key for the agent": {
			agent.Config{Environ: []string{plan, "CODEX_API_KEY=k"}},
			"apikey", "k",
			"",
		},
		"a login, but another endpoint": {agent.Config{
			Environ:  []string{plan, "OPENAI_API_KEY=o"},
			ModelURL: "http://x",
		}, "apikey", "o", ""},
		"a login, but the key is asked for": {
			agent.Config{Environ: []string{plan, "OPENAI_API_KEY=o"}, Auth: "apikey"},
			"apikey", "o", "",
		},
		"the agent's key before any": {agent.Config{Environ: []string{
			without, "OPENAI_API_KEY=o",
			"CODEX_API_KEY=k",
		}}, "apikey", "k", ""},
		"a stored key": {agent.Config{Environ: []string{stored}}, "apikey", "stored", ""},
		"a stored key stays with its owner": {
			agent.Config{Environ: []string{stored}, ModelURL: "http://x"},
			"apikey",
			noKey, "",
		},
		"a broken login": {
			agent.Config{Environ: []string{broken}},
			"", "",
			"CODEX_API_KEY is not set",
		},
		"nothing": {
			agent.Config{Environ: []string{without}},
			"", "",
			"CODEX_API_KEY is not set",
		},
		"a plan that is not there": {
			agent.Config{Environ: []string{stored}, Auth: "subscription"},
			"", "",
			"no login of codex found",
		},
		"a plan at another endpoint": {agent.Config{
			Environ: []string{plan}, Auth: "subscription",
			ModelURL: "http://x",
		}, "", "", "own endpoint only"},
		"no such mode": {agent.Config{Auth: "barter"}, "", "", "use subscription or apikey"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := chooseLogin(test.cfg)
			if (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
				t.Fatalf("error %v, want %q", err, test.err)
			}
			if got.mode != test.mode || got.key != test.key {
				t.Errorf("mode %q, key %q", got.mode, got.key)
			}
			if secret := err == nil && test.key != noKey; got.secret != secret {
				t.Errorf("the key is said to be worth stealing: %v", got.secret)
			}
		})
	}
}

// TestTheChildSeesOnlyApprovedVariables starts a program through the adapter and compares the set
// of its variables.
func TestTheChildSeesOnlyApprovedVariables(t *testing.T) {
	home := loggedIn(t, planLogin)
	for name, test := range map[string]struct {
		change func(*agent.Config)
		own    []string
		file   bool
	}{
		"subscription": {func(*agent.Config) {}, nil, true},
		"key":          {func(cfg *agent.Config) { cfg.Auth = agent.AuthAPIKey }, []string{"CODEX_API_KEY"}, true},
		"other endpoint": {
			func(cfg *agent.Config) { cfg.ModelURL = "http://127.0.0.1:1" },
			[]string{"CODEX_API_KEY"},
			false,
		},
		"long-lived": {func(cfg *agent.Config) { cfg.OneShot = false }, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			program := agenttest.Dumper(t)
			cfg := agenttest.Config(t, program, "0.166.0",
				"HOME="+home, "ANTHROPIC_API_KEY=k", "OPENAI_API_KEY=o", "CODEX_HOME="+filepath.Join(home,
					".codex"), "CODEX_THREAD_ID=outer")
			cfg.Model = "m"
			test.change(&cfg)
			s, err := New().Start(t.Context(), cfg)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			// a program that does not greet is of no use as a server
			if _, err := s.Prompt(t.Context(), "hello"); (err == nil) != cfg.OneShot {
				t.Fatal(err)
			}
			agenttest.CheckVariables(t, program, append(test.own, "CODEX_HOME")...)
			if _, err := os.Stat(filepath.Join(cfg.Home, "codex", loginName)); (err == nil) != test.file {
				t.Errorf("the login in the session's home: %v", err)
			}
		})
	}
}

func TestSecretsAndPromptsAreInAFileOfTheHome(t *testing.T) {
	cfg := agent.Config{
		Home: t.TempDir(), Dir: "/repo", SystemPrompt: "be \"brief\"\nand kind\x7f", MCPServers: []agent.MCPServer{
			{
				Name: "web", URL: "http://127.0.0.1:1/mcp",
				Headers: map[string]string{"Authorization": "Bearer s3cr3t", "X-Other": "1"},
			},
			{Name: "local", Command: "srv", Args: []string{"-x", "a b"}, Env: map[string]string{"K": "v"}},
		},
	}
	p, err := prepare(cfg, login{mode: agent.AuthAPIKey})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(p.codexHome, "config.toml")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := `developer_instructions = "be \"brief\"\nand kind\u007f"

[projects."/repo"]
trust_level = "trusted"

[mcp_servers.web]
required = true
tool_timeout_sec = 21600
default_tools_approval_mode = "approve"
url = "http://127.0.0.1:1/mcp"
http_headers = { "Authorization" = "Bearer s3cr3t", "X-Other" = "1" }

[mcp_servers.local]
required = true
tool_timeout_sec = 21600
default_tools_approval_mode = "approve"
command = "srv"
args = ["-x", "a b"]
env = { "K" = "v" }
`
	if diff := cmp.Diff(want, string(data)); diff != "" {
		t.Errorf("config.toml (-want +got):\n%s", diff)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("config.toml: %v, %v", info, err)
	}
	if argv := strings.Join((arguments{path: "codex", cfg: cfg}).exec(), " "); strings.Contains(argv, "s3cr3t") {
		t.Errorf("argv: %s", argv)
	}
	if rel, err := filepath.Rel(p.tmp, p.codexHome); err != nil || !strings.HasPrefix(rel, "..") {
		t.Errorf("the program's home %s lies below its temporary directory %s", p.codexHome, p.tmp)
	}
}

func TestServersThatCannotBeAttached(t *testing.T) {
	for _, server := range []agent.MCPServer{
		{Name: "both", URL: "http://x", Command: "srv"},
		{Name: "neither"},
		{URL: "http://x"},
		{Name: "a]\n[b", URL: "http://x"},
	} {
		if _, err := prepare(agent.Config{Home: t.TempDir(), MCPServers: []agent.MCPServer{server}},
			login{mode: agent.AuthAPIKey}); err == nil {
			t.Errorf("accepted: %+v", server)
		}
	}
}

func TestWhatItCannotDoIsRefused(t *testing.T) {
	for missing, change := range map[string]func(*agent.Config){
		`cannot be allowed the tool "Telephone"`: func(c *agent.Config) {
			c.AllowedTools = []string{
				"Bash",
				"Telephone",
			}
		},
		`cannot be denied the tool "Telephone"`: func(c *agent.Config) { c.DisallowedTools = []string{"Telephone"} },
		"cannot be allowed Read without Bash":   func(c *agent.Config) { c.AllowedTools = []string{"Read"} },
		"works with the vendor's own endpoint":  func(c *agent.Config) { c.Auth = agent.AuthSubscription },
		"a dollar budget needs a price":         func(c *agent.Config) { c.Account = aDollar() },
		`model "m" has none`:                    func(c *agent.Config) { c.Account, c.Prices = aDollar(), noPrices },
	} {
		t.Run(missing, func(t *testing.T) {
			cfg := agent.Config{
				Dir: t.TempDir(), Home: t.TempDir(), Model: "m", ModelURL: "http://x",
				Installation: &agent.Installation{Path: "codex"},
			}
			change(&cfg)
			_, err := New().Start(t.Context(), cfg)
			var lacking *agent.CapabilityError
			if !errors.As(err, &lacking) || !strings.Contains(err.Error(), missing) {
				t.Errorf("%s: %v", missing, err)
			}
		})
	}
}

func noPrices(string, session.TokenUsage, int64) (float64, bool) { return 0, false }

func TestVersionsThatAreTooOldAreRefused(t *testing.T) {
	for version, ok := range map[string]bool{
		"0.166.0": true, "0.150.0": true, "1.0.0": true, "0.147.2": false,
		"0.46.0": false, "weird": true,
	} {
		t.Run(version, func(t *testing.T) {
			if err := program().Supports(version); (err == nil) != ok {
				t.Errorf("%s: %v", version, err)
			}
		})
	}
}

// script installs a program that tells its version and how often it was asked.
func script(t *testing.T, path string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("#!/bin/sh\necho asked >> "+path+".log\necho codex-cli 0.166.0\n"),
		0o755); err != nil {
		t.Fatal(err)
	}
}

func TestTheNativeProgramIsPreferred(t *testing.T) {
	modules := t.TempDir()
	wrapper := filepath.Join(modules, "@openai", "codex", "bin", "codex.js")
	native := filepath.Join(modules, "@openai", "codex-"+platformName(), "vendor", architecture()+"-unknown-system",
		"bin", "codex")
	script(t, wrapper)
	bin := filepath.Join(modules, ".bin")
	if err := os.Mkdir(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(wrapper, filepath.Join(bin, "codex")); err != nil {
		t.Fatal(err)
	}
	host := agent.Host{Environ: []string{"PATH=" + bin + ":/usr/bin:/bin"}, CacheDir: t.TempDir()}
	found, err := New().Probe(t.Context(), host)
	if err != nil || found.Path != filepath.Join(bin, "codex") {
		t.Errorf("without a native program: %+v, %v", found, err)
	}
	script(t, native)
	for range 2 { // the second time from memory
		found, err = New().Probe(t.Context(), host)
		if err != nil || found.Path != native || found.Version != "0.166.0" {
			t.Errorf("with a native program: %+v, %v", found, err)
		}
	}
	if asked, _ := os.ReadFile(native + ".log"); strings.Count(string(asked), "asked") != 1 {
		t.Errorf("the version was asked for %d times", strings.Count(string(asked), "asked"))
	}
	if want := []string{filepath.Join(modules, "@openai")}; !slices.Equal(found.ReadPaths, want) {
		t.Errorf("to be readable: %q", found.ReadPaths)
	}
}

func TestAProgramThatIsNotInstalled(t *testing.T) {
	_, err := New().Probe(t.Context(), agent.Host{Environ: []string{"PATH=" + t.TempDir()}})
	var notFound *agent.NotFoundError
	if !errors.As(err, &notFound) || notFound.Hint != installHint {
		t.Errorf("error: %v", err)
	}
}

// Prices have dates; what counts is whether there is one today.
func TestABudgetIsAcceptedForAModelOnThePriceList(t *testing.T) {
	cfg := agent.Config{Account: aDollar(), Prices: session.ListPrices(price.Default())}
	if err := priced(cfg, "gpt-5.1-codex"); err != nil {
		t.Error(err)
	}
	if err := priced(cfg, "no-such-model"); err == nil {
		t.Error("a budget for a model without a price was accepted")
	}
}

// aDollar is an account with a dollar.
func aDollar() *gateway.Account { return gateway.NewAccount("this test", gateway.Budget{USD: 1}, nil) }
