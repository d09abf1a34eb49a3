package sandbox_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fit-eval/fit/internal/containertest"
	"github.com/fit-eval/fit/internal/sandbox"
	"github.com/fit-eval/fit/internal/sandbox/proc"
)

// newContainer is a container of the small image, with a working directory.
func newContainer(t *testing.T, change func(*sandbox.ContainerConfig)) (*sandbox.Container, sandbox.Isolation) {
	t.Helper()
	engine := containertest.Engine(t)
	image, err := engine.Inspect(t.Context(), containertest.Image(t))
	if err != nil {
		t.Fatal(err)
	}
	work := t.TempDir()
	cfg := sandbox.ContainerConfig{
		Engine:  engine,
		Image:   image,
		Work:    work,
		Workdir: "/app",
	}
	if change != nil {
		change(&cfg)
	}
	c := sandbox.NewContainer(cfg)
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Errorf("close the container: %v", err)
		}
	})
	return c, sandbox.Isolation{Kind: engine.Kind, Container: c, Writable: []string{work}}
}

// inside runs a script in a container.
func inside(t *testing.T, isolation sandbox.Isolation, script string) (sandbox.SpawnResult, string) {
	t.Helper()
	var out bytes.Buffer
	result, err := sandbox.Local{}.Spawn(t.Context(), sandbox.SpawnSpec{
		Argv:      []string{"sh", "-c", script},
		Dir:       isolation.Writable[0],
		Env:       []string{"PATH=/nowhere", "GIVEN=1"},
		Isolation: isolation,
		Timeout:   5 * time.Minute,
		Grace:     -1,
	}, &out, &out)
	if err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out.String())
	}
	return result, out.String()
}

// expect runs a script and wants it to print something.
func expect(t *testing.T, isolation sandbox.Isolation, script, want string) {
	t.Helper()
	if result, got := inside(t, isolation, script); got != want {
		t.Errorf("%s printed %q with status %d, want %q", script, got, result.ExitCode, want)
	}
}

