package fit_test

import (
	"bytes"
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/fit-eval/fit"
	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/model/scripted"
	"github.com/fit-eval/fit/trace"
)

// serveScript answers for the language model in these examples, so that they need no key and no
// network. A program that uses a real model has its key in the environment and no ModelURL.
func serveScript(script string) (url string, stop func()) {
	parsed, err := scripted.Parse([]byte(script))
	if err != nil {
		log.Fatal(err)
	}
	server, err := scripted.Listen("127.0.0.1:0",
		scripted.NewServer(map[string]*scripted.Script{"": parsed}, scripted.Options{}))
	if err != nil {
		log.Fatal(err)
	}
	return server.URL, func() { _ = server.Close() }
}

// options are those of a session whose agents are fit's own and whose model is scripted.
func options(url string) fit.Options {
	return fit.Options{DefaultAgent: "builtin", Base: agent.Config{Model: "scripted", ModelURL: url}}
}

// workspace is a directory with profiles.
func workspace(profiles ...string) (dir string, remove func()) {
	dir, err := os.MkdirTemp("", "fit-example-")
	if err != nil {
		log.Fatal(err)
	}
	agents := filepath.Join(dir, ".claude", "agents")
	if err := os.MkdirAll(agents, 0o755); err != nil {
		log.Fatal(err)
	}
	for _, name := range profiles {
		if err := os.WriteFile(filepath.Join(agents, name+".md"), []byte("You are "+name+".\n"), 0o644); err != nil {
			log.Fatal(err)
		}
	}
	return dir, func() { _ = os.RemoveAll(dir) }
}

// meeting is a facilitator who asks, and two participants who answer.
const meeting = `{"scenarios": [
  {"name": "facilitator", "when": {"tool": "orchestration/Conclude"}, "turns": [
    {"calls": [{"mcp": "orchestration/Ask", "input": {"question": "What is your current condition?"}}]},
    {"text": "I wait."},
    {"label": "collect", "cases": [
      {"when": {"all": [{"any_prompt": "[answer#1]"}, {"any_prompt": "[answer#2]"}]}, "goto": "decide"}],
     "text": "Not everybody has answered."},
    {"goto": "collect"},
    {"label": "decide", "calls": [{"mcp": "orchestration/Conclude",
      "input": {"verdict": "success", "summary": "Everybody reported."}}]},
    {"text": "Done."}]},
  {"name": "participant", "turns": [
    {"calls": [{"mcp": "orchestration/Answer", "input": {"message": "Seven out of ten."}}]},
    {"text": "Answered."}]}]}`

// One agent, one task, and a trace of everything it did.
func ExampleRun() {
	url, stop := serveScript(`{"turns": [{"calls": [{"bash": "echo hello > greeting.txt"}]}, {"text": "Written."}]}`)
	defer stop()
	dir, remove := workspace()
	defer remove()

	var output bytes.Buffer
	result, err := fit.Run(context.Background(), fit.RunConfig{
		Task:     "Write a greeting.",
		Cwd:      dir,
		Agent:    "builtin",
		Model:    "scripted",
		ModelURL: url,
		Output:   &output,
	})
	if err != nil {
		log.Fatal(err)
	}
	greeting, _ := os.ReadFile(filepath.Join(dir, "greeting.txt"))
	fmt.Printf("%s: %s %s", result.Reason, result.Text, greeting)
	first, _ := trace.NewReader(&output).Next()
	fmt.Printf("%s\n", first.Raw[:32])
	// Output:
	// success: Written. hello
	// {"source":"orchestrator","seq":0
}

