package codex

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fit-eval/fit/agent"
	"github.com/fit-eval/fit/internal/testenv"
	"github.com/fit-eval/fit/model/scripted"
	"github.com/fit-eval/fit/sandbox"
	"github.com/fit-eval/fit/session"
)

// The tests here drive the real program against the scripted model, for what is this agent's own; what all agents share is tested in test/agents.

type turn = map[string]any

// bash is a turn that calls the shell.
func bash(command string) turn { return turn{"calls": []turn{{"bash": command}}} }

// stage is the program with a scripted model and a workspace.
type stage struct {
	t      *testing.T
	config agent.Config

	mu       sync.Mutex
	events   []string
	requests []string
}

func newStage(t *testing.T, turns ...turn) *stage {
	t.Helper()
	s := &stage{t: t}
	data, err := json.Marshal(turn{"turns": turns, "usage": turn{"input": 1000, "output": 100}})
	if err != nil {
		t.Fatal(err)
	}
	script, err := scripted.Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	record := func(r scripted.Record) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.requests = append(s.requests, string(r.Body))
	}
	server, err := scripted.Listen("127.0.0.1:0", scripted.NewServer(map[string]*scripted.Script{"": script}, scripted.Options{LogBodies: true, OnRequest: record}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	bin, err := filepath.Abs("../../test/agents/node_modules/.bin")
	if err != nil {
		t.Fatal(err)
	}
	environ := []string{"PATH=" + bin + string(os.PathListSeparator) + os.Getenv("PATH"), "HOME=" + t.TempDir(), "LANG=C.UTF-8"}
	installation, err := New().Probe(t.Context(), agent.Host{Environ: environ, CacheDir: filepath.Join(filepath.Dir(bin), ".cache", "fit")})
	var notFound *agent.NotFoundError
	if errors.As(err, &notFound) {
		testenv.Missing(t, "%v (make test installs it in test/agents)", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	s.config = agent.Config{
		Dir: t.TempDir(), Home: t.TempDir(), Environ: environ, ExtraEnv: []string{sandbox.RunMarker + "=" + t.Name() + server.URL}, Model: "gpt-5.5",
		ModelURL: server.URL, OneShot: true, Spawner: sandbox.NewSpawner(), Installation: &installation, Grace: 3 * time.Second,
		Events: func(event []byte) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.events = append(s.events, string(event))
		},
	}
	return s
}

// run gives prompts in one session, which is closed afterwards, and checks that nothing is left of it.
func (s *stage) run(prompts ...string) []agent.Result {
	s.t.Helper()
	talk, err := New().Start(s.t.Context(), s.config)
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(s.t.Context(), 2*time.Minute)
	defer cancel()
	var results []agent.Result
	for _, prompt := range prompts {
		result, err := talk.Prompt(ctx, prompt)
		if err != nil {
			s.t.Fatalf("prompt %q: %v", prompt, err)
		}
		results = append(results, result)
	}
	if err := talk.Close(); err != nil {
		s.t.Errorf("close: %v", err)
	}
	s.checkAlone()
	return results
}

// checkAlone fails the test if a process of the run is alive.
func (s *stage) checkAlone() {
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

// session enriches what was printed.
func (s *stage) session() *session.EnrichedSession {
	s.t.Helper()
	return read(s.t, s.events...)
}

func (s *stage) file(name string) string {
	data, err := os.ReadFile(filepath.Join(s.config.Dir, name))
	if err != nil {
		return ""
	}
	return string(data)
}

func (s *stage) write(name, content string) {
	s.t.Helper()
	path := filepath.Join(s.config.Dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		s.t.Fatal(err)
	}
}

func TestTheBudgetIsHeld(t *testing.T) {
	s := newStage(t, bash("echo 1 >> steps"), bash("echo 2 >> steps"), bash("echo 3 >> steps"), bash("echo 4 >> steps"), bash("echo 5 >> steps"), bash("echo 6 >> steps"))
	s.config.MaxCostUSD = 2.5
	s.config.Prices = func(model string, usage session.TokenUsage, _ int64) (float64, bool) {
		return float64(usage.InputTokens) / 1000, model == "gpt-5.5"
	}
	result := s.run("Count")[0]
	if result.Success || result.Outcome != session.OutcomeBudget {
		t.Errorf("result: success %v, outcome %q, error %v", result.Success, result.Outcome, result.Err)
	}
	if cost := result.Usage.CostUSD; cost == nil || *cost < 2.5 || *cost > 4 {
		t.Errorf("usage: %+v", result.Usage)
	}
	if strings.Contains(s.file("steps"), "5") {
		t.Errorf("steps taken: %q", s.file("steps"))
	}
}

func TestABudgetNeedsThePriceOfTheModelThatTheProgramChooses(t *testing.T) {
	s := newStage(t, turn{"text": "Never said."})
	s.config.Model, s.config.MaxCostUSD, s.config.Prices = "", 1, noPrices
	talk, err := New().Start(t.Context(), s.config)
	if err != nil {
		t.Fatal(err)
	}
	defer talk.Close()
	if _, err := talk.Prompt(t.Context(), "Do it"); err == nil || !strings.Contains(err.Error(), "price of model") {
		t.Errorf("error: %v", err)
	}
	if len(s.requests) > 0 {
		t.Error("the model was asked nevertheless")
	}
	s.checkAlone()
}

func TestSystemPrompts(t *testing.T) {
	for name, oneShot := range map[string]bool{"exec": true, "app server": false} {
		t.Run(name, func(t *testing.T) {
			for _, replace := range []bool{false, true} {
				s := newStage(t, turn{"text": "Yes."})
				s.config.OneShot, s.config.SystemPrompt, s.config.ReplaceSystemPrompt = oneShot, "Speak like \"a pirate\".\nAlways.", replace
				s.run("Hello")
				body := strings.Join(s.requests, "\n")
				if !strings.Contains(body, `Speak like \"a pirate\".\nAlways.`) {
					t.Errorf("replace %v: the model was not told", replace)
				}
				if own := strings.Contains(body, "You are Codex"); own == replace {
					t.Errorf("replace %v: the program's own prompt was sent: %v", replace, own)
				}
			}
		})
	}
}

func TestSettingsOfTheRepositoryAreNotRead(t *testing.T) {
	for name, oneShot := range map[string]bool{"exec": true, "app server": false} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, turn{"text": "Yes."})
			s.config.OneShot = oneShot
			s.write(".git/HEAD", "ref: refs/heads/main\n")
			s.write(".codex/config.toml", "developer_instructions = \"PLANTED in the settings\"\nmodel = \"planted\"\n")
			s.write(".codex/hooks.json", `{"hooks":{"SessionStart":[{"hooks":[{"type":"command","command":"touch planted"}]}]}}`)
			s.write("AGENTS.md", "PLANTED in the instructions\n")
			if result := s.run("Hello")[0]; !result.Success {
				t.Errorf("result: outcome %q, error %v", result.Outcome, result.Err)
			}
			if strings.Contains(strings.Join(s.requests, "\n"), "PLANTED") || s.file("planted") != "" {
				t.Error("the repository's settings reached the model")
			}
		})
	}
}

