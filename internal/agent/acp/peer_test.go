package acp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/agent/agenttest"
	"github.com/fit-eval/fit/internal/sandbox"
	"github.com/fit-eval/fit/session"
)

// player is the name under which the test binary plays an agent, in the way that an argument says.
const player = "play-agent"

func TestMain(m *testing.M) {
	agenttest.MaybeDump()
	if filepath.Base(os.Args[0]) == player {
		play(os.Args[1])
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// incoming is a line that the peer reads.
type incoming struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		SessionID string `json:"sessionId"`
		Cwd       string `json:"cwd"`
		Value     string `json:"value"`
	} `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

// peer is an agent that behaves in some way.
type peer struct {
	how    string
	in     *bufio.Scanner
	out    *bufio.Writer
	spoken int // messages so far
	cwd    string
}

func play(how string) {
	p := &peer{how: how, in: bufio.NewScanner(os.Stdin), out: bufio.NewWriter(os.Stdout)}
	p.in.Buffer(nil, 1<<26)
	for p.in.Scan() {
		var m incoming
		if json.Unmarshal(p.in.Bytes(), &m) != nil {
			os.Exit(9)
		}
		p.take(m)
	}
}

// say writes a message. A peer that dies at a message does so instead of writing it.
func (p *peer) say(format string, args ...any) {
	if after, dies := strings.CutPrefix(p.how, "dies-"); dies && after == strconv.Itoa(p.spoken) {
		os.Exit(7)
	}
	p.spoken++
	fmt.Fprintf(p.out, format+"\n", args...)
	p.out.Flush()
}

func (p *peer) update(format string, args ...any) {
	p.say(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"S","update":{%s}}}`,
		fmt.Sprintf(format, args...))
}

func (p *peer) text(text string) {
	p.update(`"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":%q}`, text)
}

