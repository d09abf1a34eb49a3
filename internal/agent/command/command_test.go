package command

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/agent/agenttest"
	"github.com/fit-eval/fit/internal/gateway"
	"github.com/fit-eval/fit/internal/sandbox"
	"github.com/fit-eval/fit/price"
	"github.com/fit-eval/fit/session"
)

func TestMain(m *testing.M) {
	agenttest.MaybeDump()
	os.Exit(m.Run())
}

// stage is a program made of a shell script, in a workspace.
type stage struct {
	t      *testing.T
	entry  Entry
	config agent.Config

	mu    sync.Mutex
	lines []string
}

func newStage(t *testing.T, script string) *stage {
	t.Helper()
	s := &stage{t: t, entry: Entry{ID: "mine", Command: agenttest.Script(t, script)}}
	home := t.TempDir() // its name marks the processes of this run, and of no other that tests the same
	s.config = agent.Config{
		Name: "worker", Dir: t.TempDir(), Home: home, OneShot: true, Grace: time.Second,
		Environ:  []string{"PATH=" + os.Getenv("PATH"), "AWS_SECRET_ACCESS_KEY=none of its business"},
		ExtraEnv: []string{sandbox.RunMarker + "=" + home},
		Spawner:  sandbox.NewSpawner(),
		Events: func(event []byte) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.lines = append(s.lines, string(event))
		},
	}
	return s
}

func (s *stage) start() agent.Session {
	s.t.Helper()
	if err := s.entry.Validate(); err != nil {
		s.t.Fatal(err)
	}
	conversation, err := New(s.entry).Start(s.t.Context(), s.config)
	if err != nil {
		s.t.Fatal(err)
	}
	return conversation
}

// run gives one prompt and checks that no process is left.
func (s *stage) run(ctx context.Context, prompt string) agent.Result {
	s.t.Helper()
	conversation := s.start()
	result, err := conversation.Prompt(ctx, prompt)
	if err != nil {
		s.t.Fatal(err)
	}
	if err := conversation.Close(); err != nil {
		s.t.Error(err)
	}
	s.alone()
	return result
}

// alone fails the test if a process of the run is alive.
func (s *stage) alone() {
	s.t.Helper()
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err == nil && strings.Contains("\x00"+string(data), "\x00"+s.config.ExtraEnv[0]+"\x00") {
			command, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "cmdline"))
			s.t.Errorf("left behind: %q", command)
		}
	}
}

func (s *stage) trace() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.lines, "\n")
}

func (s *stage) session() *session.EnrichedSession {
	s.t.Helper()
	sessions, err := session.Read(strings.NewReader(s.trace()), New(s.entry).Dialects(), session.Options{})
	if err != nil || len(sessions) != 1 {
		s.t.Fatalf("%d sessions, %v:\n%s", len(sessions), err, s.trace())
	}
	return sessions[0]
}

func TestTextOnStandardOutputIsTheAnswer(t *testing.T) {
	t.Parallel()
	s := newStage(t, `printf 'You said:\n\n'; cat; echo '{"type":"result","success":false}'; echo noted >&2; pwd > where`)
	result := s.run(t.Context(), "Fix it\n")
	want := "You said:\n\nFix it\n{\"type\":\"result\",\"success\":false}"
	if !result.Success || result.Text != want || result.Turns != 1 || result.Outcome != session.OutcomeSuccess ||
		result.Usage.TotalTokens != 0 || result.Usage.CostUSD != nil {
		t.Errorf("%+v", result)
	}
	for _, line := range []string{`{"type":"raw","text":"You said:"}`, `{"type":"stderr","text":"noted"}`} {
		if !strings.Contains(s.trace(), line) {
			t.Errorf("no %s in\n%s", line, s.trace())
		}
	}
	if told := s.session(); told.FinalText != want || told.Outcome != session.OutcomeSuccess || told.Turns != 1 {
		t.Errorf("the trace tells %+v", told)
	}
}

