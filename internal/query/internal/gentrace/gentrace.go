// Package gentrace makes traces of any size that look like those of real team sessions:
// participants that stream messages in pieces with the same id and usage, thinking with signatures,
// tool results from two hundred bytes to fifty kilobytes, a few failures and images, noise of the
// system, and a result every now and then. The same seed gives the same trace.
package gentrace

import (
	"bufio"
	"encoding/base64"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"strings"

	"github.com/fit-eval/fit/internal/jsonenc"
)

// Config says what to make.
type Config struct {
	Bytes int64 // about how much
	Seed  uint64
}

var (
	words = strings.Fields(`the config module handler returns value error test build deploy service schema index cache retry token agent
		supervisor review branch commit merge file path line function class import export const async await promise timeout network request
		response status code header body json parse stringify failed passed skipped warning`)
	participants = []string{"facilitator", "staff-engineer", "security-engineer", "release-engineer", "agent"}
	tools        = map[string]int{
		"Bash": 40, "Read": 25, "Edit": 12, "Grep": 8, "Write": 5, "Glob": 4, "TodoWrite": 3,
		"mcp__orchestration__Ask": 2, "WebFetch": 1,
	}
	toolOrder = []string{
		"Bash", "Read", "Edit", "Grep", "Write", "Glob", "TodoWrite", "mcp__orchestration__Ask",
		"WebFetch",
	}
	commands = []string{
		"git status", "git diff --stat", "npm test", "ls -la", "rg -n 'retry' src",
		"cat package.json", "git log --oneline -5", "node build.mjs\necho done",
	}
)

// Write makes a trace.
func Write(w io.Writer, cfg Config) error {
	g := &generator{
		out: bufio.NewWriterSize(w, 1<<20), random: rand.New(rand.NewPCG(cfg.Seed, 7)),
		state: map[string]*usage{},
	}
	g.prepare()
	g.begin()
	for g.written < cfg.Bytes-60_000 {
		g.message(participants[g.random.IntN(len(participants))])
	}
	g.end()
	return g.out.Flush()
}

type object = map[string]any

type usage struct{ in, out, read, create, turns, messages, context int }

type generator struct {
	out     *bufio.Writer
	random  *rand.Rand
	seq     int
	written int64
	pool    string // text is cut out of it
	base64  string
	names   []string
	state   map[string]*usage
}

func (g *generator) prepare() {
	endings := []string{"", ` "quoted"`, " {x:1}", " ✓", ` \n`, "\tcol"}
	var pool strings.Builder
	for range 24000 {
		for i := range 6 + g.random.IntN(13) {
			if i > 0 {
				pool.WriteByte(' ')
			}
			pool.WriteString(words[g.random.IntN(len(words))])
		}
		pool.WriteString(endings[g.random.IntN(len(endings))] + "\n")
	}
	g.pool = pool.String()
	raw := make([]byte, 60000)
	for i := range raw {
		raw[i] = byte(g.random.Uint32())
	}
	g.base64 = base64.StdEncoding.EncodeToString(raw)
	for _, name := range toolOrder {
		for range tools[name] {
			g.names = append(g.names, name)
		}
	}
}

func (g *generator) text(n int) string {
	start := g.random.IntN(max(1, len(g.pool)-n-1))
	return strings.ToValidUTF8(g.pool[start:start+n], "")
}

func (g *generator) between(low, high int) int { return low + g.random.IntN(high-low+1) }

func (g *generator) id(prefix string) string {
	return fmt.Sprintf("%s%016x", prefix, g.random.Uint64())
}

// emit writes one line. Encoding a map sorts its keys, so the type is written first by hand, as
// agents do.
func (g *generator) emit(source, kind string, event object) {
	event["session_id"], event["uuid"] = "session-"+source, g.id("u")
	body, err := jsonenc.Marshal(event)
	if err != nil {
		panic("gentrace: " + err.Error()) // strings and numbers always encode
	}
	// kept until Flush
	n, _ := fmt.Fprintf(g.out, `{"source":%q,"seq":%d,"event":{"type":%q,%s}`+"\n", source, g.seq, kind,
		body[1:])
	g.seq++
	g.written += int64(n)
}

func (g *generator) begin() {
	g.emit("orchestrator", "meta", object{"discussion_id": g.id("GD_")})
	g.emit("orchestrator", "session_start", object{})
	for _, p := range participants {
		g.state[p] = &usage{context: 15000}
		g.emit("orchestrator", "agent_start", object{"agent": p})
		g.emit(p, "system", object{
			"subtype": "init", "cwd": "/repo", "tools": toolOrder, "model": "claude-opus-4-6",
			"permissionMode": "bypassPermissions", "claude_code_version": "2.1.87",
		})
		g.emit(p, "user", object{"message": object{
			"role":    "user",
			"content": []any{object{"type": "text", "text": "Task for " + p + ": " + g.text(1200)}},
		}})
	}
}