func TestProgramsInAContainerSeeItsImageAndWhatTheyAreShown(t *testing.T) {
	c, isolation := newContainer(t, nil)
	work := isolation.Writable[0]
	expect(t, isolation, `pwd; echo $IN_IMAGE$GIVEN; echo made > file; exit 0`, "/app\nyes1\n")
	if content, err := os.ReadFile(filepath.Join(work, "file")); err != nil || string(content) != "made\n" {
		t.Errorf("the file has %q, %v", content, err)
	}
	expect(t, isolation, `ls /work /tmp/fit-containertest* 2>/dev/null; id -u; cat `+work+`/file`, "0\nmade\n")
	// what one program leaves outside of the working directory, the next one finds
	expect(t, isolation, `echo kept > /etc/kept`, "")
	expect(t, isolation, `cat /etc/kept; exit 3`, "kept\n")
	if result, _ := inside(t, isolation, "exit 3"); result.ExitCode != 3 || result.Containment != sandbox.InsideEngine {
		t.Errorf("ended with %+v", result)
	}
	if result, _ := inside(t, isolation, "kill -9 $$"); result.Signal != "SIGKILL" {
		t.Errorf("ended with %+v", result)
	}
	_, err := sandbox.Local{}.Spawn(t.Context(),
		sandbox.SpawnSpec{Argv: []string{"no-such-program"}, Isolation: isolation}, nil, nil)
	if err == nil || !strings.Contains(err.Error(), "not found") {
		t.Errorf("a missing program: %v", err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := (sandbox.Local{}).Spawn(t.Context(),
		sandbox.SpawnSpec{Argv: []string{"true"}, Isolation: isolation}, nil, nil); err == nil {
		t.Error("a container that was removed still runs programs")
	}
}

func TestUsersAndFilesOfAContainer(t *testing.T) {
	c, isolation := newContainer(t, func(cfg *sandbox.ContainerConfig) { cfg.User = "agent" })
	if err := c.Own(t.Context(), "", isolation, isolation.Writable[0]); err != nil {
		t.Fatal(err)
	}
	expect(t, isolation, `id -u; id -g; id -G; echo x > mine && echo ok; (echo x > /etc/x) 2>/dev/null || echo refused`,
		"1000\n1000\n1000 2000\nok\nrefused\n")
	root := isolation
	root.User = "root"
	expect(t, root, "id -u; mkdir -p /etc/tests; ln -s /etc/tests /tests", "0\n")
	for user, want := range map[string]string{"7:8": "7 8\n", "agent:2000": "1000 2000\n"} {
		other := isolation
		other.User = user
		expect(t, other, `echo $(id -u) $(id -g)`, want)
	}
	for user, want := range map[string]string{"": "/home/agent\n", "root": "/root\n", "7": "\n"} {
		home := isolation
		home.User, home.ImageHome = user, true
		expect(t, home, `echo $HOME`, want)
	}
	tests := t.TempDir()
	if err := os.WriteFile(filepath.Join(tests, "test.sh"), []byte("echo tested\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := c.Put(t.Context(), tests, "/tests"); err != nil {
		t.Fatal(err)
	}
	expect(t, isolation, "/tests/test.sh; ls /etc/tests", "tested\n")
	if err := c.Clear(t.Context(), "/logs", 0o777); err != nil {
		t.Fatal(err)
	}
	expect(t, isolation, "echo 1 > /logs/reward; ln -s /etc/passwd /logs/link", "")
	got := filepath.Join(t.TempDir(), "got")
	if err := c.Get(t.Context(), "/logs", got, 1<<20); err != nil {
		t.Fatal(err)
	}
	if content, err := os.ReadFile(filepath.Join(got, "reward")); err != nil || string(content) != "1\n" {
		t.Errorf("got %q, %v", content, err)
	}
	if _, err := os.Lstat(filepath.Join(got, "link")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the link came along: %v", err)
	}
	if err := c.Get(t.Context(), "/nothing", t.TempDir(), 1<<20); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("nothing was there: %v", err)
	}
	if err := c.Get(t.Context(), "/bin/git", t.TempDir(), 1000); err == nil {
		t.Error("a file larger than the limit came out")
	}
}

func TestAContainerWithoutNetworkReachesWhatIsOpenedForIt(t *testing.T) {
	c, isolation := newContainer(t, nil)
	release, err := c.Open(t.Context(), 8123, func(listener net.Listener) error {
		server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, "the model")
		})}
		return server.Serve(listener)
	})
	if err != nil {
		t.Fatal(err)
	}
	const ask = `exec 3<>/dev/tcp/127.0.0.1/8123 && printf 'GET / HTTP/1.0\r\n\r\n' >&3 && cat <&3 | tail -n 1`
	_, got := inside(t, isolation, "bash -c '"+strings.ReplaceAll(ask, "'", `'\''`)+"'")
	if got != "the model" {
		t.Errorf("the model answered %q", got)
	}
	release()
	expect(t, isolation, "bash -c 'exec 3<>/dev/tcp/127.0.0.1/8123' 2>/dev/null || echo closed", "closed\n")
	// neither the machine's loopback nor anything else
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	expect(t, isolation, "bash -c 'exec 3<>/dev/tcp/127.0.0.1/"+port+"' 2>/dev/null || echo closed", "closed\n")
	expect(t, isolation, "cut -d: -f1 /proc/net/dev | tail -n +3 | tr -d ' '", "lo\n")
}

