package agents

import (
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/model/scripted"
	"github.com/fit-eval/fit/internal/model/scripted/scriptedtest"
	"github.com/fit-eval/fit/ledger"
)

// TestAnAgentIsNotBlamedForItsService: a real agent that has begun to work, and whose service then
// fails it or whose process is killed, has not failed the task. Since its own commands could bring
// that about, its run is bounded.
func TestAnAgentIsNotBlamedForItsService(t *testing.T) {
	t.Parallel()
	const working = `{"calls": [{"bash": "echo begun > begun.txt"}]}`
	for name, test := range map[string]struct{ turns, class, settings string }{
		"a stream that falls silent": {
			working + `, {"fault": {"stream": "hang"}, "text": "I am going to write a greeting now."}`,
			ledger.ErrorProvider, "timeouts: {agent: 40s}\n",
		},
		"a reply that ends in its middle, as if that were all": {
			working + `, {"fault": {"stream": "end"}, "text": "I am going to write a greeting now."}`,
			ledger.ErrorProvider, "",
		},
		"a login that expires": {
			working + `, {"fault": {"status": 400, "type": "invalid_request_error",
				"message": "OAuth token has expired."}, "text": "x"}`,
			ledger.ErrorProvider, "",
		},
		"an account whose limit is reached": {
			working + `, {"fault": {"status": 400, "type": "invalid_request_error",
				"message": "You have reached your specified API usage limits."}, "text": "x"}`,
			ledger.ErrorProvider, "",
		},
		"a kill": {`{"calls": [{"bash": "kill -9 $PPID; sleep 60"}]}, {"text": "Done."}`, ledger.ErrorAgentKilled, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newExperiments(t)
			scripts := map[string]string{"": `{"turns": [` + test.turns + `]}`}
			e.url = scriptedtest.ServeAll(t, scripts, scripted.Options{})
			e.write("family/tasks/greet/task.yaml", test.settings)
			args := []string{"--attempts", "1", "--concurrency", "3", "--allow", "same", "--arm", "a=agent:claude-code"}
			if !strings.Contains(name, "kill") { // others start commands from another process
				args = append(args, "--arm", "b=agent:codex", "--arm", "c=agent:pi-agent,model:gpt-5")
			}
			_, records, said := e.run(args...)
			if len(records) == 0 {
				t.Fatalf("no records:\n%s", said)
			}
			for i := range records {
				r := &records[i]
				bounded := r.Unverified == 1 || r.Turns > 0 // a run with turns counts as begun
				if r.Verdict != ledger.Error || r.ErrorClass != test.class || !bounded {
					t.Errorf("arm %s: %s %s, bounded %v: %s", r.Arm, r.Verdict, r.ErrorClass, bounded, r.ErrorMessage)
				}
			}
		})
	}
}
