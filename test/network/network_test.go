package network

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/agent/agenttest"
	"github.com/fit-eval/fit/internal/agent/catalog"
	"github.com/fit-eval/fit/internal/cli"
	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/model/scripted"
	"github.com/fit-eval/fit/internal/model/scripted/scriptedtest"
	"github.com/fit-eval/fit/internal/sandbox"
	"github.com/fit-eval/fit/internal/testenv"
	"github.com/fit-eval/fit/ledger"
)

func TestMain(m *testing.M) {
	os.Exit(m.Run())
}

// word is what the service of the task answers.
const word = "seven three one nine"

// preflight starts the service.
const preflight = `#!/bin/sh
cat >"$TMPDIR/service.py" <<'END'
import socket, sys
s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind(("127.0.0.1", int(sys.argv[1]))); s.listen()
open(sys.argv[2], "w").close()
while True:
    c, _ = s.accept(); c.makefile().readline(); c.sendall(b"` + word + `\n"); c.close()
END
/usr/bin/python3 "$TMPDIR/service.py" "$PORT" "$TMPDIR/up" &
for i in $(seq 2400); do [ -e "$TMPDIR/up" ] && exit 0; sleep 0.05; done
exit 1
`

const hidden = `#!/bin/sh
echo 1..1
if [ "$(cat answer.txt)" = "` + word + `" ]; then echo "ok 1 - asks"; else echo "not ok 1 - asks"; fi
`

// script lets a lead hand the task on, and the agent make its attempts and answer by the tools of
// the team.
const script = `{"scenarios":[
	{"name":"lead","when":{"tool":"orchestration/Conclude"},"turns":[
		{"calls":[{"mcp":"orchestration/Ask","input":{"question":"Ask the service."}}]},{"text":"Waiting."},
		{"calls":[{"mcp":"orchestration/Conclude","input":{"verdict":"success","summary":"It is asked."}}]},{"text":"Over."}]}],
	"turns":[
		{"calls":[{"bash":"/usr/bin/python3 probe.py"}]},
		{"calls":[{"mcp":"orchestration/Answer","input":{"message":"Asked by the tools of the team."}}]},
		{"text":"Done."}]}`

// bench is a family, a model and somebody who runs it.
type bench struct {
	t    *testing.T
	dir  string
	con  *console.Console
	errs bytes.Buffer
	arms []string
}

// agents are all that there are, with the model that they ask for.
var agents = map[string]string{
	"builtin": "claude-sonnet-4-5", "claude-code": "claude-sonnet-4-5", "codex": "gpt-5.5",
	"pi-agent": "claude-sonnet-4-5",
}