func TestThePromptInAFile(t *testing.T) {
	t.Parallel()
	s := newStage(t, `echo "stdin: $(cat)"; shift; cat "$1"; echo; cat "$2"; cat "$3"; echo "$4 $5"`)
	s.entry.Command += ` --prompt-file {prompt} {system} {mcp} model={model} '{"json": 1}'`
	s.config.Model, s.config.SystemPrompt = "m-1", "Be brief.\n"
	s.config.MCPServers = []agent.MCPServer{{Name: "team", Command: "/bin/relay", Args: []string{"x"}}}
	info := New(s.entry).Info().Capabilities
	if info.MCP != agent.Native || info.SystemPromptAppend != agent.Native || info.MaxTurns != agent.Unsupported {
		t.Errorf("%+v", info)
	}
	result := s.run(t.Context(), "Fix it")
	want := `stdin: 
Fix it
Be brief.
{"mcpServers":{"team":{"type":"stdio","command":"/bin/relay","args":["x"]}}}model=m-1 {"json": 1}`
	if result.Text != want {
		t.Errorf("got %q\nwant %q", result.Text, want)
	}
}

func TestTheExitCodeSaysHowItWent(t *testing.T) {
	t.Parallel()
	for script, want := range map[string]struct {
		outcome session.Outcome
		message string
		turns   int
	}{
		`echo half; echo "no such file" >&2; exit 3`: {
			session.OutcomeError, "the program ended with exit code 3; it said: no such file", 1,
		},
		`echo "no module named x" >&2; exit 1`: {
			session.OutcomeError, "exit code 1; it said: no module named x", 0,
		},
		`exit 75`:             {session.OutcomeProvider, "exit code 75", 0},
		`kill -SEGV $$`:       {session.OutcomeNoResult, "ended by SIGSEGV", 0},
		`echo x; kill -9 $$`:  {session.OutcomeNoResult, agent.ErrKilled.Error(), 1},
		`echo x; exit 137`:    {session.OutcomeNoResult, agent.ErrKilled.Error(), 1}, // as a shell in between says it
		`echo fine`:           {session.OutcomeSuccess, "", 1},
		`exec 1>&-; true`:     {session.OutcomeError, "printed nothing", 0},
		`printf ' \n\n\t \n'`: {session.OutcomeError, "printed nothing", 0},
	} {
		t.Run(script, func(t *testing.T) {
			result := newStage(t, script).run(t.Context(), "x")
			message := ""
			if result.Err != nil {
				message = result.Err.Error()
			}
			if result.Outcome != want.outcome || !strings.Contains(message, want.message) ||
				result.Success != (want.outcome == session.OutcomeSuccess) || result.Turns != want.turns {
				t.Errorf("%s: %+v", script, result)
			}
		})
	}
}

func TestEvents(t *testing.T) {
	t.Parallel()
	s := newStage(t, `cat <<'END'
{"type":"text","text":"I look first.","thinking":true}
{"type":"text","text":"Looking."}
{"type":"tool_call","id":"1","name":"read","input":{"path":"a.go"}}
{"type":"tool_result","id":"1","output":"package a"}
{"type":"usage","model":"claude-sonnet-4-6","input_tokens":1000,"output_tokens":100}
{"type":"tool_call","id":"2","name":"bash","input":{"command":"go test ./..."}}
not JSON
{"type":"tool_result","id":"2","output":"FAIL","exit_code":1}
{"type":"error","kind":"rate_limit","status":429,"message":"slow down","retrying":true,"attempt":1}
{"type":"from_the_future","x":1}
{"type":"tool_call","id":"3","name":"edit","input":{"file_path":"a.go"}}
{"type":"tool_result","id":"3","output":"ok"}
{"type":"usage","input_tokens":500,"output_tokens":50,"cache_read_tokens":7,"cache_write_tokens":3}
{"type":"result","success":true,"text":"Done.","session":"c-17"}
END
exit 1`)
	s.entry.Events = "ndjson"
	s.config.Prices = session.ListPrices(price.Default())
	result := s.run(t.Context(), "x")
	u := result.Usage
	if !result.Success || result.Text != "Done." || result.SessionID != "c-17" || result.Turns != 4 ||
		u.InputTokens != 1500 || u.OutputTokens != 150 || u.CacheReadTokens != 7 || u.CacheWriteTokens != 3 ||
		u.CostUSD == nil || *u.CostUSD <= 0 {
		t.Errorf("%+v", result)
	}
	told := s.session()
	var reached []string
	for _, m := range told.Milestones {
		reached = append(reached, m.Kind)
	}
	if got := strings.Join(reached, " "); got != "first_file_read first_bash_command first_test_run first_file_edit task_completion" {
		t.Errorf("milestones %s", got)
	}
	if told.Unknown != 1 || told.ParseErrors != 1 || told.SessionID != "c-17" || told.FinalText != "Done." {
		t.Errorf("%+v", told)
	}
}