func TestTheShellHasNoKeyAndTheProgramNoComplaint(t *testing.T) {
	s := newStage(t, bash("env > variables"), turn{"text": "Looked."})
	s.config.Environ = append(s.config.Environ, "CODEX_API_KEY=sk-hunter2")
	if result := s.run("Look")[0]; !result.Success || !result.Output.KeyVisible {
		t.Errorf("outcome %q, error %v, key visible: %v", result.Outcome, result.Err, result.Output.KeyVisible)
	}
	if variables := s.file("variables"); strings.Contains(variables, "hunter2") || !strings.Contains(variables, "PATH=") {
		t.Errorf("variables of the shell:\n%s", variables)
	}
	for _, event := range s.events {
		if strings.HasPrefix(event, `{"type":"stderr"`) && strings.Contains(event, "WARNING") {
			t.Errorf("the program complains: %s", event)
		}
	}
}

func TestOneProcessForEachPromptIsStillOneConversation(t *testing.T) {
	s := newStage(t, bash("echo plum > word"), turn{"text": "First."}, bash("cat word"), turn{"text": "Second."})
	results := s.run("Remember", "Which was it?")
	for i, want := range []string{"First.", "Second."} {
		if r := results[i]; r.Text != want || r.Usage.InputTokens != 2000 || r.Turns != 2 || r.SessionID != results[0].SessionID {
			t.Errorf("prompt %d: text %q, %d turns, session %q, usage %+v", i+1, r.Text, r.Turns, r.SessionID, r.Usage)
		}
	}
	if argv := results[1].Output.Argv; !slices.Contains(argv, "resume") {
		t.Errorf("the second process: %q", argv)
	}
	if got := s.session(); got.Usage.InputTokens != 4000 || got.Turns != 4 {
		t.Errorf("%d turns, usage %+v", got.Turns, got.Usage)
	}
}

