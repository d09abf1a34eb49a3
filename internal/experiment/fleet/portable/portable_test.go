package portable

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/experiment"
	"github.com/fit-eval/fit/internal/task"
)

// bringing makes an experiment whose one arm brings everything that an arm can bring.
func bringing(t *testing.T, servers string) *experiment.Prepared {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string]string{
		"family/tasks/one/agent.task.md": "do it", "skills/csv/SKILL.md": "a skill", "skills/csv/run.sh": "#!/bin/sh\n",
		"RULES.md": "rules", "files/a.txt": "a", "mcp.json": servers, "set.json": "{}",
	} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	arm := experiment.Arm{
		Name:         "a",
		Agent:        "builtin",
		Skills:       at("skills"),
		Instructions: at("RULES.md"),
		Files:        at("files"),
		MCP:          at("mcp.json"),
		Settings:     at("set.json"),
	}
	brings, err := arm.Contents()
	if err != nil {
		t.Fatal(err)
	}
	return &experiment.Prepared{
		Setup: experiment.Setup{
			Family: &task.Family{
				Dir:   at("family"),
				Tasks: []task.Task{{ID: "one", Dir: at("family/tasks/one")}},
			},
			Arms: []experiment.Arm{arm},
		},
		Plan:   &experiment.Plan{Arms: []experiment.PlannedArm{{Arm: arm}}},
		Brings: map[string][]experiment.Bring{"a": brings},
	}
}

// Everything that an arm brings travels to the workers, without the paths of the coordinator, and
// what arrives is what was sent.
func TestWhatAnArmBringsTravels(t *testing.T) {
	prepared := bringing(t, `{"mcpServers": {"s": {"command": "x", "env": {"TOKEN": "${SERVER_TOKEN}"}}}}`)
	packed, roots, withheld, err := Pack(prepared, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(withheld["a"], " "); got != "SERVER_TOKEN" {
		t.Errorf("workers must have %q", got)
	}
	cache := t.TempDir()
	for _, r := range roots {
		to := filepath.Join(cache, r.Hash)
		if err := os.MkdirAll(to, 0o700); err != nil {
			t.Fatal(err)
		}
		if r.File {
			content, err := os.ReadFile(r.Path)
			if err == nil {
				err = os.WriteFile(filepath.Join(to, filepath.Base(r.Path)), content, 0o700)
			}
			if err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err := os.CopyFS(to, os.DirFS(r.Path)); err != nil {
			t.Fatal(err)
		}
	}
	if err := packed.Unpack(cache, t.TempDir(), nil); err != nil {
		t.Fatal(err)
	}
	arrived := packed.Prepared.Brings["a"]
	if len(arrived) != len(prepared.Brings["a"]) || len(arrived) != 5 {
		t.Fatalf("%d arrived: %+v", len(arrived), arrived)
	}
	for _, b := range arrived {
		digest, err := b.CurrentDigest()
		if err != nil || digest != b.Digest || !strings.HasPrefix(b.Source, cache) {
			t.Errorf("%s %s at %s: %s %v", b.Kind, b.Name, b.Source, digest, err)
		}
	}
	for _, path := range ownPaths(&packed.Prepared.Arms[0]) {
		if *path == "" || strings.HasPrefix(*path, treeMark) {
			t.Errorf("a path is lost: %+v", packed.Prepared.Arms[0])
		}
	}
	if err := os.WriteFile(filepath.Join(arrived[1].Source, "SKILL.md"), []byte("another"), 0o600); err != nil {
		t.Fatal(err)
	}
	if digest, err := arrived[1].CurrentDigest(); err != nil || digest == arrived[1].Digest {
		t.Errorf("a changed skill has the same digest: %v", err)
	}
}

// A worker gets the skills and instructions of all arms with every cell, because it looks for them
// where they do not belong. Everything else comes with its own arm.
func TestWhatOtherArmsBringIsKnownToAWorker(t *testing.T) {
	prepared := bringing(t, `{"mcpServers": {"s": {"command": "x"}}}`)
	prepared.Arms = append(prepared.Arms, experiment.Arm{Name: "b", Agent: "builtin"})
	packed, roots, _, err := Pack(prepared, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range roots {
		name := filepath.Base(r.Path)
		shared := name == "RULES.md" || name == "csv" || name == "skills" || name == "family"
		if slices.Contains(packed.Shared, r.Hash) != shared {
			t.Errorf("%s goes to every worker: %v", name, !shared)
		}
	}
}

// A secret in a file of tool servers stays where it is.
func TestSecretsOfToolServersDoNotTravel(t *testing.T) {
	prepared := bringing(t, `{"mcpServers": {"s": {"command": "x", "env": {"API_KEY": "s3cret"}}}}`)
	if _, _, _, err := Pack(prepared, t.TempDir()); err == nil || !strings.Contains(err.Error(), "${NAME}") ||
		strings.Contains(err.Error(), "s3cret") {
		t.Errorf("got %v", err)
	}
}

// A coordinator names no files of the workers: a path that did not travel is refused.
func TestPathsOfAWorkerAreNotNamed(t *testing.T) {
	prepared := bringing(t, `{"mcpServers": {"s": {"command": "x"}}}`)
	sent, _, _, err := Pack(prepared, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	sent.Prepared.Arms[0].Files = "/etc"
	if err := sent.Unpack(t.TempDir(), t.TempDir(), nil); err == nil || !strings.Contains(err.Error(), `"/etc"`) {
		t.Errorf("unpack says %v", err)
	}
}

// A path of an experiment that stays in its tree by name may not leave it by a link.
func TestNoLinkLeadsOutOfATree(t *testing.T) {
	t.Parallel()
	cache := t.TempDir()
	for name, target := range map[string]string{
		"own/in": "there", "own/out": "/etc", "own/up": "../other", "own/self": "../own/there",
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.MkdirAll(filepath.Join(cache, "own", "there"), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(target, filepath.Join(cache, filepath.FromSlash(name))); err != nil {
				t.Fatal(err)
			}
		})
	}
	for path, fine := range map[string]bool{
		"own": true, "own/there": true, "own/in": true, "own/in/missing": true, "own/out": false,
		"own/out/passwd": false, "own/up": false,
	} {
		t.Run(path, func(t *testing.T) {
			spec := &Experiment{Prepared: &experiment.Prepared{Setup: experiment.Setup{Family: &task.Family{}}}}
			spec.Prepared.Family.Tasks = []task.Task{{ID: "t", Dir: filepath.Join(cache, filepath.FromSlash(path))}}
			if err := spec.InTrees(cache, nil, []string{"t"}); (err == nil) != fine {
				t.Errorf("%s: %v", path, err)
			}
		})
	}
}