func TestAHostileProgramDoesNotLeaveItsContainer(t *testing.T) {
	_, isolation := newContainer(t, func(cfg *sandbox.ContainerConfig) {
		cfg.Processes, cfg.MemoryBytes, cfg.CPUs = 64, 256<<20, 1
	})
	// the first process can neither be killed nor stopped from inside
	expect(t, isolation, "kill -9 1; kill -TERM 1; kill -STOP 1; kill -QUIT 1; kill -SEGV 1; echo alive", "alive\n")
	expect(t, isolation, "echo still", "still\n")
	// left processes are gone when the program is, also those that hide
	result, _ := inside(t, isolation, "for i in 1 2 3; do (setsid sleep 98765 >/dev/null 2>&1 &); done")
	if result.LeftoversKilled != 3 {
		t.Errorf("killed %d processes that were left", result.LeftoversKilled)
	}
	expect(t, isolation, "ps -e | grep -c sleep", "0\n")
	// nothing of the machine can be reached
	expect(t, isolation, `mount -t tmpfs none /mnt 2>/dev/null || echo no mount
echo b 2>/dev/null > /proc/sysrq-trigger || echo no sysrq
(echo 1 > /proc/sys/kernel/panic) 2>/dev/null || echo no sysctl
cat /proc/1/environ 2>/dev/null | wc -c
ls /proc/1/root/etc/shadow 2>/dev/null || echo no shadow
ls /.fit/line | wc -l
(echo x > /.fit/fit-sandbox-container) 2>/dev/null || echo read-only`,
		"no mount\nno sysrq\nno sysctl\n0\nno shadow\n0\nread-only\n")
	// a fork bomb hits the limit, and its end is certain
	bomb, err := sandbox.Local{}.Spawn(t.Context(), sandbox.SpawnSpec{
		Argv:      []string{"bash", "-c", "b() { b | b & }; b; sleep 100"},
		Dir:       isolation.Writable[0],
		Isolation: isolation,
		Timeout:   time.Second,
		Grace:     -1,
	}, nil, nil)
	if err != nil || !bomb.TimedOut || len(bomb.Unkillable) > 0 {
		t.Errorf("the fork bomb ended with %+v, %v", bomb, err)
	}
	expect(t, isolation, "ps -e | grep -c bash", "0\n")
	// programs are no more urgent than we are, though their supervisor may be
	priority, err := syscall.Getpriority(syscall.PRIO_PROCESS, 0)
	if err != nil {
		t.Fatal(err)
	}
	expect(t, isolation, "ps -o ni= -p $$ | tr -d ' '", fmt.Sprintln(20-priority))
	// neither do those of a program that kills its supervisor outlive it
	for _, script := range []string{
		"setsid sleep 98765 & kill -9 $PPID; sleep 98765",
		"env -i setsid bash -c 'b() { b | b & }; b; sleep 98765' & sleep 0.5; kill -9 $PPID; sleep 98765",
	} {
		if result, _ := inside(t, isolation, script); result.Signal != "SIGKILL" || result.LeftoversKilled == 0 {
			t.Errorf("%s ended with %+v", script, result)
		}
		expect(t, isolation, "ps -e | grep -c -e bash -e sleep", "0\n")
	}
	// one that stops its supervisor, or takes devices away, ends as it would have
	for _, script := range []string{"kill -STOP $PPID; exit 5", "rm /dev/null; exit 5"} {
		if result, _ := inside(t, isolation, script); result.ExitCode != 5 {
			t.Errorf("%s ended with %+v", script, result)
		}
		expect(t, isolation, "echo still", "still\n")
	}
	const hungry = "dd if=/dev/zero of=/dev/null bs=600M count=1 2>/dev/null; echo $?"
	if _, got := inside(t, isolation, hungry); got == "0\n" {
		t.Error("a program used more memory than its container has")
	}
}

func TestHundredsOfProcessesThatWereLeftAreEnded(t *testing.T) {
	_, isolation := newContainer(t, nil)
	const hundreds = "echo kept > /etc/kept; for i in $(seq 600); do sleep 98765 > /dev/null 2>&1 & done"
	if result, _ := inside(t, isolation, hundreds); result.LeftoversKilled != 600 {
		t.Errorf("ended with %+v", result)
	}
	expect(t, isolation, "cat /etc/kept", "kept\n") // the container was not ended for it
}

func TestAContainerForFewProcessesRunsThem(t *testing.T) {
	_, isolation := newContainer(t, func(cfg *sandbox.ContainerConfig) { cfg.Processes = 4 })
	for range 5 {
		expect(t, isolation, "echo $(id -u)", "0\n")
	}
}