func TestAResumedConversationCountsWhatIsNew(t *testing.T) {
	s := newStage(t, bash("echo plum > word"), turn{"text": "First."}, turn{"text": "Second."})
	first := s.run("Remember")[0]
	s.events, s.config.Resume = nil, first.SessionID
	second := s.run("Which was it?")[0]
	if second.Text != "Second." || second.Usage.InputTokens != 1000 || second.Usage.OutputTokens != 100 {
		t.Errorf("text %q, usage %+v, error %v", second.Text, second.Usage, second.Err)
	}
	if got := s.session(); got.Usage.InputTokens != 1000 || got.SessionID != first.SessionID {
		t.Errorf("session %q, usage %+v", got.SessionID, got.Usage)
	}
}

func TestSeveralCallsOfOneAnswerAreOneTurn(t *testing.T) {
	s := newStage(t, turn{"calls": []turn{{"bash": "echo 1"}, {"bash": "echo 2"}, {"bash": "echo 3"}}}, turn{"text": "Done."})
	s.config.OneShot = false
	if result := s.run("Count")[0]; result.Turns != 2 || s.session().Turns != 2 {
		t.Errorf("%d turns in the result, %d in the session", result.Turns, s.session().Turns)
	}
}

func TestAModelThatCallsItsToolsFromCode(t *testing.T) {
	for name, oneShot := range map[string]bool{"exec": true, "app server": false} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, turn{"calls": []turn{{"read": "a.txt"}}}, turn{"calls": []turn{{"edit": "a.txt", "old": "minus", "new": "plus"}}}, turn{"text": "Done."})
			s.config.OneShot, s.config.Model = oneShot, "gpt-6.1-sol"
			s.write("a.txt", "one\nminus\n")
			result := s.run("Fix it")[0]
			if !result.Success || !strings.Contains(s.file("a.txt"), "plus") {
				t.Errorf("outcome %q, error %v, file %q", result.Outcome, result.Err, s.file("a.txt"))
			}
			reached := map[string]bool{}
			for _, m := range s.session().Milestones {
				reached[m.Kind] = true
			}
			if !reached[session.FirstFileRead] || !reached[session.FirstFileEdit] {
				t.Errorf("milestones: %+v", s.session().Milestones)
			}
		})
	}
}

func TestTheRecordOnDiskTellsTheSame(t *testing.T) {
	for name, oneShot := range map[string]bool{"exec": true, "app server": false} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, turn{"calls": []turn{{"read": "a.txt"}}}, turn{"calls": []turn{{"edit": "a.txt", "old": "minus", "new": "plus"}}}, bash("exit 3"), turn{"text": "Done."})
			s.config.OneShot = oneShot
			s.write("a.txt", "one\nminus\n")
			result := s.run("Fix it")[0]
			sessions, err := session.ReadFile(result.Output.DiskJSONLPath, New().Dialects(), session.Options{})
			if err != nil || len(sessions) != 1 {
				t.Fatalf("%d sessions, %v", len(sessions), err)
			}
			disk, stream := sessions[0], s.session()
			if disk.Dialect != RolloutDialectName || disk.SessionID != stream.SessionID || disk.Outcome != stream.Outcome || disk.FinalText != stream.FinalText {
				t.Errorf("on disk: %s, session %q, outcome %q, text %q", disk.Dialect, disk.SessionID, disk.Outcome, disk.FinalText)
			}
			if disk.Usage.TotalTokens != stream.Usage.TotalTokens || disk.Turns != stream.Turns {
				t.Errorf("on disk: %d turns, usage %+v; in the stream: %d turns, %+v", disk.Turns, disk.Usage, stream.Turns, stream.Usage)
			}
			if got, want := tools(disk), tools(stream); !slices.Equal(got, want) {
				t.Errorf("on disk: %q; in the stream: %q", got, want)
			}
			if disk.Unknown+disk.ParseErrors+stream.Unknown+stream.ParseErrors > 0 {
				t.Errorf("not understood: on disk %d and %d, in the stream %d and %d", disk.Unknown, disk.ParseErrors, stream.Unknown, stream.ParseErrors)
			}
		})
	}
}

// tools lists the calls as they count, and how they ended.
func tools(s *session.EnrichedSession) []string {
	var list []string
	for _, event := range s.Events {
		switch {
		case event.Tool != nil:
			list = append(list, event.Tool.Effective())
		case event.Result != nil && event.Result.IsError:
			list = append(list, "failed")
		}
	}
	return list
}