// ask sends a request and returns the answer.
func (p *peer) ask(id int, method, params string) incoming {
	p.say(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":{%s}}`, id, method, params)
	var m incoming
	for p.in.Scan() && json.Unmarshal(p.in.Bytes(), &m) == nil && m.Method != "" {
		p.take(m)
		m = incoming{}
	}
	return m
}

func (p *peer) take(m incoming) {
	switch m.Method {
	case "initialize":
		version := "1"
		if other, has := strings.CutPrefix(p.how, "version-"); has {
			version = other
		}
		if p.how == "early-terminal" {
			p.say(`{"jsonrpc":"2.0","id":0,"method":"terminal/create","params":{"command":"touch","args":["made"]}}`)
		}
		p.say(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":%s,"agentCapabilities":{"loadSession":true},`+
			`"agentInfo":{"name":"peer","version":"1"}}}`, m.ID, version)
	case "session/new", "session/load":
		p.cwd = m.Params.Cwd
		if p.how == "no-login" {
			p.say(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":"Authentication required"}}`, m.ID)
			return
		}
		if m.Method == "session/load" {
			p.text("An old answer.") // the history
		}
		p.say(`{"jsonrpc":"2.0","id":%s,"result":{"sessionId":"S","configOptions":[`+
			`{"id":"provider","category":"model"},{"id":"model","category":"model"}]}}`, m.ID)
	case "session/set_config_option":
		if m.Params.Value == "unlisted" {
			p.say(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32602,"message":"no such model"}}`, m.ID)
			return
		}
		p.update(`"sessionUpdate":"config_option_update","configOptions":[]`)
		p.say(`{"jsonrpc":"2.0","id":%s,"result":{}}`, m.ID)
		p.how = m.Params.Value
	case "session/prompt":
		p.prompted(m)
	}
}

func (p *peer) prompted(m incoming) {
	if text, says := strings.CutPrefix(p.how, "says "); says {
		p.text("Info: Retrying")
		p.text(text)
		p.say(`{"jsonrpc":"2.0","id":%s,"result":{"stopReason":"end_turn"}}`, m.ID)
		return
	}
	end := func(reason string) { p.say(`{"jsonrpc":"2.0","id":%s,"result":{"stopReason":%q}}`, m.ID, reason) }
	switch p.how {
	case "garbage":
		p.say("Loading… 100%%")
		p.say(`{"jsonrpc":"2.0","method":"session/upda`)
		p.say("\x00\xff[1,2")
		p.say(`[]`)
	case "long-line":
		p.out.WriteString(`{"jsonrpc":"2.0","method":"session/update","y":"`)
		for range 80 { // less than an agent may print in all
			p.out.Write(bytes.Repeat([]byte("y"), 1<<20))
		}
		p.say(`"}`)
	case "long-list":
		p.update(`"sessionUpdate":"available_commands_update","availableCommands":[{"name":%q}]`,
			strings.Repeat("x", 600<<10))
	case "unasked":
		for _, id := range []string{"999", `"x"`, "null", "-1", "1"} {
			p.say(`{"jsonrpc":"2.0","id":%s,"result":{"stopReason":"refusal"}}`, id)
		}
	case "flood":
		for i := 0; ; i++ {
			p.say(`{"jsonrpc":"2.0","id":%d,"method":"fs/read_text_file","params":{"path":"/etc/passwd%s"}}`, i,
				strings.Repeat("/x", 500))
		}
	case "endless":
		for {
			p.text(strings.Repeat("and on ", 1000))
		}
	case "outside", "files":
		p.files()
	case "swaps":
		p.swaps()
	case "permissions":
		p.permissions()
	case "silent":
		return
	case "deaf":
		p.update(`"sessionUpdate":"tool_call","toolCallId":"c","kind":"execute","status":"in_progress","title":"t"`)
		select {}
	case "open-permission":
		answer := p.ask(5, "session/request_permission", permissionParams)
		p.text(string(answer.Result))
		end("cancelled")
		return
	case "error":
		p.say(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32603,"message":"Internal error",`+
			`"data":{"details":"500 broke"}}}`, m.ID)
		return
	}
	p.text("Done.")
	end("end_turn")
}

const permissionParams = `"sessionId":"S","toolCall":` +
	`{"toolCallId":"c","kind":"execute","title":"touch x","rawInput":{"command":"touch x"}},` +
	`"options":[{"optionId":"e","kind":"allow_always"},{"optionId":"r","kind":"reject_once"},` +
	`{"optionId":"a","kind":"allow_once"},{"optionId":"b","kind":"allow_once"}]`

// permissions asks three times, and says the answers.
func (p *peer) permissions() {
	for i, tool := range []string{"bash", "write", "team_Ask"} {
		p.update(`"sessionUpdate":"tool_call","toolCallId":"c%d","title":%q,"status":"pending"`, i, tool)
		answer := p.ask(i, "session/request_permission",
			strings.Replace(permissionParams, `"c"`, fmt.Sprintf(`"c%d"`, i), 1))
		var chosen struct {
			Outcome struct {
				OptionID string `json:"optionId"`
			} `json:"outcome"`
		}
		_ = json.Unmarshal(answer.Result, &chosen)
		p.text(chosen.Outcome.OptionID)
	}
}

// files tries what the client must not do, and what it may, and says what it did.
func (p *peer) files() {
	try := func(method, params string) {
		answer := p.ask(1, method, params)
		if answer.Error != nil {
			p.text(fmt.Sprintf("%s %d; ", method, answer.Error.Code))
			return
		}
		p.text(fmt.Sprintf("%s %s; ", method, answer.Result))
	}
	for _, path := range []string{
		"/etc/fit-was-here", filepath.Join(p.cwd, "../fit-was-here"), filepath.Join(p.cwd, "link/fit-was-here"),
		"fit-was-here",
	} {
		try("fs/write_text_file", fmt.Sprintf(`"path":%q,"content":"x"`, path))
	}
	try("fs/write_text_file",
		fmt.Sprintf(`"path":%q,"content":"one\ntwo\nthree\n"`, filepath.Join(p.cwd, "sub/inside")))
	try("fs/read_text_file", fmt.Sprintf(`"path":%q,"line":2,"limit":1`, filepath.Join(p.cwd, "sub/inside")))
	try("fs/read_text_file", fmt.Sprintf(`"path":%q`, filepath.Join(p.cwd, "link/secret")))
	try("fs/read_text_file", fmt.Sprintf(`"path":%q`, filepath.Join(p.cwd, "pipe")))
	try("terminal/create", `"command":"true"`)
}

// swaps asks for files while something else turns a directory and a file of the workspace into
// links that lead out of it, and back. It continues until it was both served and refused.
func (p *peer) swaps() {
	outside, _ := os.Readlink(filepath.Join(p.cwd, "outside"))
	dir, leaf := filepath.Join(p.cwd, "dir"), filepath.Join(p.cwd, "leaf")
	go func() {
		for {
			_ = os.Symlink(outside, dir)
			_ = os.Symlink(filepath.Join(outside, "secret"), leaf)
			_ = errors.Join(os.Remove(dir), os.Remove(leaf), os.Mkdir(dir, 0o755), os.WriteFile(leaf, nil, 0o600))
			_ = errors.Join(os.RemoveAll(dir), os.Remove(leaf))
		}
	}()
	served, refused := 0, 0
	for i := 0; i < 400 || served == 0 || refused == 0; i++ {
		path := []string{filepath.Join(dir, "secret"), leaf}[i%2]
		answer := p.ask(i, "fs/write_text_file", fmt.Sprintf(`"path":%q,"content":"overwritten"`, path))
		if i%4 > 1 {
			answer = p.ask(i, "fs/read_text_file", fmt.Sprintf(`"path":%q`, path))
		}
		if answer.Error != nil {
			refused++
			continue
		}
		served++
		if bytes.Contains(answer.Result, []byte("outside")) {
			p.text("It was read: " + string(answer.Result))
		}
	}
}

// performance is a session with a peer.
type performance struct {
	t      *testing.T
	entry  Entry
	config agent.Config

	mu     sync.Mutex
	events []string
	onLine func(line string)
}

func perform(t *testing.T, how string) *performance {
	t.Helper()
	program := filepath.Join(t.TempDir(), player)
	agenttest.Link(t, program)
	grace := time.Hour // a slow machine is no reason to kill
	if how == "silent" || how == "deaf" {
		grace = 500 * time.Millisecond
	}
	p := &performance{t: t, entry: Entry{ID: "peer", Command: program, Args: []string{how}}}
	p.config = agent.Config{
		Name:    "worker",
		Dir:     t.TempDir(),
		Home:    t.TempDir(),
		Spawner: sandbox.NewSpawner(),
		Grace:   grace,
		Events: func(event []byte) {
			p.mu.Lock()
			p.events = append(p.events, string(event))
			p.mu.Unlock()
			if p.onLine != nil {
				p.onLine(string(event))
			}
		},
	}
	return p
}

func (p *performance) prompt(ctx context.Context) (agent.Result, error) {
	p.t.Helper()
	if err := p.entry.Validate(); err != nil {
		p.t.Fatal(err)
	}
	talk, err := New(p.entry).Start(ctx, p.config)
	if err != nil {
		p.t.Fatal(err)
	}
	result, err := talk.Prompt(ctx, "Do it")
	if closing := talk.Close(); closing != nil {
		p.t.Errorf("close: %v", closing)
	}
	return result, err
}

func (p *performance) session() *session.EnrichedSession {
	p.t.Helper()
	sessions, err := session.Read(strings.NewReader(strings.Join(p.events, "\n")), dialects(), session.Options{})
	if err != nil || len(sessions) != 1 {
		p.t.Fatalf("%d sessions, %v", len(sessions), err)
	}
	return sessions[0]
}

func TestAPeerThatIsOnlyNoisy(t *testing.T) {
	for how, check := range map[string]func(*session.EnrichedSession) bool{
		"":               func(s *session.EnrichedSession) bool { return s.Unknown == 0 },
		"garbage":        func(s *session.EnrichedSession) bool { return s.ParseErrors == 4 },
		"long-line":      func(s *session.EnrichedSession) bool { return s.Skipped == 1 },
		"long-list":      func(s *session.EnrichedSession) bool { return s.Unknown+s.Skipped+s.ParseErrors == 0 },
		"unasked":        func(s *session.EnrichedSession) bool { return s.Unknown == 5 },
		"early-terminal": func(*session.EnrichedSession) bool { return true },
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			p := perform(t, how)
			result, err := p.prompt(t.Context())
			if err != nil || !result.Success || result.Text != "Done." {
				t.Fatalf("outcome %q, text %q, error %v, %v", result.Outcome, result.Text, result.Err, err)
			}
			if s := p.session(); s.Outcome != session.OutcomeSuccess || !check(s) {
				t.Errorf("outcome %q; %d unknown, %d broken, %d skipped", s.Outcome, s.Unknown, s.ParseErrors,
					s.Skipped)
			}
			if result.Usage.TotalTokens != 0 || result.Usage.CostUSD != nil {
				t.Errorf("usage %+v", result.Usage)
			}
			if made, _ := filepath.Glob(filepath.Join(p.config.Dir, "*")); len(made) > 0 {
				t.Errorf("made %q", made)
			}
		})
	}
}

func TestAPeerThatDoesNotStop(t *testing.T) {
	for _, how := range []string{"flood", "endless"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			p := perform(t, how)
			p.config.OutputLimit = 8 << 20
			p.config.Events = func([]byte) {}
			result, err := p.prompt(t.Context())
			if err != nil || result.Success || result.Outcome != session.OutcomeOutput || result.Err == nil {
				t.Errorf("outcome %q, error %v, %v", result.Outcome, result.Err, err)
			}
		})
	}
}

func TestAPeerOfAnotherVersion(t *testing.T) {
	for _, version := range []string{"2", "0", `"1"`, "null", "[]"} {
		_, err := perform(t, "version-"+version).prompt(t.Context())
		if err == nil || !strings.Contains(err.Error(), "speaks version "+version+" of") {
			t.Errorf("version %s: error %v", version, err)
		}
	}
}

func TestAPeerWithoutALogin(t *testing.T) {
	_, err := perform(t, "no-login").prompt(t.Context())
	var auth *agent.AuthError
	if !errors.As(err, &auth) {
		t.Errorf("error %v", err)
	}
}

// TestAPeerThatDies: the peer says four messages in all; it may end before each of them.
func TestAPeerThatDies(t *testing.T) {
	for message := range 4 {
		t.Run(strconv.Itoa(message), func(t *testing.T) {
			t.Parallel()
			result, err := perform(t, fmt.Sprintf("dies-%d", message)).prompt(t.Context())
			if err == nil {
				err = result.Err
			}
			if result.Success || err == nil || !strings.Contains(err.Error(), "exit code 7") {
				t.Errorf("outcome %q, error %v", result.Outcome, err)
			}
		})
	}
}

func TestFilesAreDeclined(t *testing.T) {
	p := perform(t, "outside")
	result, err := p.prompt(t.Context())
	if err != nil || !result.Success {
		t.Fatalf("outcome %q, error %v, %v", result.Outcome, result.Err, err)
	}
	if declined := strings.Count(result.Text, "-32601"); declined != 9 {
		t.Errorf("%d requests declined: %s", declined, result.Text)
	}
}

func TestFilesAreServedWithinTheWorkspace(t *testing.T) {
	p := perform(t, "files")
	p.entry.ServeFiles = true
	outside := t.TempDir()
	for _, err := range []error{
		os.Symlink(outside, filepath.Join(p.config.Dir, "link")),
		os.WriteFile(filepath.Join(outside, "secret"), []byte("secret"), 0o600),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	makePipe(t, filepath.Join(p.config.Dir, "pipe"))
	result, err := p.prompt(t.Context())
	if err != nil || !result.Success {
		t.Fatalf("outcome %q, error %v, %v", result.Outcome, result.Err, err)
	}
	for part, want := range map[string]int{
		"write_text_file -32602": 4, "write_text_file {}": 1, "read_text_file -32602": 2,
		`read_text_file {"content":"two\n"}`: 1, "terminal/create -32601": 1,
	} {
		t.Run(part, func(t *testing.T) {
			if got := strings.Count(result.Text, part); got != want {
				t.Errorf("%d times in %s", got, result.Text)
			}
		})
	}
	for _, path := range []string{
		"/etc/fit-was-here", filepath.Join(outside, "fit-was-here"),
		filepath.Join(filepath.Dir(p.config.Dir), "fit-was-here"),
	} {
		if _, err := os.Lstat(path); err == nil {
			t.Errorf("%s was written", path)
		}
	}
}

// TestLinksThatAreSwapped: whatever a path becomes between two looks at it, no link leads out.
func TestLinksThatAreSwapped(t *testing.T) {
	p := perform(t, "swaps")
	p.entry.ServeFiles = true
	outside := t.TempDir()
	secret := filepath.Join(outside, "secret")
	for _, err := range []error{
		os.Symlink(outside, filepath.Join(p.config.Dir, "outside")),
		os.WriteFile(secret, []byte("from outside"), 0o600),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	result, err := p.prompt(t.Context())
	if err != nil || !result.Success || result.Text != "Done." {
		t.Errorf("outcome %q, text %q, error %v, %v", result.Outcome, result.Text, result.Err, err)
	}
	content, err := os.ReadFile(secret)
	if entries, _ := os.ReadDir(outside); err != nil || string(content) != "from outside" || len(entries) != 1 {
		t.Errorf("outside there is %q, %v: %v", content, entries, err)
	}
}

func TestPermissionsAreAnsweredByPolicy(t *testing.T) {
	for name, test := range map[string]struct {
		allowed, denied []string
		want            string
	}{
		"everything":  {want: "aaaDone."},
		"one allowed": {allowed: []string{"Bash"}, want: "araDone."}, // the tools of the team are no tools of the agent
		"one denied":  {denied: []string{"bash"}, want: "raaDone."},
		"by name":     {allowed: []string{"write", "mcp__x"}, want: "raaDone."},
		"the team's":  {denied: []string{"mcp__team__Ask"}, want: "aarDone."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := perform(t, "permissions")
			p.entry.AsksForAll, p.entry.ToolName = true, nameIsTitle
			p.config.AllowedTools, p.config.DisallowedTools = test.allowed, test.denied
			p.config.MCPServers = []agent.MCPServer{{Name: "team", URL: "http://127.0.0.1:9"}}
			result, err := p.prompt(t.Context())
			if err != nil || !result.Success {
				t.Fatalf("outcome %q, error %v, %v", result.Outcome, result.Err, err)
			}
			said, answers := "", 0
			for _, m := range p.session().Messages {
				said += m.Text
			}
			for _, line := range p.events {
				answers += strings.Count(line, `"permission":{"toolCallId":"c`)
			}
			if said != test.want || answers != 3 {
				t.Errorf("said %q; %d answers in the trace", said, answers)
			}
		})
	}
}