func newBench(t *testing.T, o outside, ids ...string) *bench {
	t.Helper()
	testenv.NeedTool(t, "/usr/bin/python3")
	if err := sandbox.PrivateNetworkWorks(t.Context()); err != nil {
		testenv.Missing(t, "private networks do not work here: %v", err)
	}
	bin, err := filepath.Abs("../agents/node_modules/.bin")
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, dir: t.TempDir()}
	environ := []string{
		"PATH=" + agenttest.Path(bin), "HOME=" + t.TempDir(), "LANG=C.UTF-8",
		"ANTHROPIC_API_KEY=" + key, "OPENAI_API_KEY=" + key,
	}
	b.con = &console.Console{
		Stdin: strings.NewReader(""), Stdout: &bytes.Buffer{}, Stderr: &b.errs, Environ: environ, Dir: b.dir,
		Version: "test",
	}
	url := scriptedtest.ServeAll(t, map[string]string{"": script}, scripted.Options{})
	for _, id := range ids {
		played, err := catalog.Default().Get(id)
		if err != nil {
			t.Fatal(err)
		}
		agenttest.Find(t, played, agent.Host{Environ: environ})
		b.arms = append(b.arms, "--arm", fmt.Sprintf(
			"%s=agent:%s,model:%s,lead:builtin,leadModel:claude-sonnet-4-5,modelUrl:%s", id, id, agents[id], url))
	}
	constants := fmt.Sprintf("TCP, UDP, ADDRESS, ABSTRACT = %d, %d, %q, %q\n", o.tcp, o.udp, o.address, o.abstract)
	for name, content := range map[string]string{
		"family.yaml":                      "tests: {language: other, files: [\"*.tap.sh\"], command: [sh, \"{file}\"], parser: tap}\n",
		"tasks/ask/agent.task.md":          "Ask the service and write its answer to answer.txt.\n",
		"tasks/ask/hooks/preflight.sh":     preflight,
		"tasks/ask/tests/behaviour.tap.sh": hidden,
		"tasks/ask/workdir/probe.py":       constants + probe,
	} {
		path := filepath.Join(b.dir, "family", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

// key is what the user's agents call their models with.
const key = "the-key-of-the-user-which-no-agent-may-see"

// run runs a cell of every arm, and returns the records by arm.
func (b *bench) run(network string) map[string]ledger.Record {
	b.t.Helper()
	out := &bytes.Buffer{}
	b.con.Stdout = out
	args := append([]string{
		"fit-benchmark", "run", "--family", "family", "--runs", "1", "--output", network, "--network", network,
		"--no-probe", "--keep-raw", "--concurrency", "4", "--format", "json", "--attempts", "1",
	}, b.arms...)
	if code := cli.Run(b.t.Context(), args, b.con); code != 0 {
		b.t.Fatalf("exit code %d\n%s\n%s", code, b.errs.String(), out.String())
	}
	records := map[string]ledger.Record{}
	for line := range bytes.Lines(out.Bytes()) {
		var r ledger.Record
		if err := json.Unmarshal(line, &r); err != nil {
			b.t.Fatal(err)
		}
		records[r.Arm] = r
	}
	return records
}

// read returns an artefact of a cell.
func (b *bench) read(t *testing.T, r ledger.Record, name string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(b.dir, r.Network, r.RunDir, name))
	if err != nil {
		t.Fatalf("%v\n%s", err, b.errs.String())
	}
	return string(content)
}

// reached is what the attempts of a cell came to.
func (b *bench) reached(t *testing.T, r ledger.Record) map[string]string {
	t.Helper()
	attempts := map[string]string{}
	for line := range strings.Lines(b.read(t, r, "cwd/reached.txt")) {
		name, result, _ := strings.Cut(strings.TrimSpace(line), ":")
		attempts[name] = strings.TrimSpace(result)
	}
	return attempts
}

// Every agent solves its task by its service, answers by the tools of its team, and reaches nothing
// else.
func TestAModelOnlyCellReachesNothingElse(t *testing.T) {
	ids := slices.Sorted(maps.Keys(agents))
	if can := os.Getenv(agentsVariable); can != "" {
		ids = strings.Fields(can)
	}
	b := newBench(t, openOutside(t), ids...)
	look := watchProcesses()
	records := b.run(sandbox.NetworkModel)
	if holders, looked := look(); len(holders) > 0 || looked == 0 {
		t.Errorf("of %d processes, these have the key: %q", looked, holders)
	}
	noFileHolds(t, b.dir, key)
	if strings.Contains(b.errs.String(), key) {
		t.Error("the progress shows the key")
	}
	for _, id := range ids {
		t.Run(id, func(t *testing.T) {
			r := records[id]
			if r.Verdict != ledger.Pass || r.Network != sandbox.NetworkModel || r.AgentNetwork ||
				r.Outcome != "success" || r.ServiceNetwork != "private" {
				t.Errorf("%s, network %q, host's %v, services %q, the session ended with %s: %s %+v", r.Verdict, r.Network,
					r.AgentNetwork, r.ServiceNetwork, r.Outcome, r.ErrorMessage, r.AgentError)
			}
			trace := b.read(t, r, "agent.ndjson")
			if first, _, _ := strings.Cut(trace, "\n"); !strings.Contains(first, `"network":"model"`) {
				t.Errorf("the trace begins with %s", first)
			}
			if !strings.Contains(trace, `"kind":"answer","from":"agent","to":"supervisor"`) {
				t.Error("the agent did not answer by the tools of its team")
			}
			attempts := b.reached(t, r)
			for name, result := range attempts {
				if name != "listening" && result != "closed" {
					t.Errorf("%s is %s", name, result)
				}
			}
			if ports := strings.Fields(attempts["listening"]); len(ports) != 1 {
				t.Errorf("beside the service, these ports answer: %v; want the gateway's", ports)
			}
		})
	}
}

// With the machine's network, the same attempts succeed.
func TestTheAttemptsSucceedWithTheNetworkOfTheMachine(t *testing.T) {
	b := newBench(t, openOutside(t), "builtin")
	r := b.run(sandbox.NetworkHost)["builtin"]
	if r.Verdict != ledger.Pass || r.Network != sandbox.NetworkHost || !r.AgentNetwork {
		t.Errorf("%s, network %q: %s", r.Verdict, r.Network, r.ErrorMessage)
	}
	for name, result := range b.reached(t, r) {
		switch name {
		case "listening", "the forwarder": // which isolation hides by itself
		case "a route": // a machine may have none
		default:
			if result != "open" {
				t.Errorf("%s is %s: the attempt proves nothing", name, result)
			}
		}
	}
}