// Why a program failed decides whether its run counts.
func TestWhyAProgramFailed(t *testing.T) {
	t.Parallel()
	for events, want := range map[string]session.Outcome{
		`{"type":"error","status":429,"message":"m"} {"type":"result","success":false}`:                          session.OutcomeProvider,
		`{"type":"error","kind":"auth","message":"m"} {"type":"result","success":false}`:                         session.OutcomeAuth,
		`{"type":"error","message":"I am stuck"} {"type":"result","success":false}`:                              session.OutcomeError,
		`{"type":"error","status":500,"message":"m","retrying":true} {"type":"result","success":false}`:          session.OutcomeError,
		`{"type":"error","status":429,"message":"m"} {"type":"result","success":false,"kind":"other"}`:           session.OutcomeError,
		`{"type":"error","status":429,"message":"m"}`:                                                            session.OutcomeProvider,
		`{"type":"usage","input_tokens":0,"output_tokens":0} {"type":"result","success":true,"text":"I did it"}`: session.OutcomeError,
	} {
		t.Run(events, func(t *testing.T) {
			s := newStage(t, "printf '%s\\n' '"+strings.ReplaceAll(events, "} {", "}' '{")+"'; exit 1")
			s.entry.Events = "ndjson"
			if result := s.run(t.Context(), "x"); result.Outcome != want || result.Success || result.Err == nil {
				t.Errorf("%s: %+v", events, result)
			}
		})
	}
}

// A result that does not say whether it is a success is none, and the program's author learns why.
func TestAResultWithoutSuccess(t *testing.T) {
	t.Parallel()
	s := newStage(t, `echo '{"type":"text","text":"Done."}'; echo '{"type":"result","text":"All good"}'`)
	s.entry.Events = "ndjson"
	if result := s.run(t.Context(), "x"); result.Success || result.Err == nil ||
		!strings.Contains(result.Err.Error(), `("success": true or false): All good`) {
		t.Errorf("%+v", result)
	}
}

// A program whose last word is an error has failed, even where it ends as if all were well.
func TestAnErrorIsTheLastWord(t *testing.T) {
	t.Parallel()
	failed := `{"type":"error","status":429,"message":"slow down"}`
	said := `{"type":"text","text":"Done."}`
	for events, want := range map[string]session.Outcome{
		said + " " + failed: session.OutcomeProvider,
		failed + ` {"type":"usage","input_tokens":1,"output_tokens":1}`: session.OutcomeProvider,
		failed + " " + said: session.OutcomeSuccess,
		said + " " + failed + ` {"type":"result","success":true}`: session.OutcomeSuccess,
	} {
		t.Run(events, func(t *testing.T) {
			s := newStage(t, "printf '%s\\n' '"+strings.ReplaceAll(events, "} {", "}' '{")+"'")
			s.entry.Events = "ndjson"
			if result := s.run(t.Context(), "x"); result.Outcome != want || s.session().Outcome != want {
				t.Errorf("%s: %+v", events, result)
			}
		})
	}
}