func TestCancelled(t *testing.T) {
	for how, line := range map[string]string{
		"open-permission": "request_permission", "silent": `"session/prompt"`, "deaf": "in_progress",
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			p := perform(t, how)
			p.onLine = func(got string) {
				if strings.Contains(got, line) {
					cancel()
				}
			}
			result, err := p.prompt(ctx)
			if err != nil || result.Success || !result.Aborted || result.Outcome != session.OutcomeCancelled {
				t.Errorf("outcome %q, error %v, %v", result.Outcome, result.Err, err)
			}
			if how == "open-permission" {
				said := p.session().Messages
				if len(said) != 1 || !strings.Contains(said[0].Text, `"outcome":"cancelled"`) {
					t.Errorf("the request was answered %+v", said)
				}
			}
		})
	}
}

func TestSilenceIsBounded(t *testing.T) {
	p := perform(t, "silent")
	p.entry.Silence = "100ms"
	result, err := p.prompt(t.Context())
	if err != nil || result.Success || result.Aborted || result.Outcome != session.OutcomeProvider ||
		!errors.Is(result.Err, ErrSilent) {
		t.Errorf("outcome %q, error %v, %v", result.Outcome, result.Err, err)
	}
	if s := p.session(); s.Outcome != session.OutcomeProvider {
		t.Errorf("the trace says %q", s.Outcome)
	}
}

