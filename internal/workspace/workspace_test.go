package workspace

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fit-eval/fit/internal/sandbox"
	"github.com/fit-eval/fit/internal/sandbox/untrusted"
	"github.com/fit-eval/fit/internal/task"
	"github.com/fit-eval/fit/internal/testenv"
)

// write makes files below a directory. A name that ends in / is a directory; content that begins
// with "-> " makes a link, "#!" an executable.
func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		full := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		var err error
		switch target, isLink := strings.CutPrefix(content, "-> "); {
		case strings.HasSuffix(name, "/"):
			err = os.MkdirAll(full, 0o755)
		case isLink:
			err = os.Symlink(target, full)
		case strings.HasPrefix(content, "#!"):
			err = os.WriteFile(full, []byte(content), 0o755)
		default:
			err = os.WriteFile(full, []byte(content), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// list shows a tree as path → content, with links as "-> target".
func list(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(dir, func(name string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, _ := filepath.Rel(dir, name)
		if d.Type()&os.ModeSymlink != 0 {
			target, err := os.Readlink(name)
			found[rel] = "-> " + target
			return err
		}
		content, err := os.ReadFile(name)
		found[rel] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// family writes a family with one task and loads it.
func family(t *testing.T, files map[string]string) (*task.Family, *task.Task) {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, map[string]string{
		"tasks/one/agent.task.md":       "Do it.\n",
		"tasks/one/hooks/invariants.sh": "#!/bin/sh\n",
	})
	write(t, dir, files)
	loaded, err := task.Load(t.Context(), dir, task.Options{Environ: []string{"FROM_CI=ci"}})
	if err != nil {
		t.Fatal(err)
	}
	return loaded, &loaded.Tasks[0]
}

// prepare makes a workspace that is removed at the end of the test.
func prepare(t *testing.T, cfg Config) *Workspace {
	t.Helper()
	if cfg.Root == "" {
		cfg.Root = t.TempDir()
	}
	if cfg.Name == "" {
		cfg.Name = "cell"
	}
	if cfg.Environ == nil {
		cfg.Environ = os.Environ()
	}
	w, err := Prepare(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Remove(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return w
}

func TestOverlaysAreLaidInOrder(t *testing.T) {
	fam, one := family(t, map[string]string{
		"workdir/README.md": "family", "workdir/base.txt": "base", "workdir/link": "-> base.txt",
		"workdir/.claude/settings.json":           "from workdir",
		"apm_modules/owner/pack/agents/helper.md": "agent of a pack",
		"specs/a.md": "family spec", "specs/b.md": "family spec", ".claude/settings.json": "from skills",
		".claude/skills/s/SKILL.md":   "skill",
		"tasks/one/workdir/README.md": "task", "tasks/one/workdir/run.sh": "#!/bin/sh\n",
		"tasks/one/specs/b.md":    "task spec",
		"tasks/one/judge.task.md": "judge {{TASK_ID}}", "judge.md": "profile", "tasks/one/supervisor.task.md": "lead",
		"tasks/one/solution/answer": "42",
		"tasks/one/.env":            "KEY=value\nFROM_CI=placeholder\n", ".env.local": "LOCAL='x y'\n",
	})
	modules := t.TempDir()
	write(t, modules, map[string]string{"pkg/index.js": "module", ".bin/pkg": "-> ../pkg/index.js"})
	w := prepare(t, Config{Family: fam, Task: one, NodeModules: modules})
	want := map[string]string{
		"README.md": "task", "base.txt": "base", "link": "-> base.txt", "run.sh": "#!/bin/sh\n",
		"specs/a.md": "family spec", "specs/b.md": "task spec", ".claude/settings.json": "from skills",
		".claude/skills/s/SKILL.md": "skill",
		".claude/agents/helper.md":  "agent of a pack", "node_modules/pkg/index.js": "module",
		"node_modules/.bin/pkg": "-> ../pkg/index.js",
		".env":                  "KEY=value\nFROM_CI=ci\n", ".env.local": "LOCAL=x y\n",
	}
	if diff := cmp.Diff(want, list(t, w.Dir)); diff != "" {
		t.Error(diff)
	}
	if info, err := os.Stat(filepath.Join(w.Dir, "run.sh")); err != nil || info.Mode()&0o100 == 0 {
		t.Errorf("run.sh is not executable: %v", err)
	}
}

func TestOtherSkillsReplaceTheFamilys(t *testing.T) {
	fam, one := family(t, map[string]string{".claude/a": "family"})
	skills := t.TempDir()
	write(t, skills, map[string]string{"b": "arm"})
	bases := NewBases(filepath.Join(t.TempDir(), "bases"))
	t.Cleanup(func() { bases.Close() })
	before, after := prepare(t, Config{Family: fam, Task: one, Bases: bases}), prepare(t, Config{
		Family:        fam,
		Task:          one,
		Bases:         bases,
		WithoutSkills: true,
		Brings:        []Bring{{Name: "skills", Source: skills, To: ".claude"}},
	})
	if diff := cmp.Diff(map[string]string{".claude/a": "family"}, list(t, before.Dir)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]string{".claude/b": "arm"}, list(t, after.Dir)); diff != "" {
		t.Error(diff)
	}
	if before.StartHash() == after.StartHash() {
		t.Error("different skills give the same start")
	}
}

func TestAttemptsStartInAFreshDirectory(t *testing.T) {
	fam, one := family(t, nil)
	root := t.TempDir()
	write(t, root, map[string]string{"cell/left-over": "solution", "file": ""})
	for name, want := range map[string]string{
		"cell": "not empty", "file": "not a directory", "../x": "not a valid",
		"": "not a valid",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Prepare(t.Context(), Config{Root: root, Name: name, Family: fam, Task: one})
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("name %q gives %v, want %q", name, err, want)
			}
		})
	}
	if _, err := os.Stat(filepath.Join(root, "cell", "left-over")); err != nil {
		t.Errorf("the refused directory was touched: %v", err)
	}
	repository := t.TempDir()
	write(t, repository, map[string]string{".git/HEAD": "ref: refs/heads/main\n"})
	if _, err := Prepare(t.Context(),
		Config{Root: filepath.Join(repository, "runs"), Name: "cell", Family: fam, Task: one}); err == nil {
		t.Error("a workspace was made inside a repository")
	}
}

func TestSkillsWithLinksThatEscapeAreRefused(t *testing.T) {
	fam, one := family(t, nil)
	for _, target := range []string{"/etc/passwd", "../../../etc/passwd", "up/../.."} {
		skills := t.TempDir()
		write(t, skills, map[string]string{"up": "-> ..", "bad": "-> " + target})
		root := t.TempDir()
		_, err := Prepare(t.Context(), Config{
			Root:   root,
			Name:   "cell",
			Family: fam,
			Task:   one,
			Brings: []Bring{{Name: "skills", Source: skills, To: ".claude"}},
		})
		if err == nil {
			t.Errorf("a link to %s was taken", target)
		}
		if left, _ := os.ReadDir(root); len(left) > 0 {
			t.Errorf("the failed workspace left %v", left)
		}
	}
}

func TestFiftyWorkspacesAtOnce(t *testing.T) {
	fam, one := family(t, map[string]string{"workdir/a/b": "x", "workdir/c": "y", ".env": "A=1\n"})
	root, bases, ports := t.TempDir(), NewBases(filepath.Join(t.TempDir(), "bases")), &Ports{}
	all := make([]*Workspace, 50)
	var group sync.WaitGroup
	for i := range all {
		group.Go(func() {
			w, err := Prepare(t.Context(), Config{
				Root: root, Name: fmt.Sprintf("t/%d", i), Family: fam, Task: one,
				Bases: bases, Ports: ports, Environ: os.Environ(),
			})
			if err != nil {
				t.Error(err)
				return
			}
			all[i] = w
		})
	}
	group.Wait()
	if t.Failed() {
		return
	}
	seen := map[int]bool{}
	for _, w := range all {
		if seen[w.Port] || w.Port == 0 {
			t.Errorf("port %d twice", w.Port)
		}
		seen[w.Port] = true
		if w.Base() != all[0].Base() || len(list(t, w.Dir)) != 3 {
			t.Errorf("%s differs", w.Root)
		}
		if err := w.Remove(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if err := bases.Close(); err != nil {
		t.Error(err)
	}
	if left, _ := os.ReadDir(filepath.Join(root, "t")); len(left) > 0 {
		t.Errorf("left over: %v", left)
	}
}

func TestPortsAreDistinctBindableAndReusable(t *testing.T) {
	ports := &Ports{}
	got := make([]int, 16)
	var group sync.WaitGroup
	for i := range got {
		group.Go(func() {
			var err error
			if got[i], err = ports.reserve(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	slices.Sort(got)
	if len(slices.Compact(slices.Clone(got))) != 16 {
		t.Errorf("ports are not distinct: %v", got)
	}
	for _, port := range got {
		listener, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(port))
		if err != nil {
			t.Errorf("port %d: %v", port, err)
			continue
		}
		listener.Close()
	}
	ports.release(got[0])
	ports.mu.Lock()
	held := ports.inUse[got[0]]
	ports.mu.Unlock()
	if held {
		t.Error("a released port is still held")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := ports.reserve(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled reservation gave %v", err)
	}
	if _, err := ports.reserve(t.Context()); err != nil {
		t.Errorf("a failed reservation blocks the next: %v", err)
	}
}

func TestTheAgentSeesItsOwnDirectoriesOnly(t *testing.T) {
	needBwrap(t)
	fam, one := family(t, map[string]string{
		"workdir/file": "x", "tasks/one/tests/a.test.js": "secret test",
		".env": "TASK_VALUE=v\n",
	})
	root := t.TempDir()
	ports := &Ports{}
	sibling := prepare(t, Config{Root: root, Name: "sibling", Family: fam, Task: one})
	w := prepare(t, Config{
		Root: root, Name: "cell", Family: fam, Task: one, Ports: ports,
		Env: map[string]string{"ARM": "a"}, Environ: append(os.Environ(), "HARNESS_KEY=key"),
	})
	script := `
set -u
test "$ARM" = a && test "$TASK_VALUE" = v && test "$PORT" = "$(cat "$HOME/.fit-port")" && echo env
test -z "${HARNESS_KEY:-}" && test -z "${TASK_DIR:-}" && test -z "${AGENT_CWD:-}" && echo clean
echo x >written && echo x >"$HOME/h" && echo x >"$TMPDIR/t" && echo writes
for hidden in ` + strings.Join([]string{sibling.Dir, fam.Dir, w.Base().Dir, os.Getenv("HOME") + "/.profile", filepath.Join(w.Root, "hooks")}, " ") + `; do
  test -e "$hidden" && echo "sees $hidden"
done
(echo x >/usr/x) 2>/dev/null && echo "writes to the system"
exit 0`
	_, out := run(t, w.Agent(), "sh", "-c", script)
	if out != "env\nclean\nwrites\n" {
		t.Errorf("the agent's world: %s", out)
	}
}

func TestGradersHaveNeitherNetworkNorHiddenPaths(t *testing.T) {
	needBwrap(t)
	fam, one := family(t, map[string]string{"workdir/file": "x", ".env": "TASK_VALUE=v\n"})
	w := prepare(t, Config{Family: fam, Task: one, Ports: &Ports{}})
	listener, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(w.Port))
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	c, err := w.Copy(t.Context(), CopyConfig{})
	if err != nil {
		t.Fatal(err)
	}
	place := w.Grader(c)
	for _, name := range []string{"TASK_DIR", "HOOKS_DIR", "FAMILY_DIR", "AGENT_CWD", "TASK_VALUE"} {
		if _, there := place.Env[name]; there {
			t.Errorf("graders' environment has %s", name)
		}
	}
	_, out := run(t, place, "bash", "-c",
		`cat file; (exec 9<>/dev/tcp/127.0.0.1/$PORT) 2>/dev/null && echo connected; ls `+w.Dir+` `+fam.Dir+
			` 2>/dev/null; echo x >new && echo writes`)
	if out != "xwrites\n" {
		t.Errorf("the grader's world: %q", out)
	}
	if _, err := os.Stat(filepath.Join(w.Dir, "new")); err == nil {
		t.Error("the grader wrote to the original")
	}
}

func TestHooksGetTheirVariables(t *testing.T) {
	fam, one := family(t, nil)
	w := prepare(t, Config{Family: fam, Task: one, Ports: &Ports{}})
	env := w.Hook(w.Dir).Env
	got := map[string]string{}
	for _, name := range []string{"AGENT_CWD", "PORT", "TASK_ID", "TASK_DIR", "HOOKS_DIR", "FAMILY_DIR"} {
		got[name] = env[name]
	}
	want := map[string]string{
		"AGENT_CWD": w.Dir, "PORT": strconv.Itoa(w.Port), "TASK_ID": "one", "TASK_DIR": one.Dir,
		"HOOKS_DIR": one.Hooks.Dir, "FAMILY_DIR": fam.Dir,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if _, there := env["WORKDIR"]; there {
		t.Error("there is a WORKDIR")
	}
	// What hooks are told and the agent is not, programs of the agent that a hook starts are not
	// told either.
	agent := w.Agent().Env
	for name := range strings.SplitSeq(env[untrusted.Passes], ",") {
		if _, both := agent[name]; !both {
			t.Errorf("%s passes %s on", untrusted.Name, name)
		}
	}
	if orphan := prepare(t, Config{Task: one}); orphan.Hook(orphan.Dir).Env["FAMILY_DIR"] != "" {
		t.Error("without a family FAMILY_DIR is not empty")
	}
}

// processes lists the process ids whose command line contains a text.
func processes(t *testing.T, text string) []string {
	t.Helper()
	var found []string
	entries, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, name := range entries {
		if line, err := os.ReadFile(name); err == nil && strings.Contains(string(line), text) {
			found = append(found, name)
		}
	}
	return found
}

func TestPreflightServicesLiveUntilTheyAreStopped(t *testing.T) {
	for _, isolation := range []string{sandbox.IsolationNone, sandbox.IsolationBwrap} {
		t.Run(isolation, func(t *testing.T) {
			if isolation == sandbox.IsolationBwrap {
				needBwrap(t)
			}
			testenv.NeedTool(t, "python3")
			fam, one := family(t, map[string]string{
				"tasks/one/hooks/preflight.sh": "#!/bin/sh\ncd \"$AGENT_CWD\" || exit 1\nsetsid /usr/bin/python3 -m http.server --bind 127.0.0.1 $PORT &\n" +
					"for i in $(seq 1000); do /usr/bin/python3 -c \"import urllib.request;urllib.request.urlopen('http://127.0.0.1:$PORT')\" && exit 0; sleep 0.05; done 2>/dev/null\nexit 1\n",
				"workdir/hello": "x",
			})
			w := prepare(t, Config{Family: fam, Task: one, Ports: &Ports{}, Isolation: isolation})
			result, err := w.Preflight(t.Context(), "")
			if err != nil || !result.OK() || !result.Ran {
				t.Fatalf("%+v, %v", result, err)
			}
			if err := w.CheckServices(); err != nil {
				t.Error(err)
			}
			if sealed, err := w.Seal(t.Context()); err != nil || sealed.Killed != 0 || w.CheckServices() != nil {
				t.Errorf("sealing touched the service: %+v, %v", sealed, err)
			}
			w.StopServices()
			if left := processes(t, strconv.Itoa(w.Port)); len(left) > 0 {
				t.Errorf("left running: %v", left)
			}
		})
	}
}

// TestAServiceThatDiesIsMissed: fit started it, so its end is no failure of the agent.
func TestAServiceThatDiesIsMissed(t *testing.T) {
	testenv.NeedTool(t, "python3")
	fam, one := family(t, map[string]string{
		"tasks/one/hooks/preflight.sh": "#!/bin/sh\n/usr/bin/python3 -m http.server --bind 127.0.0.1 $PORT 2>log &\n" +
			"for i in $(seq 1000); do /usr/bin/python3 -c \"import urllib.request;" +
			"urllib.request.urlopen('http://127.0.0.1:$PORT')\" && exit 0; sleep 0.05; done 2>/dev/null\nexit 1\n",
	})
	w := prepare(t, Config{Family: fam, Task: one, Ports: &Ports{}, Isolation: sandbox.IsolationNone})
	if result, err := w.Preflight(t.Context(), ""); err != nil || !result.OK() {
		t.Fatalf("%+v, %v", result, err)
	}
	defer w.StopServices()
	if err := w.CheckServices(); err != nil {
		t.Fatalf("a service that lives: %v", err)
	}
	for _, name := range processes(t, "--bind\x00127.0.0.1\x00"+strconv.Itoa(w.Port)) {
		pid, err := strconv.Atoi(strings.Split(name, "/")[2])
		if err != nil || syscall.Kill(pid, syscall.SIGKILL) != nil {
			t.Fatalf("%s: cannot be killed", name)
		}
	}
	deadline := time.Now().Add(5 * time.Minute)
	for listens(w.services.pid, w.Port) && time.Now().Before(deadline) {
		runtime.Gosched()
	}
	if err := w.CheckServices(); !errors.Is(err, errServiceGone) {
		t.Errorf("a service that was killed: %v", err)
	}
}

func TestPreflightFailuresAreTold(t *testing.T) {
	const hangs = "sleep 1000"
	for name, test := range map[string]struct {
		script string
		want   PreflightResult
	}{
		"exit code": {
			"echo what went wrong >&2; exit 7",
			PreflightResult{Ran: true, ExitCode: 7, Message: "what went wrong"},
		},
		"silent": {"exit 3", PreflightResult{Ran: true, ExitCode: 3, Message: "preflight exited with code 3"}},
		"signal": {"kill -9 $$", PreflightResult{
			Ran: true, ExitCode: -1, Signal: "SIGKILL",
			Message: "preflight was killed by SIGKILL",
		}},
		"hang": {hangs, PreflightResult{
			Ran: true, ExitCode: -1, TimedOut: true,
			Message: "preflight did not end in time",
		}},
		"background": {
			"sleep 1001 & exit 5",
			PreflightResult{Ran: true, ExitCode: 5, Message: "preflight exited with code 5"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			fam, one := family(t, map[string]string{"tasks/one/hooks/preflight.sh": "#!/bin/sh\n" + test.script + "\n"})
			if test.script == hangs { // only this one is to be ended by its limit
				one.Settings.Timeouts.Preflight = 100 * time.Millisecond
			}
			w := prepare(t, Config{Family: fam, Task: one, Isolation: sandbox.IsolationNone})
			got, err := w.Preflight(t.Context(), "")
			if diff := cmp.Diff(test.want, got); diff != "" || err != nil || got.OK() {
				t.Errorf("%v %s", err, diff)
			}
		})
	}
	_, one := family(t, map[string]string{})
	w := prepare(t, Config{Task: one})
	if got, err := w.Preflight(t.Context(), ""); err != nil || got.Ran || !got.OK() {
		t.Errorf("a task without the hook: %+v, %v", got, err)
	}
}

func TestSealKillsWhatTheAgentLeft(t *testing.T) {
	_, one := family(t, nil)
	w := prepare(t, Config{Task: one, RunID: "seal-test-" + strconv.Itoa(os.Getpid())})
	marked := exec.Command("sleep", "3600")
	marked.Env = []string{"EVAL_RUN_ID=" + w.RunID}
	inDir := exec.Command("sleep", "3600")
	inDir.Dir = w.Dir
	for _, cmd := range []*exec.Cmd{marked, inDir} {
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		go cmd.Wait()
	}
	bystander := exec.Command("sleep", "3600")
	if err := bystander.Start(); err != nil {
		t.Fatal(err)
	}
	defer bystander.Wait()
	defer bystander.Process.Kill()
	sealed, err := w.Seal(t.Context())
	if err != nil || sealed.Killed != 2 || len(sealed.Unkillable) > 0 {
		t.Errorf("%+v, %v", sealed, err)
	}
	if err := bystander.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("somebody else was killed: %v", err)
	}
}