func TestWhatAProgramLeavesRunningIsNamedAndEnded(t *testing.T) {
	c, isolation := newContainer(t, func(cfg *sandbox.ContainerConfig) { cfg.KeepRunning = true })
	// one plays a supervisor, and one was left by a program that killed its own
	inside(t, isolation, `bash -c 'exec -a fit-sandbox-reaper /.fit/fit-sandbox-container 3< <(sleep 98765)' \
> /dev/null 2>&1 &`)
	inside(t, isolation, "(setsid tail -f /dev/null) > /dev/null 2>&1 & sleep 1; kill -9 $PPID")
	want := []string{"fit-sandbox-con", "sleep", "tail"}
	for deadline := time.Now().Add(time.Minute); ; { // the shell that killed its supervisor may still be at its end
		left, err := c.Left(t.Context())
		if err == nil && slices.Equal(left, want) {
			break
		}
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("%q were left, %v; want %q", left, err, want)
		}
	}
	if err := c.EndLeft(t.Context()); err != nil {
		t.Error(err)
	}
	if left, err := c.Left(t.Context()); err != nil || len(left) > 0 {
		t.Errorf("%q outlived their end, %v", left, err)
	}
	expect(t, isolation, "echo still", "still\n")
}

func TestAProgramThatFillsTheDiskIsEnded(t *testing.T) {
	_, isolation := newContainer(t, nil)
	// It goes on writing: what is there when the first look is taken does not count.
	const fill = `for i in $(seq 1000); do dd if=/dev/zero bs=1M count=4 2>/dev/null >> %s; sleep 0.1; done; sleep 100`
	for _, target := range []string{"/app/big", "/var/tmp/big"} {
		result, err := sandbox.Local{}.Spawn(t.Context(), sandbox.SpawnSpec{
			Argv:      []string{"sh", "-c", fmt.Sprintf(fill, target)},
			Dir:       isolation.Writable[0],
			Isolation: isolation,
			Limits:    sandbox.Limits{DiskBytes: 32 << 20},
			Timeout:   5 * time.Minute,
			Grace:     -1,
		}, nil, nil)
		if err != nil || result.Exceeded != proc.ExceededDisk {
			t.Errorf("%s: %+v, %v", target, result, err)
		}
	}
}

func TestAContainerEndsWithWhoeverStartedIt(t *testing.T) {
	engine, image := containertest.Engine(t), containertest.Image(t)
	cmd := exec.Command(os.Args[0], image)
	cmd.Env = append(os.Environ(), roleVariable+"=container")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var name [6]byte
	if _, err := out.Read(name[:]); err != nil || !strings.HasPrefix(string(name[:]), "ready") {
		t.Fatalf("%q, %v", name, err)
	}
	owner := fmt.Sprintf("/%d/", cmd.Process.Pid)
	if err := errors.Join(cmd.Process.Kill()); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	for deadline := time.Now().Add(5 * time.Minute); ; {
		listed, err := exec.Command("podman", "ps", "--all", "--filter", "label=dev.fit.owner",
			"--format", "{{.Labels}}").Output()
		// the list fails when another process takes away one of its containers meanwhile
		if err == nil && !strings.Contains(string(listed), owner) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the container is still there: %v", err)
		}
		if _, err := engine.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	program := "^sleep 87654321." + strconv.Itoa(os.Getpid())
	if processes, _ := exec.Command("pgrep", "-f", program).Output(); len(processes) > 0 {
		t.Errorf("a process of the container is alive: %s", processes)
	}
}

// playContainer runs a program in a container until it is killed.
func playContainer(image string) int {
	engine, err := sandbox.FindEngine(context.Background(), sandbox.IsolationPodman)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	found, err := engine.Inspect(context.Background(), image)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	c := sandbox.NewContainer(sandbox.ContainerConfig{Engine: engine, Image: found})
	_, err = sandbox.Local{}.Spawn(context.Background(), sandbox.SpawnSpec{
		Argv:      []string{"sleep", fmt.Sprint("87654321.", os.Getppid())},
		Isolation: sandbox.Isolation{Kind: engine.Kind, Container: c},
		OnStart:   func(int) { fmt.Println("ready") },
	}, nil, nil)
	fmt.Println(err)
	return 1
}