// TestTheEndOfATurnIsNoProof: what the entry says about the agent's texts decides.
func TestTheEndOfATurnIsNoProof(t *testing.T) {
	for text, want := range map[string]session.Outcome{
		"Error: 429 slow down": session.OutcomeProvider,
		"Error: HTTP 401":      session.OutcomeAuth,
		"No Error: at all":     session.OutcomeSuccess,
	} {
		t.Run(text, func(t *testing.T) {
			p := perform(t, "says "+text)
			p.entry.Errors, p.entry.Notices = []string{"Error: "}, []string{"Info: "}
			result, err := p.prompt(t.Context())
			if err != nil || result.Outcome != want || p.session().Outcome != want {
				t.Errorf("outcome %q, in the trace %q, error %v", result.Outcome, p.session().Outcome, err)
			}
			if retries := strings.Count(strings.Join(p.events, "\n"), "Retrying"); retries != 1 || result.Turns > 1 {
				t.Errorf("%d notices, %d turns", retries, result.Turns)
			}
		})
	}
}

func TestAnError(t *testing.T) {
	result, err := perform(t, "error").prompt(t.Context())
	if err != nil || result.Success || result.Outcome != session.OutcomeProvider || result.Err.Error() != "500 broke" {
		t.Errorf("outcome %q, error %v, %v", result.Outcome, result.Err, err)
	}
}