// What is no count is not known, and is no zero either.
func TestUsageThatIsNoCount(t *testing.T) {
	t.Parallel()
	for _, usage := range []string{
		`"input_tokens":-5,"output_tokens":7`,
		`"input_tokens":"12","output_tokens":7`,
		`"output_tokens":7`,
		`"input_tokens":9223372036854775807,"output_tokens":7`,
		`"input_tokens":5,"output_tokens":1e400`,
		`"input_tokens":5,"output_tokens":7,"cache_read_tokens":-1`,
		`"input_tokens":5,"output_tokens":7,"cost_usd":1e308`,
		`"input_tokens":5,"output_tokens":7,"cost_usd":-1`,
	} {
		event := `{"type":"usage",` + usage + `}`
		s := newStage(t, "printf '%s\\n' '"+event+"' '"+event+"' '"+`{"type":"text","text":"Done."}`+"'")
		s.entry.Events = "ndjson"
		result := s.run(t.Context(), "x")
		if !result.Success || result.Usage.TotalTokens != 0 || result.Usage.CostUSD != nil ||
			s.session().ParseErrors != 2 {
			t.Errorf("%s: %+v", usage, result)
		}
	}
}

func TestResumeByATemplate(t *testing.T) {
	t.Parallel()
	program := `case "$1" in
new) echo "$2" >> "$HOME/all"; echo "began";;
old) echo "$2" >> "$HOME/all"; sort -u "$HOME/all" | wc -l;;
esac; cat >> "$HOME/all.prompts"; cat "$HOME/all.prompts"`
	s := newStage(t, program)
	path := s.entry.Command
	s.entry.Command, s.entry.Resume = path+" new {session}", path+" old {session}"
	conversation := s.start()
	first, err := conversation.Prompt(t.Context(), "one ")
	if err != nil || first.Text != "began\none" || first.SessionID == "" {
		t.Fatalf("%+v, %v", first, err)
	}
	second, err := conversation.Prompt(t.Context(), "two ")
	if err != nil || !strings.HasSuffix(second.Text, "one two") || second.SessionID != first.SessionID {
		t.Fatalf("%+v, %v", second, err)
	}
	s.config.Resume = first.SessionID
	if third := s.run(t.Context(), "three"); !strings.HasPrefix(third.Text, "1\n") ||
		!strings.HasSuffix(third.Text, "one two three") {
		t.Errorf("%+v", third)
	}

	without := newStage(t, "cat")
	conversation = without.start()
	if _, err := conversation.Prompt(t.Context(), "one"); err != nil {
		t.Fatal(err)
	}
	var refused *agent.CapabilityError
	if _, err := conversation.Prompt(t.Context(), "two"); !errors.As(err, &refused) {
		t.Errorf("a program that cannot resume was prompted twice: %v", err)
	}
	without.config.Resume = "x"
	if err := agent.Check(New(without.entry), without.config); !errors.As(err, &refused) {
		t.Errorf("a program that cannot resume was asked to: %v", err)
	}
}

// A hostile program has one clear outcome, in bounded time and memory, and leaves nothing.
func TestHostilePrograms(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		script  string
		events  string
		outcome session.Outcome
		message string
	}{
		"flood":                       {`yes "I am an agent"`, "", session.OutcomeOutput, "output limit"},
		"flood of events":             {`yes '{"type":"text","text":"I am an agent"}'`, "ndjson", session.OutcomeOutput, "output limit"},
		"garbage":                     {`head -c 300000 /dev/urandom; echo; printf '\033[2J{"type":'`, "ndjson", session.OutcomeError, "no model work"},
		"garbage as text":             {`head -c 300000 /dev/urandom`, "", session.OutcomeSuccess, ""},
		"hang":                        {`trap '' TERM; echo begun >&2; sleep 600 & wait`, "", session.OutcomeTimeout, ""},
		"leaves processes":            {`setsid sleep 600 & (setsid sh -c 'trap "" TERM HUP; sleep 600; sleep 600' &) ; echo done`, "", session.OutcomeSuccess, ""},
		"100 MB line":                 {`head -c 100000000 /dev/zero | tr '\0' x`, "", session.OutcomeSuccess, ""},
		"100 MB event":                {`printf '{"type":"text","text":"'; head -c 100000000 /dev/zero | tr '\0' x; echo '"}'`, "ndjson", session.OutcomeError, "no model work"},
		"nothing":                     {`true`, "ndjson", session.OutcomeError, "no model work"},
		"closes its output and stays": {`trap '' TERM; echo begun >&2; exec >&- 2>&-; sleep 600 & wait`, "", session.OutcomeTimeout, ""},
		"reads nothing":               {`exec 0<&-; echo fine`, "", session.OutcomeSuccess, ""},
		"events of others":            {`echo '{"type":"agent_end","messages":[]}'; echo '{"type":5}'; echo '{"type":"tool_result","id":7,"output":[]}'; echo '{"type":"usage","input_tokens":-5,"output_tokens":1e400,"cost_usd":-1}'`, "ndjson", session.OutcomeError, "no model work"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, tt.script)
			s.entry.Events = tt.events
			s.config.OutputLimit = 150 << 20
			if strings.HasPrefix(name, "flood") {
				s.config.OutputLimit = 2 << 20
			}
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			if keep := s.config.Events; tt.outcome == session.OutcomeTimeout {
				s.config.Events = func(event []byte) {
					keep(event)
					cancel(context.DeadlineExceeded) // the time is over when the program has begun
				}
			}
			result := s.run(ctx, strings.Repeat("a long prompt ", 100_000))
			message := ""
			if result.Err != nil {
				message = result.Err.Error()
			}
			if result.Outcome != tt.outcome || !strings.Contains(message, tt.message) ||
				len(result.Text) > maxAnswer+100 {
				t.Errorf("%s, %q, %d bytes of text", result.Outcome, message, len(result.Text))
			}
		})
	}
}

