package release

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/containertest"
	"github.com/fit-eval/fit/internal/testenv"
)

// run runs a program and returns what it printed.
func run(t *testing.T, dir, program string, args ...string) string {
	t.Helper()
	command := exec.Command(program, args...)
	command.Dir = dir
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", program, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// checkout is a copy of the last commit, as somebody else has it, with a tag.
func checkout(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "fit")
	run(t, ".", "git", "clone", "-q", "--shared", "../..", dir)
	run(t, dir, "git", "tag", "v0.9.1")
	return dir
}

func TestAReleaseIsTheSameEverywhereAndInstalls(t *testing.T) {
	testenv.NeedTool(t, "git")
	targets := "linux/" + runtime.GOARCH
	if os.Getenv("FIT_SOAK") != "" { // compiling for other systems takes minutes
		targets = "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64"
	}
	var published [2]string
	for i := range published {
		clone := checkout(t)
		run(t, clone, "make", "release", "VERSION=0.9.1", "TARGETS="+targets)
		published[i] = filepath.Join(clone, "dist")
	}
	first, second := published[0], published[1]
	entries, err := os.ReadDir(first)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
		one, err := os.ReadFile(filepath.Join(first, entry.Name()))
		if err != nil {
			t.Fatal(err)
		}
		other, err := os.ReadFile(filepath.Join(second, entry.Name()))
		if err != nil || !bytes.Equal(one, other) {
			t.Errorf("%s differs when it is built again (%v)", entry.Name(), err)
		}
	}
	name := "fit_0.9.1_linux_" + runtime.GOARCH
	for _, want := range []string{
		name + ".tar.gz", name + ".deb", name + ".rpm", name + ".cdx.json", "fit.rb", "SHA256SUMS",
	} {
		if !slices.Contains(names, want) {
			t.Errorf("%s is missing in %q", want, names)
		}
	}
	run(t, first, "sha256sum", "--check", "--quiet", "SHA256SUMS")
	t.Run("revision", func(t *testing.T) { everyArtefactNamesItsRevision(t, first, name) })
	t.Run("archive", func(t *testing.T) { archiveRuns(t, filepath.Join(first, name+".tar.gz")) })
	t.Run("deb", func(t *testing.T) { packageRuns(t, filepath.Join(first, name+".deb")) })
	t.Run("bill of materials", func(t *testing.T) { billIsComplete(t, filepath.Join(first, name+".cdx.json")) })
}

// everyArtefactNamesItsRevision reads what an artefact says about itself; the program in it is run
// below.
func everyArtefactNamesItsRevision(t *testing.T, dir, name string) {
	read := func(file string) string {
		content, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			t.Error(err)
		}
		return string(content)
	}
	revision := strings.TrimSpace(run(t, ".", "git", "rev-parse", "HEAD"))
	for artefact, said := range map[string]string{
		"deb":     run(t, dir, testenv.NeedTool(t, "dpkg-deb"), "--field", name+".deb"),
		"rpm":     read(name + ".rpm"), // its header is not compressed
		"bill":    read(name + ".cdx.json"),
		"formula": read("fit.rb"),
	} {
		if !strings.Contains(said, revision) || !strings.Contains(said, "0.9.1") {
			t.Errorf("%s has no version 0.9.1 or no revision %s", artefact, revision)
		}
	}
}

// archiveRuns unpacks the archive, whose program knows its version and its revision.
func archiveRuns(t *testing.T, archive string) {
	dir := t.TempDir()
	run(t, dir, "tar", "-xzf", archive, "--strip-components=1")
	printed := run(t, dir, filepath.Join(dir, "bin", "fit"), "version")
	revision := strings.TrimSpace(run(t, ".", "git", "rev-parse", "HEAD"))
	if !strings.HasPrefix(printed, "fit v0.9.1, revision "+revision+", ") {
		t.Errorf("fit version prints %q", printed)
	}
	run(t, dir, filepath.Join(dir, "bin", "subq"), "eval", "--help")
	for _, file := range []string{
		"share/man/man1/fit-benchmark-run.1", "share/bash-completion/completions/fit-harness",
		"share/zsh/site-functions/_fit", "share/fish/vendor_completions.d/fit.fish", "share/doc/fit/LICENSE",
	} {
		if _, err := os.Stat(filepath.Join(dir, file)); err != nil {
			t.Error(err)
		}
	}
}

// packageRuns installs the package into an empty system and shows the demo there, in a container
// without a network, as a user who is not root.
func packageRuns(t *testing.T, file string) {
	dpkg, podman := testenv.NeedTool(t, "dpkg"), testenv.NeedTool(t, "podman")
	t.Cleanup(containertest.Remove)
	dir := t.TempDir()
	root := filepath.Join(dir, "root")
	for _, name := range []string{"var/lib/dpkg/info", "var/lib/dpkg/updates"} {
		if err := os.MkdirAll(filepath.Join(root, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "var/lib/dpkg/status"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	// What it depends on is in the image below.
	run(t, dir, dpkg, "--root="+root, "--force-not-root", "--force-depends", "--install", file)
	image := "FROM " + containertest.Image(t) + "\nCOPY root/usr /usr\n" +
		"USER 10001\nENV HOME=/tmp PATH=/usr/bin:/bin\nWORKDIR /tmp\n"
	if err := os.WriteFile(filepath.Join(dir, "Dockerfile"), []byte(image), 0o600); err != nil {
		t.Fatal(err)
	}
	id := strings.TrimSpace(run(t, dir, podman, "build", "-q", "--network", "none", "."))
	t.Cleanup(func() { _ = exec.Command(podman, "rmi", "--force", id).Run() })
	printed := run(t, dir, podman, "run", "--rm", "--network", "none", "--ulimit", "nofile=1024:1024",
		"--ulimit", "nproc=4096:4096", id, "fit", "demo")
	if !strings.Contains(printed, "Improved: pass rate of after") {
		t.Errorf("the demo prints\n%s", printed)
	}
}

// billIsComplete compares the bill with the committed list of modules.
func billIsComplete(t *testing.T, file string) {
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var bill struct {
		Format     string `json:"bomFormat"`
		Components []struct{ Name, Version string }
	}
	if err := json.Unmarshal(content, &bill); err != nil || bill.Format != "CycloneDX" {
		t.Fatalf("%v, format %q", err, bill.Format)
	}
	want, err := os.ReadFile("../../docs/dependencies.txt")
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for _, component := range bill.Components {
		got.WriteString(component.Name + " " + component.Version + "\n")
	}
	if got.String() != string(want) {
		t.Errorf("the bill has\n%sand docs/dependencies.txt\n%s", got.String(), want)
	}
}

func TestACommitWithoutItsTagIsNotReleased(t *testing.T) {
	testenv.NeedTool(t, "git")
	dir := checkout(t)
	command := exec.Command("make", "release", "VERSION=0.9.2")
	command.Dir = dir
	out, err := command.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "set it: git tag v0.9.2") {
		t.Errorf("%v\n%s", err, out)
	}
	if _, err := os.Stat(filepath.Join(dir, "dist")); err == nil {
		t.Error("something was written")
	}
}