// TestAModelIsChosenByTheOptionThatMeansIt: the peer behaves as its model is called.
func TestAModelIsChosenByTheOptionThatMeansIt(t *testing.T) {
	p := perform(t, "")
	p.config.Model = "error"
	result, err := p.prompt(t.Context())
	if err != nil || result.Outcome != session.OutcomeProvider {
		t.Errorf("outcome %q, error %v, %v", result.Outcome, result.Err, err)
	}
}

// TestAModelThatTheAgentRefuses: some agents take listed names only, and the reason is theirs.
func TestAModelThatTheAgentRefuses(t *testing.T) {
	p := perform(t, "")
	p.config.Model = "unlisted"
	if _, err := p.prompt(t.Context()); err == nil || !strings.Contains(err.Error(), "no such model") {
		t.Errorf("error %v", err)
	}
}

// TestAResumedSessionDoesNotCountItsHistory: the history is replayed before the answer to
// session/load.
func TestAResumedSessionDoesNotCountItsHistory(t *testing.T) {
	p := perform(t, "")
	p.entry.Resume, p.config.Resume = byLoad, "S"
	result, err := p.prompt(t.Context())
	if err != nil || !result.Success || result.SessionID != "S" || result.Turns != 1 {
		t.Errorf("outcome %q, %d turns, error %v, %v", result.Outcome, result.Turns, result.Err, err)
	}
	if messages := p.session().Messages; len(messages) != 1 {
		t.Errorf("messages %+v", messages)
	}
}

func makePipe(t *testing.T, path string) {
	t.Helper()
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
}
