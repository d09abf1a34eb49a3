package agentscli

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/fit-eval/fit"
	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/internal/jsonenc"
	"github.com/fit-eval/fit/internal/model/scripted"
	"github.com/fit-eval/fit/internal/scratch"
	"github.com/fit-eval/fit/session"
)

// tryOptions are the flags of fit agents try.
type tryOptions struct {
	model    string
	modelURL string
	live     bool
	timeout  console.Span
	format   console.Format
	output   string
}

func newTry(con *console.Console, registry *agent.Registry) *cobra.Command {
	opts := &tryOptions{
		timeout: console.Span{Value: 5 * time.Minute},
	}
	command := &cobra.Command{
		Use:   "try AGENT",
		Short: "Run one small task with an agent and show which capabilities were observed",
		Long: `Run one small task with an agent and show which capabilities were observed, whatever it claims: it reads a
file, edits one, runs a command and calls a tool.

The model is scripted and runs on this machine, so this needs no key and costs nothing; --live uses the agent's own
model, --model-url another endpoint. The exit code is 0 if every ability that the agent claims was seen, and 1
otherwise.`,
		Example: `  fit agents try builtin
  fit agents try 'cmd:./my-agent --prompt-file {prompt}' --live`,
		Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			return runTry(command.Context(), con, registry, args[0], opts)
		},
	}
	flags := command.Flags()
	flags.StringVar(&opts.model, "model", "", "model of the agent (default: the agent's default)")
	flags.StringVar(&opts.modelURL, "model-url", "", "model endpoint, without /v1, in place of the scripted model")
	flags.BoolVar(&opts.live, "live", false, "use the agent's configured model, which costs money")
	flags.Var(&opts.timeout, "timeout", "end the task after this time, e.g. 5m")
	opts.format.Register(flags, "output format")
	flags.StringVar(&opts.output, "output", "", "write the trace to this file")
	return command
}

const (
	noteFile, todoFile, copyFile = "note.txt", "todo.txt", "copy.txt"
	toolServer, toolName         = "trial", "stamp"
	// countedInput and countedOutput are the tokens of every reply of the scripted model.
	countedInput, countedOutput = 1000, 100
)

// prompt says in words what the script does, for models that are none.
const prompt = `Do these steps with your tools, one after the other:
1. Read the file note.txt. It has one word.
2. In the file todo.txt replace the word open by the word done.
3. Run the shell command: cp note.txt copy.txt
4. If you have a tool called stamp, call it with the text ready.
Then answer with the word of note.txt.`

// trial is one task with what was seen of it.
type trial struct {
	word string // in the note, which only who reads it knows
	dir  string

	mu      sync.Mutex
	stamped bool
	bodies  bytes.Buffer // what the scripted model was asked
	asked   int
}

// abilityRow is one line of the table.
type abilityRow struct {
	Ability string `json:"ability"`
	Claimed bool   `json:"claimed"`
	Seen    bool   `json:"seen"`
	Detail  string `json:"detail,omitempty"`
}

func runTry(ctx context.Context, con *console.Console, registry *agent.Registry, id string, opts *tryOptions) error {
	played, err := registry.Get(id)
	if err != nil {
		return console.Exit(console.ExitUsage, err)
	}
	if opts.live && opts.modelURL != "" {
		return console.Usagef("--live uses the agent's configured model: drop --model-url")
	}
	room, err := scratch.Make("", "fit-try-")
	if err != nil {
		return fmt.Errorf("make a working directory: %w", err)
	}
	defer func() { _ = room.Remove() }() // the next trial removes what is left
	t := &trial{dir: room.Path, word: "word-" + strings.ToLower(rand.Text()[:8])}
	for name, content := range map[string]string{noteFile: t.word + "\n", todoFile: "write the report: open\n"} {
		if err := os.WriteFile(filepath.Join(room.Path, name), []byte(content), 0o600); err != nil {
			return fmt.Errorf("make a working directory: %w", err)
		}
	}
	var trace bytes.Buffer
	result, err := t.run(ctx, con, registry, played, opts, &trace)
	if opts.output != "" {
		err = errors.Join(err, os.WriteFile(con.Path(opts.output), trace.Bytes(), 0o600))
	}
	if err != nil {
		return err
	}
	sessions, err := session.Read(bytes.NewReader(trace.Bytes()), registry.Dialects(), session.Options{})
	if err != nil {
		return err
	}
	return t.report(con, played, result, sessions, opts)
}

func (t *trial) run(ctx context.Context, con *console.Console, registry *agent.Registry, played agent.Agent,
	opts *tryOptions, trace *bytes.Buffer,
) (fit.RunResult, error) {
	cfg := fit.RunConfig{
		Task:     prompt,
		Cwd:      t.dir,
		Agent:    string(played.Info().ID),
		Model:    opts.model,
		ModelURL: opts.modelURL,
		Timeout:  opts.timeout.Value,
		Output:   trace,
	}
	can := played.Info().Capabilities
	if !opts.live && opts.modelURL == "" {
		script, err := t.script(can.MCP != agent.Unsupported)
		if err != nil {
			return fit.RunResult{}, err
		}
		server, err := scripted.Listen("127.0.0.1:0", scripted.NewServer(map[string]*scripted.Script{"": script},
			scripted.Options{LogBodies: true, OnRequest: t.request}))
		if err != nil {
			return fit.RunResult{}, err
		}
		defer server.Close()
		cfg.ModelURL = server.URL
		if cfg.Model == "" && played.Info().DefaultModel == "" {
			cfg.Model = "scripted"
		}
	}
	if can.MCP != agent.Unsupported {
		server, err := serveTool(t.stamp)
		if err != nil {
			return fit.RunResult{}, err
		}
		defer server.Close()
		cfg.MCPServers = []fit.MCPServer{{Name: toolServer, URL: server.URL}}
	}
	wiring := fit.Wiring{
		Registry: registry,
		Environ:  con.Environ,
		Prices:   con.Prices(),
		Warnings: con.Stderr,
	}
	return wiring.Run(ctx, cfg)
}

