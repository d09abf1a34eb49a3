package task_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/task"
)

// harborTask writes a Harbor task and returns its directory.
func harborTask(t *testing.T, toml string, more map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	files := map[string]string{
		"task.toml": toml, "instruction.md": "Do it.\n", "tests/test.sh": "true\n",
		"environment/Dockerfile": "FROM debian\n",
	}
	for name, content := range more {
		files[name] = content
	}
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestMistakesInHarborTasksHaveTheirPlaceAndPlainWords(t *testing.T) {
	t.Parallel()
	step := map[string]string{"steps/a/instruction.md": "Do it.", "steps/a/tests/test.sh": "true"}
	for _, test := range []struct {
		toml string
		more map[string]string
		want string
	}{
		{toml: "[agent\n", want: "task.toml:1:"},
		{toml: "name = \"\xff\"\n", want: "task.toml:1:"},
		{toml: "[agent]\ntimeout_sec = \"soon\"\n", want: "task.toml:2:15: timeout_sec: want a number, not this string"},
		{toml: "[environment]\nenv = {A = 1}\n", want: "task.toml:2:"},
		{toml: "[agent]\ntimeout_sec = 1\ntimeout_sec = 2\n", want: "task.toml:3: key timeout_sec is already defined"},
		{toml: "[agent]\ntimeout_sec = -5\n", want: "task.toml:2: agent.timeout_sec = -5 is not a time"},
		{toml: "[verifier]\ntimeout_sec = nan\n", want: "task.toml:2: verifier.timeout_sec = NaN is not a time"},
		{toml: "[agent]\nuser = [\"a\"]\n", want: "task.toml:2: agent.user is neither a name nor a number"},
		{toml: "[agent]\nuser = 1.5\n", want: "task.toml:2: agent.user is neither a name nor a number"},
		{toml: "[environment]\ncpus = -1\n", want: "task.toml:2: environment.cpus = -1"},
		{toml: "[environment]\ncpus = 1e9\n", want: "task.toml:2: environment.cpus = 1e+09"},
		{toml: "[environment]\nmemory_mb = -5\n", want: "task.toml:2: environment.memory_mb = -5"},
		{toml: "[environment]\nmemory = \"1G\"\nmemory_mb = 5\n", want: "task.toml:2: environment: memory = \"1G\" and"},
		{toml: "[environment]\nmemory = \"much\"\n", want: "task.toml:2: environment: memory = \"much\" is not a size"},
		{toml: "[environment]\nstorage = \"x\"\n", want: "task.toml:2: environment: storage = \"x\" is not a size"},
		{toml: "[environment]\nworkdir = \"app\"\n", want: "task.toml:2: environment.workdir = \"app\" is not an absolute path"},
		{toml: "[environment.healthcheck]\nretries = 1\n", want: "task.toml:1: environment.healthcheck: the command is missing"},
		{
			toml: "[environment.healthcheck]\ncommand = \"true\"\nretries = 0\n",
			want: "task.toml:3: environment.healthcheck.retries = 0",
		},
		{toml: "[[verifier.collect]]\ntimeout_sec = 1\n", want: "task.toml:1: verifier.collect: the command is missing"},
		{toml: "[[steps]]\nname = \"a\"\n[[steps]]\nname = \"a\"\n", more: step, want: "two steps have the name \"a\""},
		{toml: "[[steps]]\nname = \"../a\"\n", more: step, want: "is not the name of a directory in steps/"},
		{toml: "[[steps]]\nname = \"a\"\nmin_reward = \"x\"\n", more: step, want: "task.toml:3: step a: min_reward is neither"},
		{toml: "artifacts = [\"x/y\"]\n", want: "task.toml:1: artifacts: \"x/y\" is not an absolute path"},
		{
			more: map[string]string{"environment/docker-compose.yaml": "services:\n  main:\n    environment: 5\n"},
			want: "environment/docker-compose.yaml:3:",
		},
		{
			more: map[string]string{"environment/docker-compose.yaml": "services:\n  main:\n    volumes: ['${HOST_X}/../etc:/x']\n"},
			want: "a mount of the host",
		},
		{more: map[string]string{"instruction.md": " \n"}, want: "instruction.md: missing or empty"},
	} {
		_, err := task.Load(t.Context(), harborTask(t, test.toml, test.more), task.Options{})
		if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "struct field") {
			t.Errorf("%q: %v, want %s", test.toml, err, test.want)
		}
	}
}

func TestSetsOfTasksLieAnywhere(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "[set]") // a pattern that does not match itself
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(harborTask(t, "", nil), filepath.Join(dir, "one")); err != nil {
		t.Fatal(err)
	}
	if family, err := task.Load(t.Context(), dir, task.Options{}); err != nil || len(family.Tasks) != 1 {
		t.Errorf("%v: %+v", err, family)
	}
	statement := filepath.Join(dir, "tasks", "a__b-1", "problem_statement.md")
	if err := os.MkdirAll(filepath.Dir(statement), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(statement, []byte("It is wrong."), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := task.Load(t.Context(), dir, task.Options{}); err == nil || !strings.Contains(err.Error(), "a__b-1") {
		t.Errorf("a repository of instances: %v", err)
	}
}

func TestOldSpellingsOfHarborTasks(t *testing.T) {
	t.Parallel()
	for _, toml := range []string{
		"\ufeffversion = \"1.0\"\r\n[environment]\r\nmemory = \"2G\"\nstorage = \"512M\"\nallow_internet = false\n",
		"schema_version = \"1.4\"\n[environment]\nmemory_mb = 2048\nstorage_mb = 512\nnetwork_mode = \"no-network\"\n",
		"[environment]\nmemory = \"2048M\"\nmemory_mb = 2048\nstorage = \"0.5g\"\nnetwork_mode = \"no-network\"\n",
	} {
		family, err := task.Load(t.Context(), harborTask(t, toml, nil), task.Options{})
		if err != nil {
			t.Fatal(err)
		}
		s := family.Tasks[0].Settings
		if s.Limits.MemoryMB != 2048 || s.Limits.DiskMB != 512 || s.AgentNetwork.Kind != "model" || s.GraderNetwork {
			t.Errorf("%q: %+v %+v", toml, s.Limits, s.AgentNetwork)
		}
	}
}