// What a program leaves for its next prompt is not followed out of its home, and an id that cannot
// be an argument is refused.
func TestHostileResumes(t *testing.T) {
	t.Parallel()
	victim := filepath.Join(t.TempDir(), "victim")
	if err := os.WriteFile(victim, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := newStage(t, `rm "$1"; ln -s `+victim+` "$1"; echo linked`)
	path := s.entry.Command
	s.entry.Command, s.entry.Resume = path+" {prompt} {session}", path+" {prompt} {session}"
	conversation := s.start()
	for range 2 {
		if result, err := conversation.Prompt(t.Context(), "overwritten"); err != nil || result.Text != "linked" {
			t.Errorf("%+v, %v", result, err)
		}
	}
	if kept, err := os.ReadFile(victim); string(kept) != "mine" {
		t.Errorf("outside there is %q, %v", kept, err)
	}
	for _, id := range []string{`head -c 200000 /dev/zero | tr '\0' x`, `printf '\134u0000'`} {
		s := newStage(t, `printf '{"type":"result","success":true,"text":"x","session":"%s"}\n' "$(`+id+`)"`)
		s.entry.Events, s.entry.Resume = "ndjson", s.entry.Command+" {session}"
		conversation := s.start()
		if _, err := conversation.Prompt(t.Context(), "x"); err != nil {
			t.Fatal(err)
		}
		var refused *agent.CapabilityError
		if _, err := conversation.Prompt(t.Context(), "x"); !errors.As(err, &refused) {
			t.Errorf("%s: %v", id, err)
		}
	}
}

func TestTheProgramsEnvironment(t *testing.T) {
	program := agenttest.Dumper(t)
	cfg := agenttest.Config(t, program, "1", "OPENAI_API_KEY=k", "MY_KEY=mine", "HOME=/root")
	cfg.ModelURL, cfg.Model = "http://127.0.0.1:9/", "m"
	entry := Entry{ID: "mine", Command: program, Keys: []string{"MY_KEY"}}
	entry.Env = map[string]string{"SETTING": "for {model}"}
	conversation, err := New(entry).Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conversation.Prompt(t.Context(), "x"); err != nil {
		t.Fatal(err)
	}
	agenttest.CheckVariables(t, program, "SETTING", "MY_KEY", "FIT_MODEL", "FIT_MODEL_URL", "ANTHROPIC_BASE_URL",
		"OPENAI_BASE_URL", "GOOGLE_GEMINI_BASE_URL")
}

func TestTheProgramsKeyIsRedacted(t *testing.T) {
	const key = "looks like nothing special"
	cfg := agenttest.Config(t, agenttest.Script(t, `echo "key: $MY_KEY"; echo "$MY_KEY" >&2`), "1", "MY_KEY="+key)
	entry := Entry{ID: "mine", Command: cfg.Installation.Path, Keys: []string{"MY_KEY"}}
	agenttest.CheckRedaction(t, New(entry), cfg, "key: ", key)
}

// What cannot be is refused before anything starts.
func TestRefusals(t *testing.T) {
	t.Parallel()
	for asked, change := range map[string]func(*Entry, *agent.Config){
		"a turn limit":              func(_ *Entry, c *agent.Config) { c.MaxTurns = 3 },
		"a budget":                  func(_ *Entry, c *agent.Config) { c.Account = aDollar() },
		"MCP servers":               func(_ *Entry, c *agent.Config) { c.MCPServers = []agent.MCPServer{{Name: "x"}} },
		"appending to the system":   func(_ *Entry, c *agent.Config) { c.SystemPrompt = "x" },
		"a list of allowed tools":   func(_ *Entry, c *agent.Config) { c.AllowedTools = []string{"Read"} },
		"resuming a conversation":   func(_ *Entry, c *agent.Config) { c.Resume = "x" },
		"needs the name of a model": func(e *Entry, _ *agent.Config) { e.Command += " {model}" },
		"set --model-url":           func(e *Entry, _ *agent.Config) { e.Command += " {model_url}" },
		"price":                     func(e *Entry, c *agent.Config) { e.Events, c.Account = "ndjson", aDollar() },
	} {
		t.Run(asked, func(t *testing.T) {
			s := newStage(t, "true")
			change(&s.entry, &s.config)
			var refused *agent.CapabilityError
			err := agent.Check(New(s.entry), s.config)
			if !errors.As(err, &refused) || !strings.Contains(err.Error(), asked) {
				t.Errorf("%s: %v", asked, err)
			}
		})
	}
}

func TestSchemes(t *testing.T) {
	registry := agent.NewRegistry().WithSchemes(Schemes()...)
	dir := t.TempDir()
	t.Chdir(dir)
	if err := os.WriteFile("my agent", []byte("#!/bin/sh\ncat\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	const id = `cmd:'./my agent' --prompt-file {prompt}`
	a, err := registry.Get(id)
	if err != nil || string(a.Info().ID) != id {
		t.Fatalf("%v, %v", a, err)
	}
	found, err := a.Probe(t.Context(), agent.Host{})
	if err != nil || found.Path != filepath.Join(dir, "my agent") || len(found.Version) != 12 {
		t.Errorf("%+v, %v", found, err)
	}
	if err := os.WriteFile("my agent", []byte("#!/bin/sh\necho\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if changed, err := a.Probe(t.Context(), agent.Host{}); err != nil || changed.Version == found.Version {
		t.Errorf("another program has the version %s, %v", changed.Version, err)
	}
	if events, err := registry.Get("cmd+ndjson:./my"); err != nil || events.Info().Capabilities.Usage != agent.Native {
		t.Errorf("%v, %v", events, err)
	}
	for id, want := range map[string]string{
		"cmd:":          "it is empty",
		"cmd: ":         "it is empty",
		"cmd:x {promt}": "{promt} is not a known placeholder; use one of {prompt}, {system}",
		"cmd:x 'y":      "a quote is not closed",
		"cmdx:y":        "unknown agent",
	} {
		t.Run(id, func(t *testing.T) {
			if _, err := registry.Get(id); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%q: %v", id, err)
			}
		})
	}
	for id, want := range map[string]string{
		"cmd:./nobody":        "no such file",
		"cmd:fit-no-such-one": "there is no program",
		"cmd:/etc/passwd":     "is not an executable file",
	} {
		t.Run(id, func(t *testing.T) {
			a, err := registry.Get(id)
			if err == nil {
				_, err = a.Probe(t.Context(), agent.Host{Environ: []string{"PATH=/usr/bin"}})
			}
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%q: %v", id, err)
			}
		})
	}
}

// aDollar is an account with a dollar.
func aDollar() *gateway.Account { return gateway.NewAccount("this test", gateway.Budget{USD: 1}, nil) }