// Two participants, defined by profiles, and a facilitator who leads them.
func ExampleNewFacilitator() {
	url, stop := serveScript(meeting)
	defer stop()
	dir, remove := workspace("alice", "bob", "improvement-coach")
	defer remove()

	facilitator, err := fit.NewFacilitator(fit.FacilitatorConfig{
		FacilitatorCwd: dir,
		AgentConfigs: []fit.AgentConfig{
			{Name: "alice", Role: "explorer", AgentProfile: "alice"},
			{Name: "bob", Role: "tester", AgentProfile: "bob"},
		},
		FacilitatorProfile: "improvement-coach",
		Output:             &bytes.Buffer{}, // os.Stdout, or a file
		Options:            options(url),
	})
	if err != nil {
		log.Fatal(err)
	}
	result, err := facilitator.Run(context.Background(), "Run a kata storyboard meeting.")
	fmt.Println(result.Success, result.Verdict, result.Summary, err)
	// Output: true success Everybody reported. <nil>
}

// A supervisor hands out the work, and concludes when it has seen the answer.
func ExampleSupervise() {
	url, stop := serveScript(`{"scenarios": [
	  {"name": "supervisor", "when": {"tool": "orchestration/Conclude"}, "turns": [
	    {"calls": [{"mcp": "orchestration/Ask", "input": {"question": "Fix Add."}}]},
	    {"text": "I wait."},
	    {"calls": [{"mcp": "orchestration/Conclude", "input": {"verdict": "success", "summary": "Add adds."}}]},
	    {"text": "Done."}]},
	  {"name": "agent", "turns": [
	    {"calls": [{"mcp": "orchestration/Answer", "input": {"message": "Fixed."}}]},
	    {"text": "Answered."}]}]}`)
	defer stop()
	dir, remove := workspace()
	defer remove()

	result, err := fit.Supervise(context.Background(), fit.SupervisorConfig{
		SupervisorCwd: dir,
		AgentCwd:      dir,
		Output:        &bytes.Buffer{},
		Options:       options(url),
	}, "Have Add fixed.")
	fmt.Println(result.Verdict, result.Summary, err)
	// Output: success Add adds. <nil>
}

// The lead of a discussion asks, and adjourns.
func ExampleDiscuss() {
	url, stop := serveScript(`{"scenarios": [
	  {"name": "lead", "when": {"tool": "orchestration/Adjourn"}, "turns": [
	    {"calls": [{"mcp": "orchestration/Ask", "input": {"question": "Keep it?", "to": "alice"}}]},
	    {"text": "I wait."},
	    {"calls": [{"mcp": "orchestration/Adjourn", "input": {"verdict": "adjourned", "summary": "We keep it."}}]},
	    {"text": "Done."}]},
	  {"name": "alice", "turns": [
	    {"calls": [{"mcp": "orchestration/Answer", "input": {"message": "I would keep it."}}]},
	    {"text": "Answered."}]}]}`)
	defer stop()
	dir, remove := workspace()
	defer remove()

	result, err := fit.Discuss(context.Background(), fit.DiscusserConfig{
		LeadCwd:      dir,
		AgentConfigs: []fit.AgentConfig{{Name: "alice"}},
		Output:       &bytes.Buffer{},
		Options:      options(url),
	}, "Shall we keep the old format?")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result.Verdict, result.Replies[0].Agent, result.Replies[0].Body)
	// Output: adjourned alice I would keep it.
}

// A judge looks at a copy of finished work and gives one verdict.
func ExampleJudge() {
	url, stop := serveScript(`{"turns": [
	  {"calls": [{"glob": "**/*_test.go"}]},
	  {"calls": [{"mcp": "orchestration/Conclude", "input": {"verdict": "failure", "summary": "There is no test."}}]},
	  {"text": "Done."}]}`)
	defer stop()
	work, remove := workspace()
	defer remove()

	result, err := fit.Judge(context.Background(), fit.JudgeConfig{
		JudgeCwd: work,
		Output:   &bytes.Buffer{},
		Options:  options(url),
	}, "Is there a test for Add?")
	fmt.Println(result.Success, result.Verdict, result.Summary, err)
	// Output: false failure There is no test. <nil>
}
