package fleet

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The commands for nsc are ones that a shell and the tool accept, and the URL of every key has what
// the tool says of it, which servers that are set up with it ask for.
func TestPermissionsForNsc(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "the hub's")
	text, err := Permissions(dir, "127.0.0.1:4222", "nsc")
	if err != nil {
		t.Fatal(err)
	}
	tool := filepath.Join(dir, "nsc")
	said := filepath.Join(dir, "said")
	script := "#!/bin/sh\nprintf '%s\\n' \"$*\" >>'" + strings.ReplaceAll(said, "'", `'\''`) +
		"'\nif [ $1 = describe ]; then echo eyJ.$6; fi\n"
	if err := os.WriteFile(tool, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	command := exec.Command("sh", "-e")
	command.Stdin, command.Env = strings.NewReader(text), append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	content, err := os.ReadFile(said)
	if err != nil {
		t.Fatal(err)
	}
	commands := strings.Split(string(content), "\n")
	for _, one := range commands {
		if _, kind, is := strings.Cut(one, "--response-type "); is && kind != "Singleton" && kind != "Stream" {
			t.Errorf("nsc has no response type %s", kind)
		}
	}
	for _, role := range []string{RoleCoordinator, RoleWorker, RoleObserver} {
		content, err := os.ReadFile(urlFile(dir, role))
		if err != nil {
			t.Fatal(err)
		}
		join, err := parseJoinURL(strings.TrimSpace(string(content)))
		if err != nil || join.JWT != "eyJ."+role || join.Role != role || !join.External {
			t.Errorf("the URL of %s has the JWT %q, %v", role, join.JWT, err)
		}
		if again, err := parseJoinURL(join.String()); again != join || err != nil {
			t.Errorf("it is not the same when it is written again: %v", err)
		}
		pair := slices.ContainsFunc(commands, func(one string) bool {
			return strings.HasPrefix(one, "add user ") && strings.Contains(one, "--name "+role)
		})
		if !pair {
			t.Errorf("%s is not added", role)
		}
	}
}
