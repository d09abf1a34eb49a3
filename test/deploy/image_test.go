package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/containertest"
	"github.com/fit-eval/fit/internal/testenv"
)

// TestTheImageRuns builds the Dockerfile, on bases made of this machine's programs in place of
// those of a registry: what it installs from a registry is there already, and its user is not root.
func TestTheImageRuns(t *testing.T) {
	podman := testenv.NeedTool(t, "podman")
	t.Cleanup(containertest.Remove)
	dir := t.TempDir()
	write := func(name, content string) {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	must := func(program string, args ...string) string {
		t.Helper()
		out, err := exec.Command(program, args...).CombinedOutput()
		if err != nil {
			t.Fatalf("%s %s: %v\n%s", program, strings.Join(args, " "), err, out)
		}
		return strings.TrimSpace(string(out))
	}
	image := func(name string, build ...string) string {
		t.Helper()
		build = append([]string{"build", "-q", "--network", "none"}, build...)
		id := must(podman, append(build, filepath.Join(dir, name))...)
		t.Cleanup(func() { _ = exec.Command(podman, "rmi", "--force", id).Run() })
		return id
	}

	// The base has what registries would give: an installed package, and make with a compiler.
	write("base/bin/apt-get", "#!/bin/sh\ncase \"$*\" in update|*' bubblewrap ca-certificates git') ;; *) exit 1 ;; esac\n")
	write("base/bin/useradd", "#!/bin/sh\necho \"fit:x:$2:$2::/home/fit:/bin/sh\" >> /etc/passwd\n"+
		"echo \"fit:x:$2:\" >> /etc/group; mkdir -p /home/fit\n")
	write("base/bin/make", "#!/bin/sh\n[ \"$*\" = build ] && [ -f go.mod ] && mkdir bin && cp /made/* bin\n")
	must("go", "build", "-ldflags", "-s -w", "-o", filepath.Join(dir, "base", "made", "fit"), "../cmd/fit")
	must("cp", "-L", testenv.NeedTool(t, "install"), filepath.Join(dir, "base", "bin", "install"))
	write("base/Dockerfile", "FROM "+containertest.Image(t)+"\nENV PATH=/usr/local/bin:/bin\nCOPY bin /bin\nCOPY made /made\n")
	base := image("base")

	content, err := os.ReadFile("Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for line := range strings.Lines(string(content)) {
		if from, found := strings.CutPrefix(line, "FROM docker.io/library/"); found {
			_, stage, _ := strings.Cut(from, " ")
			line = strings.TrimSpace("FROM "+base+" "+stage) + "\n"
		}
		lines = append(lines, line)
	}
	write("src/go.mod", "module example\n")
	write("src/deploy/Dockerfile", strings.Join(lines, ""))
	built := image("src", "-f", filepath.Join(dir, "src", "deploy", "Dockerfile"))

	run := []string{"run", "--rm", "--network", "none", "--ulimit", "nofile=1024:1024", "--ulimit", "nproc=4096:4096"}
	if out := must(podman, append(run, built, "version")...); !strings.HasPrefix(out, "fit ") {
		t.Errorf("the image runs something else: %s", out)
	}
	run = append(run, "--entrypoint", "sh", built, "-c", "id -u; pwd; touch /data/x && echo written")
	if out := must(podman, run...); out != "10001\n/data\nwritten" {
		t.Errorf("user and directory are %q", out)
	}
}
