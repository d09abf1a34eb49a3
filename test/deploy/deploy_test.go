package deploy

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/cli"
	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/testenv"
)

func TestMain(m *testing.M) {
	if err := os.Chdir("../../deploy"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// checker builds the checker of manifests, which is a module of its own.
func checker(t *testing.T) func(files ...string) (string, error) {
	t.Helper()
	program := filepath.Join(t.TempDir(), "check")
	build := exec.Command("go", "build", "-o", program, ".")
	build.Dir = filepath.Join("..", "test", "deploy", "testdata", "check")
	build.Env = append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return func(files ...string) (string, error) {
		out, err := exec.Command(program, files...).CombinedOutput()
		return string(out), err
	}
}

func TestManifestsAreValid(t *testing.T) {
	check := checker(t)
	if out, err := check("kubernetes/coordinator.yaml", "kubernetes/worker.yaml", "compose.yaml"); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	wrong := t.TempDir()
	for name, change := range map[string][2]string{
		"kubernetes/worker.yaml":      {"replicas:", "replica:"},
		"kubernetes/coordinator.yaml": {"matchLabels: {app: fit-coordinator}", "matchLabels: {app: other}"},
		"compose.yaml":                {"restart:", "restarts:"},
	} {
		t.Run(name, func(t *testing.T) {
			content, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			changed := bytes.ReplaceAll(content, []byte(change[0]), []byte(change[1]))
			path := filepath.Join(wrong, filepath.Base(name))
			if err := os.WriteFile(path, changed, 0o600); err != nil {
				t.Fatal(err)
			}
			if out, err := check(path); err == nil || !strings.Contains(out, path) {
				t.Errorf("%s with %q is not refused: %v\n%s", name, change[1], err, out)
			}
		})
	}
}

func TestUnitsAreValid(t *testing.T) {
	tool := testenv.NeedTool(t, "systemd-analyze")
	fit, err := os.Executable() // a program that is there
	if err != nil {
		t.Fatal(err)
	}
	for name, bad := range map[string]string{
		"fit-hub.service":    "ProtectSystems=yes",
		"fit-worker.service": "KillMod=x",
	} {
		content, err := os.ReadFile(filepath.Join("systemd", name))
		if err != nil {
			t.Fatal(err)
		}
		unit := strings.ReplaceAll(string(content), "/usr/local/bin/fit", fit)
		unit = strings.ReplaceAll(unit, "User=fit\n", "User=root\n") // verify looks the user up
		verify := func(unit string) string {
			path := filepath.Join(t.TempDir(), name)
			if err := os.WriteFile(path, []byte(unit), 0o600); err != nil {
				t.Fatal(err)
			}
			out, err := exec.Command(tool, "verify", "--man=no", path).CombinedOutput()
			if err != nil {
				return string(out) + err.Error()
			}
			var own []string // other units of the machine are not ours
			for line := range strings.Lines(string(out)) {
				if strings.Contains(line, name) {
					own = append(own, line)
				}
			}
			return strings.Join(own, "")
		}
		if said := verify(unit); said != "" {
			t.Errorf("%s: %s", name, said)
		}
		if said := verify(strings.Replace(unit, "[Service]\n", "[Service]\n"+bad+"\n", 1)); said == "" {
			t.Errorf("%s with %s is not refused", name, bad)
		}
	}
}

// files returns the content of everything that is deployed, by name.
func files(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || path == "doc.go" {
			return err
		}
		content, err := os.ReadFile(path)
		all[path] = string(content)
		return err
	})
	if err != nil || len(all) != 6 {
		t.Fatalf("%v, %d files", err, len(all))
	}
	return all
}

// Every command of fit that is deployed has flags that exist.
func TestCommandsAreValid(t *testing.T) {
	found := 0
	commands := regexp.MustCompile(`(?m)(?:fit |args: \[|command: \[)(fleet[ ,]+(?:serve|work)[^>\]\n]*)`)
	for name, content := range files(t) {
		for _, match := range commands.FindAllStringSubmatch(content, -1) {
			args := strings.Fields(strings.NewReplacer(",", " ", `"`, "").Replace(match[1]))
			var stderr bytes.Buffer
			con := &console.Console{
				Stdin:  strings.NewReader(""),
				Stdout: &bytes.Buffer{},
				Stderr: &stderr,
				Dir:    t.TempDir(),
			}
			if code := cli.Run(t.Context(), append(append([]string{"fit"}, args...), "--help"), con); code != 0 {
				t.Errorf("%s: fit %s: %s", name, strings.Join(args, " "), &stderr)
			}
			found++
		}
	}
	if found != 6 {
		t.Errorf("%d commands, want a hub and a worker in three ways", found)
	}
}

// Tokens and keys are in secrets and files of the one who deploys, never here.
func TestNothingIsSecret(t *testing.T) {
	secret := regexp.MustCompile(`kind: Secret|fit://[A-Z0-9]|sk-[a-z]|_(?:KEY|TOKEN)[:=] *[A-Za-z0-9]`)
	for name, content := range files(t) {
		if found := secret.FindString(content); found != "" {
			t.Errorf("%s has %q", name, found)
		}
	}
	if !secret.MatchString("ANTHROPIC_API_KEY: sk") || !secret.MatchString("fit://SUAB") {
		t.Error("a secret is not found")
	}
}
