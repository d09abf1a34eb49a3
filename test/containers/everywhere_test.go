package containers

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fit-eval/fit/internal/containertest"
	"github.com/fit-eval/fit/internal/sandbox"
	"github.com/fit-eval/fit/internal/testenv"
	"github.com/fit-eval/fit/ledger"
)

// harborOnly makes the family of a bench a Harbor set with one task that its script solves.
func (b *bench) harborOnly() {
	b.t.Helper()
	if err := os.RemoveAll(filepath.Join(b.dir, "family", "tasks")); err != nil {
		b.t.Fatal(err)
	}
	b.put("family.yaml", "images: {\"debian:bookworm-slim\": "+containertest.Image(b.t)+"}\n")
	b.put("answer/task.toml", "[agent]\nuser = \"agent\"\n[environment]\ndocker_image = \"debian:bookworm-slim\"\n"+
		"network_mode = \"no-network\"\n")
	b.put("answer/instruction.md", "Write the answer to answer.txt.\n")
	b.put("answer/environment/.keep", "")
	b.put("answer/tests/test.sh", `#!/bin/bash
[ "$(cat answer.txt)" = 42 ] && [ "$(cat networks.txt)" = lo ] && [ "$(cat from.txt) $(cat home.txt)" = "yes /home/agent" ] && reward=1
echo ${reward:-0} > /logs/verifier/reward.txt
`)
}

// serveDocker starts podman's imitation of docker's server, for the command line of docker.
func serveDocker(t *testing.T) {
	t.Helper()
	testenv.NeedTool(t, "docker")
	socket := filepath.Join(t.TempDir(), "docker.sock")
	service := exec.Command("podman", "system", "service", "--time", "0", "unix://"+socket)
	if err := service.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = service.Process.Kill()
		_ = service.Wait()
	})
	answers := func() bool {
		connection, err := net.Dial("unix", socket)
		return err == nil && connection.Close() == nil
	}
	again, late := time.NewTicker(20*time.Millisecond), time.After(10*time.Minute)
	defer again.Stop()
	for !answers() {
		select {
		case <-again.C:
		case <-late:
			t.Fatal("podman does not serve docker's protocol after ten minutes")
		}
	}
	t.Setenv("DOCKER_HOST", "unix://"+socket)
}

// The command line of docker talks to podman's imitation of its server. It has no containers over
// others, and the record of a Harbor task says so, unless its verifier has a container of its own.
func TestTheCommandLineOfDocker(t *testing.T) {
	b := newBench(t)
	serveDocker(t)
	args := append(b.arguments("--runs", "1", "--attempts", "1", "--sandbox", "docker"), b.arm("builtin")...)
	r := b.run(args)["builtin"]
	if r.Verdict != ledger.Pass || r.Container == nil || r.Container.Engine != sandbox.IsolationDocker {
		t.Errorf("%s: %s %+v", r.Verdict, r.ErrorMessage, r.Container)
	}
	b.harborOnly()
	b.put("apart/task.toml", "artifacts = [\"/app/answer.txt\"]\n[verifier]\nenvironment_mode = \"separate\"\n"+
		"[environment]\ndocker_image = \"debian:bookworm-slim\"\nnetwork_mode = \"no-network\"\n")
	b.put("apart/instruction.md", "Write the answer to answer.txt.\n")
	b.put("apart/environment/.keep", "")
	b.put("apart/tests/Dockerfile", "FROM debian:bookworm-slim\nCOPY test.sh /tests/test.sh\n")
	b.put("apart/tests/test.sh", `#!/bin/bash
[ "$(cat answer.txt)" = 42 ] && [ ! -e networks.txt ] && reward=1
echo ${reward:-0} > /logs/verifier/reward.txt
`)
	b.run(append(args, "--output", "harbor"))
	contents, err := ledger.ReadFile(filepath.Join(b.dir, "harbor", "results.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	notes := map[string]string{
		"answer": "the verifier ran in the agent's container: docker has none that lies over another", "apart": "",
	}
	for _, r := range contents.Records {
		if want, ok := notes[r.TaskID]; !ok || r.Verdict != ledger.Pass || strings.Join(r.Notes, "\n") != want {
			t.Errorf("Harbor task %s: %s: %s %+v", r.TaskID, r.Verdict, r.ErrorMessage, r.Notes)
		}
		delete(notes, r.TaskID)
	}
	if len(notes) > 0 {
		t.Errorf("without a record: %v", notes)
	}
	if left := containersOf(t); left != "" {
		t.Errorf("left: %s", left)
	}
}

// A fit that is killed while its verifier runs, in a container over the agent's, leaves nothing,
// and the same command again gives the verdict of a verifier that ran to its end.
func TestAKillWhileTheVerifierRuns(t *testing.T) {
	b := newBench(t)
	b.harborOnly()
	program := fmt.Sprintf("sleep 6543210.%d", os.Getpid())
	b.put("answer/tests/test.sh", "#!/bin/bash\n"+program+"\n[ \"$(cat answer.txt)\" = 42 ] && echo 1 > /logs/verifier/reward.txt\n")
	args := append(b.arguments("--runs", "1"), b.arm("builtin")...)
	var pid int
	verifies := func() bool {
		out, err := exec.Command("pgrep", "-f", "^"+program).Output()
		pid, _ = strconv.Atoi(strings.TrimSpace(string(out)))
		return err == nil
	}
	cmd := b.start(args)
	b.await("the verifier", verifies)
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	b.await("the end of the verifier", func() bool { return !verifies() })
	again := b.start(args)
	b.await("the verifier", verifies)
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil { // it need not wait any longer
		t.Fatal(err)
	}
	if err := again.Wait(); err != nil {
		t.Fatal(err)
	}
	contents, err := ledger.ReadFile(filepath.Join(b.dir, "out", "results.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	if last := contents.Records[len(contents.Records)-1]; last.Verdict != ledger.Pass || last.Attempt != 2 {
		t.Errorf("attempt %d: %s, %s", last.Attempt, last.Verdict, last.ErrorMessage)
	}
	if left := containersOf(t); left != "" {
		t.Errorf("left: %s", left)
	}
}
