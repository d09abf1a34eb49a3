package treatment

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/fit-eval/fit/agent"
	"github.com/fit-eval/fit/gateway/calls"
)

func TestDev(t *testing.T) {
	for name, places := range map[string]agent.Places{
		"claude":  {Instructions: []string{"CLAUDE.md"}, Imports: true, Skills: []string{".claude/skills"}, Agents: []string{".claude/agents"}, Commands: []string{".claude/commands"}},
		"log2":  {Instructions: []string{"CLAUDE.md"}, Imports: true, Skills: []string{".claude/skills"}, Agents: []string{".claude/agents"}, Commands: []string{".claude/commands"}},
		"codex":   {Instructions: []string{"AGENTS.override.md", "AGENTS.md"}, OneOf: true, Skills: []string{".agents/skills"}},
		"opencode":   {Instructions: []string{"AGENTS.md"}, OneOf: true, Skills: []string{".agents/skills", ".claude/skills"}},
		"qwen-code":   {Instructions: []string{"AGENTS.md", "QWEN.md"}, Skills: []string{".agents/skills"}},
		"gemini":   {Instructions: []string{"GEMINI.md"}, Skills: []string{".agents/skills"}},
		"cline":   {Instructions: []string{"AGENTS.md"}, Skills: []string{".agents/skills"}},
		"copilot":   {Instructions: []string{"AGENTS.md", "CLAUDE.md", "GEMINI.md"}, Imports: true, Skills: []string{".agents/skills"}, Agents: []string{".claude/agents"}, Commands: []string{".claude/commands"}},
	} {
		path := t.TempDir() + "/x.calls"
		w, err := calls.Create(path, calls.Config{})
		if err != nil {
			t.Fatal(err)
		}
		f, err := os.Open("/tmp/proof-rec/" + name + ".jsonl")
		if err != nil {
			t.Fatal(err)
		}
		s := bufio.NewScanner(f)
		s.Buffer(nil, 1<<24)
		for s.Scan() {
			var row struct {
				Protocol, Path, Model string
				Body                  json.RawMessage
			}
			if err := json.Unmarshal(s.Bytes(), &row); err != nil {
				t.Fatal(err)
			}
			if row.Body == nil {
				continue
			}
			if err := w.Append(calls.Call{Protocol: row.Protocol, Path: row.Path, Model: row.Model, Outcome: calls.OK}, row.Body, []byte(`{"model":"served"}`)); err != nil {
				t.Fatal(err)
			}
		}
		w.Close()
		pieces, err := Find("/tmp/proof-rec/w", places)
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		got, err := Read(Config{Calls: path, Pieces: pieces})
		if err != nil {
			t.Fatal(err)
		}
		fmt.Println("=====", name, time.Since(start), got.SystemTokens, got.VendorTokens, got.Tools, got.ToolTokens, got.Served, got.Unknown)
		count := map[string]int{}
		for _, p := range got.Pieces {
			if p.Kind == "skill" {
				key := fmt.Sprint("skill ", p.Given, " ", p.Share, p.Where)
				if p.Opened != nil && *p.Opened {
					key = p.Name + key + " opened"
				}
				count[key]++
				continue
			}
			o := "-"
			if p.Opened != nil {
				o = fmt.Sprint(*p.Opened)
			}
			fmt.Println(p.Kind, p.Name, p.Given, p.Share, p.Where, p.Tokens, o, p.Why)
		}
		fmt.Println(count)
	}
}
