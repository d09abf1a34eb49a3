package session_test

import (
	"fmt"
	"strings"

	"github.com/fit-eval/fit/session"
)

const stream = `{"type":"system","subtype":"init","session_id":"s1","model":"claude-sonnet-4-5","cwd":"/work"}
{"type":"assistant","session_id":"s1","message":{"id":"m1","role":"assistant","model":"claude-sonnet-4-5","content":[{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"cat main.go"}}]}}
{"type":"user","session_id":"s1","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"package main"}]}}
{"type":"assistant","session_id":"s1","message":{"id":"m2","role":"assistant","model":"claude-sonnet-4-5","content":[{"type":"text","text":"It is empty."}]}}
{"type":"result","subtype":"success","is_error":false,"session_id":"s1","result":"It is empty.","total_cost_usd":0.012,"usage":{"input_tokens":2000,"output_tokens":40}}
`

// A stream, a trace or a file that an agent left on disk becomes one session per agent in it.
func ExampleRead() {
	dialects := session.Dialects{session.StreamDialect("claude-code")}
	sessions, err := session.Read(strings.NewReader(stream), dialects, session.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	s := sessions[0]
	fmt.Println(s.Agent, s.Outcome, "after", s.Turns, "turns")
	fmt.Printf("%d tokens, $%.3f %s\n", s.Usage.TotalTokens, *s.Usage.CostUSD, s.Usage.CostSource)
	for _, event := range s.Events {
		if event.Tool != nil {
			fmt.Println(event.Tool.NativeName, "was a", event.Tool.Effective())
		}
	}
	// Output:
	// claude-code success after 2 turns
	// 2040 tokens, $0.012 reported
	// Bash was a read
}

// A Fold follows an agent while it works. It is the one place where turns, tokens and cost are
// counted.
func ExampleFold() {
	decoder := session.StreamDialect("claude-code").New()
	fold := session.NewFold(session.Options{Flat: true})
	for i, line := range strings.Split(strings.TrimSpace(stream), "\n") {
		decoder.Decode([]byte(line), session.Stamp{Line: int64(i + 1)}, fold)
		fmt.Println(fold.Turns(), fold.TotalUsage().TotalTokens)
	}
	// Output:
	// 0 0
	// 1 0
	// 1 0
	// 2 0
	// 2 2040
}

// Show prints a session for people.
func ExampleShow() {
	sessions, err := session.Read(strings.NewReader(stream), session.Dialects{session.StreamDialect("claude-code")},
		session.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	var page strings.Builder
	if err := session.Show(&page, sessions[0]); err != nil {
		fmt.Println(err)
		return
	}
	first, _, _ := strings.Cut(page.String(), "\n")
	fmt.Println(strings.Join(strings.Fields(first), " "))
	// Output:
	// session s1
}