// script makes the scripted model take the steps of the prompt.
func (t *trial) script(withTool bool) (*scripted.Script, error) {
	turns := []scripted.Turn{
		{Text: "I'll read both files.", Calls: []scripted.Call{{Read: noteFile}, {Read: todoFile}}},
		{Calls: []scripted.Call{{Edit: todoFile, Old: "open", New: "done"}}},
		{Calls: []scripted.Call{{Bash: "cp " + noteFile + " " + copyFile}}},
	}
	if withTool {
		turns = append(turns, scripted.Turn{Calls: []scripted.Call{{
			MCP:   toolServer + "/" + toolName,
			Input: []byte(`{"text":"ready"}`),
		}}})
	}
	turns = append(turns, scripted.Turn{Text: "Everything is done."})
	return scripted.New(scripted.Script{
		Turns: turns,
		Aux:   &scripted.Turn{Text: "A small task"},
		Usage: &scripted.UsageJSON{InputTokens: countedInput, OutputTokens: countedOutput},
	})
}

func (t *trial) request(r scripted.Record) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.bodies.Write(r.Body)
	if r.Protocol != "" && r.Status < 300 {
		t.asked++
	}
}

func (t *trial) stamp() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stamped = true
}

func (t *trial) file(name string) string {
	data, err := os.ReadFile(filepath.Join(t.dir, name))
	if err != nil {
		return ""
	}
	return string(data)
}

// look compares what the agent says it can do with what was seen.
func (t *trial) look(played agent.Agent, result fit.RunResult, sessions []*session.EnrichedSession) []abilityRow {
	t.mu.Lock()
	defer t.mu.Unlock()
	can := played.Info().Capabilities
	told, calls := "", 0
	var usage session.TokenUsage
	for _, s := range sessions {
		usage = s.Usage
		for _, e := range s.Events {
			if e.Result != nil {
				told += e.Result.Preview
			}
			if e.Kind == session.KindToolCall {
				calls++
			}
		}
	}
	known := t.bodies.String() + told + result.Text
	detail := ""
	if t.asked > 0 && usage.TotalTokens > 0 {
		detail = fmt.Sprintf("%d of the %d that the model counted", usage.TotalTokens,
			t.asked*(countedInput+countedOutput))
	} else if usage.TotalTokens > 0 {
		detail = fmt.Sprint(usage.TotalTokens)
	}
	return []abilityRow{
		{"read a file", true, strings.Contains(known, t.word), ""},
		{"edit a file", true, strings.Contains(t.file(todoFile), "done"), ""},
		{"run a command", true, strings.Contains(t.file(copyFile), t.word), ""},
		{"call a tool over MCP", can.MCP != agent.Unsupported, t.stamped, ""},
		{"answer", true, result.Success && result.Text != "", display.CutRunes(display.Line(result.Text), 60)},
		{"show its tool calls", true, calls > 0, fmt.Sprint(calls)},
		{"count tokens", can.Usage != agent.Unsupported, usage.TotalTokens > 0, detail},
		{"tell its session", can.Resume != agent.Unsupported, result.SessionID != "", ""},
	}
}

func (t *trial) report(con *console.Console, played agent.Agent, result fit.RunResult,
	sessions []*session.EnrichedSession, opts *tryOptions,
) error {
	rows := t.look(played, result, sessions)
	missing := 0
	for _, s := range rows {
		if s.Claimed && !s.Seen {
			missing++
		}
	}
	if opts.format.JSON() {
		err := jsonenc.WriteIndented(con.Stdout, map[string]any{
			"agent": played.Info().ID, "outcome": result.Reason, "seen": rows,
		})
		if err != nil {
			return err
		}
	} else if err := printAbilities(con, rows); err != nil {
		return err
	}
	switch {
	case result.Reason == session.OutcomeProvider || result.Reason == session.OutcomeAuth:
		return console.Exitf(console.ExitIncomplete, "the model could not be reached: %v", result.Err)
	case result.Err != nil && missing > 0:
		return console.Exitf(console.ExitNegative, "%d of these were not observed; the run ended with %s: %w", missing,
			result.Reason, result.Err)
	case missing > 0:
		return console.Exitf(console.ExitNegative, "%d of these were not observed", missing)
	}
	return nil
}

func printAbilities(con *console.Console, rows []abilityRow) error {
	word := map[bool]string{true: "yes", false: "no"}
	table := con.Table()
	fmt.Fprintln(table, "ABILITY\tEXPECTED\tSEEN\t")
	for _, s := range rows {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", s.Ability, word[s.Claimed], word[s.Seen], s.Detail)
	}
	return table.Flush()
}
