package containers

import (
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/agent/agenttest"
	"github.com/fit-eval/fit/internal/agent/catalog"
	"github.com/fit-eval/fit/internal/containertest"
	"github.com/fit-eval/fit/internal/model/scripted"
	"github.com/fit-eval/fit/internal/model/scripted/scriptedtest"
	"github.com/fit-eval/fit/internal/sandbox"
	"github.com/fit-eval/fit/ledger"
)

// service answers with a word on the port of the attempt.
const service = `#!/bin/sh
cat > "$TMPDIR/service.py" <<'END'
import socket, sys
s = socket.socket(); s.bind(("127.0.0.1", int(sys.argv[1]))); s.listen()
open(sys.argv[2], "w").close()
while True:
    c, _ = s.accept(); c.makefile().readline(); c.sendall(b"seven\n"); c.close()
END
python3 "$TMPDIR/service.py" "$PORT" "$TMPDIR/up" > /dev/null 2>&1 &
until [ -e "$TMPDIR/up" ]; do sleep 0.05; done
`

// askService writes down what the service answers, by the shell alone, and what networks are there.
const askService = `bash -c 'exec 3<>/dev/tcp/127.0.0.1/$PORT && echo hello >&3 && head -n 1 <&3 > answer.txt; ` +
	`cut -d: -f1 /proc/net/dev | tail -n +3 | tr -d [:blank:] > networks.txt; echo $IN_IMAGE > from.txt'`

// handedOn lets a lead hand the task on, and the agent answer it by the tools of the team.
const handedOn = `{"scenarios":[{"name":"lead","when":{"tool":"orchestration/Conclude"},"turns":[
	{"calls":[{"mcp":"orchestration/Ask","input":{"question":"Ask the service."}}]},{"text":"Waiting."},
	{"calls":[{"mcp":"orchestration/Conclude","input":{"verdict":"success","summary":"It is asked."}}]},{"text":"Over."}]}],
	"turns":[{"calls":[{"bash":"` + askService + `"}]},
	{"calls":[{"mcp":"orchestration/Answer","input":{"message":"Asked."}}]},{"text":"Done."}]}`

// An agent solves a task in a container without network: it has its model, the tools of its team
// with a lead, and the service of the task on the container's own loopback, and a suite of the
// image's pytest and a hook, which asks the service too, grade it. Every agent does so in "make
// soak". In "make test" all of them solve a Harbor task, with the tools of a server that they reach
// in the same way.
func TestAgentsOfATeamSolveATaskInAContainerWithoutNetwork(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.url = scriptedtest.ServeAll(t, map[string]string{"": handedOn}, scripted.Options{})
	b.put("family.yaml", "image: "+containertest.Python(t)+"\ntests: {language: python, runner: pytest}\n")
	b.put("tasks/answer/hooks/preflight.sh", service)
	b.put("tasks/answer/hooks/invariants.sh", `#!/bin/bash
exec 4<>/dev/tcp/127.0.0.1/$PORT && echo hello >&4 && [ "$(head -n 1 <&4) $(cat networks.txt)" = "seven lo" ] && p=true
echo "{\"test\":\"service\",\"pass\":${p:-false}}" >&3
`)
	b.put("tasks/answer/tests/answer_test.py", `def test_answer():
    assert open("answer.txt").read() == "seven\n" and open("from.txt").read() == "yes\n"
`)
	args := b.arguments("--runs", "1", "--attempts", "1", "--concurrency", "4")
	ids := []string{"builtin", "codex"}
	if os.Getenv("FIT_SOAK") != "" {
		ids = slices.Sorted(maps.Keys(agents))
	}
	for _, id := range ids {
		played, err := catalog.Default().Get(id)
		if err != nil {
			t.Fatal(err)
		}
		agenttest.Find(t, played, agent.Host{Environ: b.environ})
		args = append(args, "--arm", fmt.Sprintf("%s=agent:%[1]s,model:%s,lead:builtin,leadModel:%s,modelUrl:%s",
			id, agents[id], agents["builtin"], b.url))
	}
	records := b.run(args)
	for _, id := range ids {
		r := records[id]
		if r.Verdict != ledger.Pass || r.Network != sandbox.NetworkModel || r.AgentNetwork || r.Container == nil ||
			r.Container.Engine != sandbox.IsolationPodman || r.Container.ID == "" || r.HiddenTests == nil {
			t.Errorf("%s: %s, network %q, container %+v, %s: %s %+v %+v %+v", id, r.Verdict, r.Network, r.Container,
				r.ErrorClass, r.ErrorMessage, r.AgentError, r.Invariants, r.HiddenTests)
		}
	}
}

// What an agent reaches is the same as with bubblewrap: with host all that the machine reaches,
// with model and none nothing of it, not even its loopback.
func TestKindsOfNetworkInContainers(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	b := newBench(t)
	b.url = scriptedtest.ServeAll(t, map[string]string{"": fmt.Sprintf(
		`{"turns":[{"calls":[{"bash":"(exec 3<>/dev/tcp/127.0.0.1/%d) 2> said.txt && echo reached > answer.txt"}]},{"text":"Done."}]}`,
		listener.Addr().(*net.TCPAddr).Port)}, scripted.Options{})
	kinds := map[string]string{sandbox.NetworkHost: "reached", sandbox.NetworkModel: "", sandbox.NetworkNone: ""}
	for kind, want := range kinds {
		b.put("tasks/"+kind+"/agent.task.md", "Write the answer to answer.txt.\n")
		b.put("tasks/"+kind+"/task.yaml", "network: {agent: "+kind+"}\n")
		b.put("tasks/"+kind+"/hooks/invariants.sh", fmt.Sprintf(`#!/bin/sh
[ -e said.txt ] && [ "$(cat answer.txt 2>&-)" = "%s" ] && p=true
echo "{\"test\":\"reach\",\"pass\":${p:-false}}" >&3
`, want))
	}
	code, out, errs := b.command(append([]string{
		"run", "--family", "family", "--output", "out", "--no-probe", "--format", "json", "--runs", "1",
		"--attempts", "1", "--concurrency", "3", "--task", "host", "--task", "model", "--task", "none",
	}, b.arm("builtin")...)...)
	for line := range strings.Lines(out) {
		var r ledger.Record
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		if r.Verdict != ledger.Pass || r.Network != r.TaskID || r.AgentNetwork != (r.TaskID == sandbox.NetworkHost) {
			t.Errorf("%s: %s, network %s, %s %+v", r.TaskID, r.Verdict, r.Network, r.ErrorMessage, r.Invariants)
		}
		delete(kinds, r.TaskID)
	}
	if code != 0 || len(kinds) > 0 {
		t.Errorf("exit code %d, without a record: %v\n%s", code, kinds, errs)
	}
}
