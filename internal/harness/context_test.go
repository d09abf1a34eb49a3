package harness_test

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/harness"
	"github.com/fit-eval/fit/internal/harness/harnesstest"
	"github.com/fit-eval/fit/trace"
)

// contexts are those of the members of a session, by name.
func contexts(members []harness.AgentConfig) map[string]string {
	all := map[string]string{}
	for _, m := range members {
		all[m.Name] = m.Context
	}
	return all
}

func TestParticipantsReadTheirProjectsAndALeadDoesNotReadTheWork(t *testing.T) {
	const project, none = agent.ContextProject, agent.ContextNone
	base := t.TempDir()
	for _, dir := range []string{"work/sub", "office"} {
		if err := os.MkdirAll(filepath.Join(base, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("work", filepath.Join(base, "link")); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		lead, work       string
		asked, member    string
		wantLead, wantBy string
	}{
		"apart":           {lead: "office", work: "work", wantLead: project, wantBy: project},
		"the same":        {lead: "work", work: "work", wantLead: none, wantBy: project},
		"through a link":  {lead: "link", work: "work", wantLead: none, wantBy: project},
		"below the work":  {lead: "work/sub", work: "work", wantLead: none, wantBy: project},
		"above the work":  {lead: ".", work: "work", wantLead: none, wantBy: project},
		"nobody":          {lead: "office", work: "work", asked: none, wantLead: none, wantBy: none},
		"only the lead":   {lead: "office", work: "work", member: none, wantLead: project, wantBy: none},
		"asked, but work": {lead: "work", work: "work", asked: project, wantLead: none, wantBy: project},
	} {
		t.Run(name, func(t *testing.T) {
			f, err := harness.NewFacilitator(harness.FacilitatorConfig{
				FacilitatorCwd: filepath.Join(base, test.lead),
				AgentConfigs: []harness.AgentConfig{
					{Name: "bob", Cwd: filepath.Join(base, test.work), Context: test.member},
				},
				NewAgent: cast{}.query,
				Output:   &buffer{},
				Options:  harness.Options{Base: agent.Config{Context: test.asked}},
			})
			if err != nil {
				t.Fatal(err)
			}
			want := map[string]string{"facilitator": test.wantLead, "bob": test.wantBy}
			if diff := cmp.Diff(want, contexts(f.Members())); diff != "" {
				t.Error(diff)
			}
		})
	}
	judge, err := harness.NewJudge(harness.JudgeConfig{
		JudgeCwd: base,
		Judge:    harness.AgentConfig{Cwd: t.TempDir(), Context: project},
		NewAgent: cast{}.query,
		Output:   &buffer{},
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"judge": none}, contexts(judge.Members())); diff != "" {
		t.Error(diff)
	}
}

// starts is an agent that notes what it was told to read.
type starts struct {
	agent.Agent
	name string
	lock *sync.Mutex
	seen map[string]string
}

func (s starts) Start(ctx context.Context, cfg agent.Config) (agent.Session, error) {
	s.lock.Lock()
	s.seen[s.name] = cfg.Context
	s.lock.Unlock()
	return s.Agent.Start(ctx, cfg)
}

func TestAResumedSessionReadsWhatItReadBefore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "trace.ndjson")
	writer, err := trace.Open(path, trace.Config{})
	if err != nil {
		t.Fatal(err)
	}
	var lock sync.Mutex
	seen := map[string]string{}
	players := cast{"facilitator": askEverybodyThenConclude, "alice": answerAll("x"), "bob": answerAll("x")}
	query := func(c harness.AgentConfig) (agent.Agent, error) {
		played, err := players.query(c)
		return starts{played, c.Name, &lock, seen}, err
	}
	ctx, cancel := context.WithCancel(t.Context())
	players["facilitator"] = func(turn context.Context, _ *harnesstest.Turn) (string, error) {
		cancel()
		<-turn.Done()
		return "", turn.Err()
	}
	f, err := harness.NewFacilitator(harness.FacilitatorConfig{
		FacilitatorCwd: t.TempDir(),
		AgentConfigs: []harness.AgentConfig{
			{Name: "alice", Cwd: t.TempDir()},
			{Name: "bob", Cwd: t.TempDir(), Context: agent.ContextNone},
		},
		NewAgent: query,
		Options:  harness.Options{Trace: writer, HomeDir: t.TempDir()},
	})
	if err != nil {
		t.Fatal(err)
	}
	if result, err := f.Run(ctx, "go"); result.Reason != harness.ReasonInterrupted {
		t.Fatalf("%+v, %v", result, err)
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	players["facilitator"] = askEverybodyThenConclude
	earlier := olderTrace(t, path)
	if result, err := harness.Resume(t.Context(), path, harness.ResumeConfig{NewAgent: query}); err != nil ||
		!result.Success {
		t.Fatalf("%+v, %v", result, err)
	}
	want := map[string]string{"facilitator": "project", "alice": "project", "bob": "none"}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Error(diff)
	}
	past, err := harness.Inspect(earlier)
	if err != nil {
		t.Fatal(err)
	}
	want = map[string]string{"facilitator": "none", "alice": "none", "bob": "none"}
	if diff := cmp.Diff(want, contexts(past.Members)); diff != "" {
		t.Error("a session of an earlier version: " + diff)
	}
}

// olderTrace is a copy of a trace as fit wrote it before agents read their projects.
func olderTrace(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	older := regexp.MustCompile(`,"context":"\w+"`).ReplaceAll(data, nil)
	if len(older) == len(data) {
		t.Fatal("the trace does not say what its members read")
	}
	copied := filepath.Join(t.TempDir(), "trace.ndjson")
	if err := os.WriteFile(copied, older, 0o600); err != nil {
		t.Fatal(err)
	}
	return copied
}