func (g *generator) message(p string) {
	s := g.state[p]
	report := object{
		"input_tokens": g.between(3, 900), "cache_creation_input_tokens": g.between(0, 4000),
		"cache_read_input_tokens": s.context, "output_tokens": g.between(1, 12),
	}
	s.in += report["input_tokens"].(int)
	s.create += report["cache_creation_input_tokens"].(int)
	s.read += s.context
	s.out += g.between(40, 1500)
	s.turns++
	s.messages++
	if s.context += g.between(200, 2500); s.context > 150000 {
		s.context = 15000
	}
	id := g.id("msg_")
	say := func(block object) {
		g.emit(p, "assistant", object{"message": object{
			"id": id, "model": "claude-opus-4-6", "role": "assistant",
			"content": []any{block}, "usage": report,
		}, "parent_tool_use_id": nil})
	}
	if g.random.Float64() < .55 {
		g.emit(p, "system", object{"subtype": "thinking_tokens", "tokens": g.between(10, 900)})
		say(object{
			"type": "thinking", "thinking": g.text(g.between(80, 1600)),
			"signature": g.base64[:g.between(300, 1400)],
		})
	}
	if g.random.Float64() < .35 {
		say(object{"type": "text", "text": g.text(g.between(30, 900))})
	}
	calls := 1
	if g.random.Float64() >= .9 {
		calls = 2
	}
	for range calls {
		g.call(p, say)
	}
	if s.messages%120 == 0 {
		g.result(p)
	}
}

func (g *generator) call(p string, say func(object)) {
	id, name := g.id("toolu_"), g.names[g.random.IntN(len(g.names))]
	say(object{"type": "tool_use", "id": id, "name": name, "input": g.input(name)})
	size := int(math.Exp(math.Log(200) + g.random.Float64()*(math.Log(50_000)-math.Log(200))))
	failed := g.random.Float64() < .06
	result := object{"type": "tool_result", "tool_use_id": id, "content": g.text(size)}
	if failed {
		result["content"], result["is_error"] = "Error: "+g.text(size), true
	}
	if g.random.Float64() < .03 {
		image := object{
			"type":   "image",
			"source": object{"type": "base64", "media_type": "image/png", "data": g.base64[:size]},
		}
		result["content"] = []any{object{"type": "text", "text": g.text(200)}, image}
	}
	g.emit(p, "user", object{"message": object{"role": "user", "content": []any{result}}, "parent_tool_use_id": nil})
}

func (g *generator) input(name string) object {
	path := fmt.Sprintf("/repo/src/mod%d/file%d.js", g.random.IntN(17), g.random.IntN(240))
	switch name {
	case "Bash":
		return object{"command": commands[g.random.IntN(len(commands))], "description": g.text(30)}
	case "Read":
		return object{"file_path": path}
	case "Edit":
		return object{
			"file_path": path, "old_string": g.text(g.between(40, 600)),
			"new_string": g.text(g.between(40, 800)),
		}
	case "Write":
		return object{"file_path": path, "content": g.text(g.between(200, 6000))}
	case "Grep", "Glob":
		return object{"pattern": words[g.random.IntN(len(words))], "path": "src"}
	case "TodoWrite":
		return object{"todos": []any{object{"content": g.text(40), "status": "pending"}}}
	case "WebFetch":
		return object{"url": "https://example.com/" + g.id(""), "prompt": "summarise"}
	}
	return object{"to": participants[g.random.IntN(len(participants))], "question": g.text(120)}
}

func (g *generator) result(p string) {
	s := g.state[p]
	cost := float64(s.in)*5e-6 + float64(s.out)*25e-6 + float64(s.read)*.5e-6 + float64(s.create)*6.25e-6
	g.emit(p, "result", object{
		"subtype": "success", "is_error": false, "duration_ms": s.turns * 4200, "num_turns": s.turns,
		"result": g.text(300), "total_cost_usd": cost,
		"usage": object{
			"input_tokens": s.in, "output_tokens": s.out, "cache_read_input_tokens": s.read,
			"cache_creation_input_tokens": s.create,
		},
		"modelUsage": object{"claude-opus-4-6": object{
			"inputTokens": s.in, "outputTokens": s.out,
			"cacheReadInputTokens": s.read, "cacheCreationInputTokens": s.create, "costUSD": cost,
		}},
	})
	s.in, s.out, s.read, s.create, s.turns = 0, 0, 0, 0, 0
}

func (g *generator) end() {
	turns := 0
	for _, p := range participants {
		if g.state[p].turns > 0 {
			g.result(p)
		}
		turns += g.state[p].messages
	}
	g.emit("orchestrator", "summary",
		object{"success": true, "verdict": "success", "turns": turns, "summary": g.text(200)})
}
