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
		t.Run(test.toml, func(t *testing.T) {
			_, err := task.Load(t.Context(), harborTask(t, test.toml, test.more), task.Options{})
			if err == nil || !strings.Contains(err.Error(), test.want) ||
				strings.Contains(err.Error(), "struct field") {
				t.Errorf("%v, want %s", err, test.want)
			}
		})
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

// What a task needs and fit has not leaves it out by name; the other tasks of its set run.
func TestHarborTasksThatNeedMoreAreLeftOutByName(t *testing.T) {
	t.Parallel()
	compose := func(text string) map[string]string {
		return map[string]string{"environment/docker-compose.yaml": text}
	}
	for name, test := range map[string]struct {
		toml string
		more map[string]string
		want string
	}{
		"windows": {
			toml: "[environment]\nos = \"windows\"\nworkdir = 'C:\\app'\n",
			want: "it needs windows (environment.os)",
		},
		"windows verifier": {
			toml: "[verifier.environment]\nos = \"windows\"\nworkdir = 'C:\\app'\n",
			want: "it needs windows (verifier.environment.os)",
		},
		"tpu": {toml: "[environment]\ntpu = \"v5\"\n", want: "it needs a TPU"},
		"privileged service": {
			more: compose("services:\n  db: {image: postgres, privileged: true}\n"),
			want: "services.db.privileged: it is not supported",
		},
		"service on the host": {
			more: compose("services:\n  db: {image: postgres, network_mode: host}\n"),
			want: "services.db.network_mode: network host is not supported",
		},
		"service with a mount of the host": {
			more: compose("services:\n  db: {image: postgres, volumes: ['/etc:/x']}\n"),
			want: "services.db.volumes: a mount of the host (/etc:/x)",
		},
		"service with a mount out of the task": {
			more: compose("services:\n  db: {image: postgres, volumes: ['./../task.toml:/x']}\n"),
			want: "services.db.volumes: ./../task.toml is not a file beside the compose file",
		},
		"service with a volume of somebody else": {
			more: compose("services:\n  db: {image: postgres, volumes: ['v:/x']}\nvolumes: {v: {external: true}}\n"),
			want: "volumes.v: it is not a volume of the task alone",
		},
		"service with a volume of nobody": {
			more: compose("services:\n  db: {image: postgres, volumes: ['v:/x']}\n"),
			want: "the volume v is not declared",
		},
		"service with logs of the agent": {
			more: compose("services:\n  db: {image: postgres, volumes: ['${HOST_AGENT_LOGS_PATH}:/x']}\n"),
			want: "services.db.volumes: a mount of the host",
		},
		"service without an image": {
			more: compose("services:\n  db: {command: true}\n"),
			want: "services.db: it has neither an image nor a build",
		},
		"service built out of the task": {
			more: compose("services:\n  db: {build: ../..}\n"),
			want: "services.db.build: ../../Dockerfile is not a file beside the compose file",
		},
		"service with build arguments": {
			more: compose("services:\n  db: {build: {context: ., args: {A: b}}}\n"),
			want: "services.db.build: args of a build is not supported",
		},
		"services in a circle": {
			more: compose("services:\n  a: {image: x, depends_on: [b]}\n  b: {image: x, depends_on: [a]}\n"),
			want: "service a depends on itself",
		},
		"a service that is not there": {
			more: compose("services:\n  main: {depends_on: [db]}\n"),
			want: "services.main.depends_on: there is no service db",
		},
		"artifact of a service": {
			toml: "[[artifacts]]\nsource = \"/x\"\nservice = \"db\"\n",
			want: "artifacts: it needs the service \"db\"",
		},
		"collected from a service": {
			toml: "[[verifier.collect]]\ncommand = \"true\"\nservice = \"db\"\n",
			want: "verifier.collect: it needs the service \"db\"",
		},
		"cloud": {
			toml: "[environment]\ncpus = 2\n",
			want: "it has no image",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set := t.TempDir()
			left := harborTask(t, test.toml, test.more)
			if name == "cloud" {
				if err := os.Remove(filepath.Join(left, "environment", "Dockerfile")); err != nil {
					t.Fatal(err)
				}
			}
			for to, from := range map[string]string{"left": left, "runs": harborTask(t, "", nil)} {
				if err := os.CopyFS(filepath.Join(set, to), os.DirFS(from)); err != nil {
					t.Fatal(err)
				}
			}
			family, err := task.Load(t.Context(), set, task.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if len(family.Tasks) != 1 || family.Tasks[0].ID != "runs" || len(family.Warnings) != 1 ||
				!strings.HasPrefix(family.Warnings[0], "task left is left out: ") ||
				!strings.Contains(family.Warnings[0], test.want) {
				t.Errorf("%d tasks, %v, want %s", len(family.Tasks), family.Warnings, test.want)
			}
		})
	}
}

// A variable that only the solution needs keeps no agent from the task.
func TestAVariableOfTheSolutionDoesNotMatterToAgents(t *testing.T) {
	t.Parallel()
	dir := harborTask(t, "[solution.env]\nKEY = \"${NOBODY_SETS_THIS}\"\n", nil)
	family, err := task.Load(t.Context(), dir, task.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if lacks := family.Tasks[0].Verifier.SolutionLacks; !strings.Contains(lacks, "NOBODY_SETS_THIS is not set") {
		t.Errorf("%q", lacks)
	}
}

// A step that names the network that its task has anyway changes nothing.
func TestEqualNetworksOfStepsAreNoChange(t *testing.T) {
	t.Parallel()
	step := map[string]string{"steps/a/instruction.md": "Do it.", "steps/a/tests/test.sh": "true"}
	for toml, refused := range map[string]bool{
		"[[steps]]\nname = \"a\"\n[steps.agent]\nnetwork_mode = \"public\"\n":                                             false,
		"[environment]\nallow_internet = false\n[[steps]]\nname = \"a\"\n[steps.agent]\nnetwork_mode = \"no-network\"\n":  false,
		"[agent]\nnetwork_mode = \"public\"\n[[steps]]\nname = \"a\"\n[steps.verifier]\nnetwork_mode = \"public\"\n":      false,
		"[[steps]]\nname = \"a\"\n[steps.agent]\nnetwork_mode = \"no-network\"\n":                                         true,
		"[environment]\nnetwork_mode = \"no-network\"\n[[steps]]\nname = \"a\"\n[steps.agent]\nnetwork_mode = \"public\"": true,
	} {
		t.Run(toml, func(t *testing.T) {
			if _, err := task.Load(t.Context(), harborTask(t, toml, step), task.Options{}); (err != nil) != refused {
				t.Error(err)
			}
		})
	}
}
