package deploy

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fit-eval/fit/internal/containertest"
	"github.com/fit-eval/fit/internal/testenv"
)

// TestComposeRuns starts the compose file with podman, on an image of this machine's programs: a
// worker joins the hub and answers a dataset. Run it with make soak.
func TestComposeRuns(t *testing.T) {
	testenv.Soak(t) // it builds an image of fit and starts containers
	compose, podman := testenv.NeedTool(t, "podman-compose"), testenv.NeedTool(t, "podman")
	t.Cleanup(containertest.Remove)
	dir := t.TempDir()
	project := fmt.Sprintf("fitdeploy%d", os.Getpid())
	// Engines ask for higher limits than everybody may have.
	limits := filepath.Join(dir, "containers.conf")
	content := "[containers]\ndefault_ulimits=[\"nofile=4096:4096\",\"nproc=4096:4096\"]\n"
	if err := os.WriteFile(limits, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	environ := append(os.Environ(), "CONTAINERS_CONF="+limits)
	do := func(program string, args ...string) (string, error) {
		cmd := exec.Command(program, args...)
		cmd.Env = environ
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	must := func(program string, args ...string) string {
		t.Helper()
		out, err := do(program, args...)
		if err != nil {
			t.Fatalf("%s %s: %v\n%s", program, strings.Join(args, " "), err, out)
		}
		return out
	}
	image := "FROM " + containertest.Image(t) + "\nCOPY fit /bin/fit\nCOPY --chown=10001 data /data\n" +
		"USER 10001\nWORKDIR /data\nENTRYPOINT [\"fit\"]\n"
	build := exec.Command("go", "build", "-o", filepath.Join(dir, "fit"), "../cmd/fit")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if err := os.Mkdir(filepath.Join(dir, "data"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "Dockerfile"), []byte(image), 0o600); err != nil {
		t.Fatal(err)
	}
	must(podman, "build", "--network", "none", "-t", "localhost/fit:local", dir)
	hub, worker := project+"_hub_1", project+"_worker_1"
	t.Cleanup(func() {
		_, _ = do(podman, "rm", "--force", "--time", "0", worker, hub)
		_, _ = do(podman, "volume", "rm", project+"_data")
		_, _ = do(podman, "network", "rm", project+"_default")
		_, _ = do(podman, "rmi", "--force", "localhost/fit:local")
	})
	up := func(service string) {
		must(compose, "-p", project, "-f", "compose.yaml", "up", "-d", "--no-build", service)
	}
	up("hub")
	var url string
	eventually(t, "the hub has written its join URL", func() bool {
		out, err := do(podman, "exec", hub, "cat", "/data/hub/worker.url")
		url = strings.TrimSpace(out)
		return err == nil && strings.HasPrefix(url, "fit://")
	})
	if out := must(podman, "logs", hub); strings.Contains(out, "fit://") {
		t.Error("the join URL is in the log of the hub")
	}
	environ = append(environ, "FIT_FLEET="+url)
	up("worker")
	eventually(t, "the worker has joined", func() bool {
		out, err := do(podman, "exec", hub, "fit", "fleet", "status", "/data/hub/observer.url")
		return err == nil && strings.Contains(out, "ready")
	})
	must(podman, "exec", hub, "fit", "benchmark", "init", "--dataset", "/data/questions")
	must(podman, "cp", hub+":/data/questions/example-model.json", filepath.Join(dir, "model.json"))
	must(podman, "cp", filepath.Join(dir, "model.json"), worker+":/tmp/model.json")
	must(podman, "exec", "-d", worker, "fit", "model", "serve", "--script", "/tmp/model.json", "--addr",
		"127.0.0.1:8099")
	out := must(podman, "exec", hub, "fit", "benchmark", "run", "--fleet", "/data/hub/coordinator.url",
		"--family", "/data/questions",
		"--agent", "model", "--runs", "2", "--model-url", "http://127.0.0.1:8099", "--no-probe",
		"--output", "/data/answers", "--format", "text")
	if !strings.Contains(out, "4 of 6 runs passed") {
		t.Errorf("%s", out)
	}
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Minute); !is(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within ten minutes: %s", what)
		}
	}
}
