package sandbox_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/fit-eval/fit/internal/cheattest"
	"github.com/fit-eval/fit/internal/sandbox"
	"github.com/fit-eval/fit/internal/testenv"
)

// isolatedRun is what a harness in a process of its own is to run.
type isolatedRun struct {
	Isolation sandbox.Isolation
	Limits    sandbox.Limits
	Dir       string
	Argv      []string
	Exceeded  string // what the program must be ended for
}

// playIsolated runs a program in a sandbox, as the user that this process is.
func playIsolated(text string) int {
	var what isolatedRun
	if err := json.Unmarshal([]byte(text), &what); err != nil {
		fmt.Println(err)
		return 1
	}
	result, err := sandbox.Local{}.Spawn(context.Background(), sandbox.SpawnSpec{
		Argv:      what.Argv,
		Dir:       what.Dir,
		Env:       append(searchPath(), "HOME="+what.Dir, roleVariable+"=attack", quickExit),
		Timeout:   patience,
		Isolation: what.Isolation,
		Limits:    what.Limits,
	}, os.Stdout, os.Stderr)
	if what.Exceeded != "" && result.Exceeded == what.Exceeded {
		return 0
	}
	if err != nil || result.ExitCode != 0 {
		fmt.Printf("harness: exit=%d signal=%s error=%v\n", result.ExitCode, result.Signal, err)
	}
	return 0
}

// attacker is a user who runs a harness, and with it a hostile program in a sandbox.
type attacker struct {
	uid     uint32
	harness string // this test binary
	parent  string // where workspaces are
	dir     string // the workspace, which is the user's
}

// eachUser runs a test as root and as a user without privileges.
func eachUser(t *testing.T, test func(t *testing.T, a attacker)) {
	t.Helper()
	needBwrap(t)
	users := map[string]uint32{"as this user": uint32(os.Getuid())}
	if os.Getuid() == 0 {
		users = map[string]uint32{"as root": 0, "as an ordinary user": testenv.Nobody}
	}
	for name, uid := range users {
		t.Run(name, func(t *testing.T) {
			a := attacker{uid: uid, harness: os.Args[0]}
			a.parent = t.TempDir()
			if os.Getuid() == 0 {
				a.harness = testenv.PublicBinary(t)
				a.parent = filepath.Dir(a.harness)
			}
			a.dir = a.newDir(t, a.parent)
			test(t, a)
		})
	}
}

// newDir makes a directory of the user's.
func (a attacker) newDir(t *testing.T, parent string) string {
	t.Helper()
	dir, err := os.MkdirTemp(parent, "fit-sandbox-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chown(dir, int(a.uid), int(a.uid)); err != nil {
		t.Fatal(err)
	}
	return dir
}

func (a attacker) command(t *testing.T, what isolatedRun) *exec.Cmd {
	t.Helper()
	if what.Dir == "" {
		what.Dir = a.dir
	}
	what.Isolation.Kind = sandbox.IsolationBwrap
	what.Isolation.Writable = append(what.Isolation.Writable, what.Dir)
	what.Isolation.ReadOnly = append(what.Isolation.ReadOnly, a.harness)
	text, err := json.Marshal(what)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(a.harness, string(text))
	cmd.Env = []string{
		"PATH=/usr/local/bin:/usr/bin:/bin", roleVariable + "=isolated", "TMPDIR=" + os.TempDir(), quickExit,
	}
	if os.Getuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: a.uid, Gid: a.uid}}
	}
	return cmd
}

// run returns what the program printed.
func (a attacker) run(t *testing.T, what isolatedRun) string {
	t.Helper()
	var out bytes.Buffer
	cmd := a.command(t, what)
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %s", err, out.String())
	}
	return out.String()
}

func (a attacker) shell(t *testing.T, script string) string {
	t.Helper()
	return a.run(t, isolatedRun{Argv: []string{"sh", "-c", script}})
}

// attack runs one of the attacks of playAttack.
func (a attacker) attack(t *testing.T, args ...string) string {
	t.Helper()
	return a.run(t, isolatedRun{Argv: append([]string{a.harness}, args...)})
}

func TestNobodyInTheSandboxIsRootOfTheMachine(t *testing.T) {
	eachUser(t, func(t *testing.T, a attacker) {
		out := a.shell(
			t,
			`cut -f1,3 /proc/self/uid_map >/dev/null; stat -c %u . ; id -u; grep -E '^(Uid|CapEff|CapPrm|CapInh):' /proc/self/status | tr -d '\t'`,
		)
		lines := strings.Split(strings.TrimSpace(out), "\n")
		if len(lines) != 6 || lines[0] != lines[1] || lines[1] == "0" || strings.Count(out, ":0000000000000000") != 3 {
			t.Errorf("the workspace's owner, the program's user and its privileges are %q", lines)
		}
	})
}

// Process 1 of a sandbox ends it and says with which status. A program in it can neither read nor
// write its memory, see where it is, open its files, nor end it.
func TestNoProgramTakesOverProcessOneOfItsSandbox(t *testing.T) {
	eachUser(t, func(t *testing.T, a attacker) {
		out := a.shell(t, cheattest.All(t, "any", nil)["process-one"].Files["program"])
		if out != "alive\nharness: exit=3 signal= error=<nil>\n" {
			t.Errorf("printed %q", out)
		}
	})
}

// Agent, hook and grader are different users to the kernel, and all of them are the workspace's
// owner.
func TestWhatOneProgramMakesTheNextAndTheHarnessMayUse(t *testing.T) {
	eachUser(t, func(t *testing.T, a attacker) {
		if out := a.shell(t, `umask 077; mkdir made; echo first >made/file; git init -q made/repository`); out != "" {
			t.Fatal(out)
		}
		if out := a.shell(t, `cat made/file; echo second >made/file; git -C made/repository status --short; chmod 700 made`); out != "first\n" {
			t.Errorf("the next program sees %q", out)
		}
		info, err := os.Stat(filepath.Join(a.dir, "made", "file"))
		if err != nil {
			t.Fatal(err)
		}
		if owner := info.Sys().(*syscall.Stat_t).Uid; owner != a.uid {
			t.Errorf("the file belongs to %d, the harness is %d", owner, a.uid)
		}
		if out := a.shell(t, `rm -r made && ls`); out != "" {
			t.Errorf("the last program leaves %q", out)
		}
	})
}

// The kernel runs the program in core_pattern as the root of the machine. Here it is only opened.
func TestTheKernelsSettingsAreReadOnly(t *testing.T) {
	eachUser(t, func(t *testing.T, a attacker) {
		out := a.shell(t, `for f in /proc/sys/kernel/core_pattern /proc/sys/kernel/hostname /proc/sysrq-trigger; do
			[ ! -e $f ] || { true >>$f; } 2>/dev/null && [ -e $f ] && echo "$f can be written"
		done
		grep -c ' /proc/sys proc ro' /proc/self/mounts; tr '\0' ' ' </proc/1/cmdline | grep -c -e '[-]-ro-bind'`)
		if want := "1\n0\nharness: exit=1 signal= error=<nil>\n"; out != want {
			t.Errorf("printed %q, want %q", out, want)
		}
	})
}

func TestFilesOfRootAndOfTheMachineAreNotShown(t *testing.T) {
	eachUser(t, func(t *testing.T, a attacker) {
		if os.Getuid() == 0 {
			secret := attacker{}.newDir(t, "/usr/local")
			if err := os.Chmod(secret, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(secret, "key"), []byte("SECRET"), 0o600); err != nil {
				t.Fatal(err)
			}
			if out := a.shell(t, "cat "+secret+"/key; true"); strings.Contains(out, "SECRET") {
				t.Errorf("a file that only root may read gives %q", out)
			}
		}
		out := a.shell(
			t,
			`ls -d /etc/ssl/private /etc/shadow /etc/ssh /etc/sudoers /etc/cron.d /etc/machine-id 2>/dev/null
			whoami >/dev/null || echo no name
			getent hosts localhost >/dev/null || echo no hosts
			echo done >/dev/stderr`,
		)
		if out != "done\n" {
			t.Errorf("printed %q", out)
		}
	})
}

// What the sandbox must not show lies where it shows everything else.
func TestWhatLiesInASystemDirectoryIsHiddenThereToo(t *testing.T) {
	if os.Getuid() != 0 {
		testenv.Missing(t, "only root can put a repository into a system directory")
	}
	for _, system := range []string{"/usr/src", "/opt"} {
		if _, err := os.Stat(system); err != nil {
			continue
		}
		eachUser(t, func(t *testing.T, a attacker) {
			repository := a.newDir(t, system)
			workspace := filepath.Join(repository, "tmp", "workspace")
			for _, dir := range []string{
				workspace, filepath.Join(repository, "home"),
				filepath.Join(repository, "rest"),
			} {
				if err := os.MkdirAll(dir, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			for _, file := range []string{"solution", "tmp/sibling", "home/login", "rest/file"} {
				if err := os.WriteFile(filepath.Join(repository, file), []byte("HIDDEN\n"), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			for _, path := range []string{repository, filepath.Join(repository, "tmp"), workspace} {
				if err := errors.Join(os.Chmod(path, 0o755), os.Chown(path, int(a.uid), int(a.uid))); err != nil {
					t.Fatal(err)
				}
			}
			script := []string{
				"sh",
				"-c",
				"cd " + repository + "; cat solution tmp/sibling home/login 2>/dev/null; cat rest/file; pwd >/dev/null; true",
			}
			// Our own directories are hidden without being named; the repository is named.
			for name, hidden := range map[string][]string{"own": nil, "named": {repository}} {
				cmd := a.command(
					t,
					isolatedRun{Argv: script, Dir: workspace, Isolation: sandbox.Isolation{Hidden: hidden}},
				)
				cmd.Env = append(cmd.Env, "TMPDIR="+repository+"/tmp", "HOME="+repository+"/home")
				out, err := cmd.CombinedOutput()
				want := map[string]int{"own": 2, "named": 0}[name]
				if err != nil || strings.Count(string(out), "HIDDEN") != want {
					t.Errorf("%s: %v: %q", name, err, out)
				}
			}
		})
	}
}

// mountTwice mounts a repository, what is around it and a part of it below a directory, and becomes
// the user who starts the sandbox.
const mountTwice = `repository=$1 below=$2 user=$3
mount --bind "$repository" "$below/whole" && mount --bind "$(dirname "$repository")" "$below/around" &&
mount --bind "$repository/part" "$below/part" || exit 1
shift 3
exec setpriv --reuid "$user" --regid "$user" --clear-groups "$@"`

// What is mounted a second time is hidden there too. The mounts are made in a namespace of their
// own.
func TestWhatIsMountedTwiceIsHiddenInBothPlaces(t *testing.T) {
	if os.Getuid() != 0 {
		testenv.Missing(t, "only root can mount a repository below a system directory")
	}
	eachUser(t, func(t *testing.T, a attacker) {
		around, opt, temporary := a.newDir(t, a.parent), a.newDir(t, "/opt"), a.newDir(t, a.parent)
		repository := filepath.Join(around, "the repository")
		for _, dir := range []string{repository + "/part", opt + "/whole", opt + "/around", opt + "/part"} {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(os.Chmod(around, 0o755), os.Chmod(opt, 0o755)); err != nil {
			t.Fatal(err)
		}
		for path, text := range map[string]string{
			repository + "/solution": "HIDDEN\n", repository + "/part/solution": "HIDDEN\n", around + "/seen": "seen\n",
		} {
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		for name, test := range map[string]struct {
			isolation sandbox.Isolation
			want      string
		}{
			"by its name":       {sandbox.Isolation{Hidden: []string{repository}}, "seen\n"},
			"by its other name": {sandbox.Isolation{Hidden: []string{opt + "/whole"}}, "seen\n"},
			"but for what is asked": {
				sandbox.Isolation{Hidden: []string{repository}, ReadOnly: []string{opt + "/part"}}, "HIDDEN\nseen\n",
			},
		} {
			cmd := a.command(t, isolatedRun{
				Argv:      []string{"sh", "-c", "cd " + opt + " && find . -type f -exec cat {} + | sort"},
				Isolation: test.isolation,
			})
			in := []string{"unshare", "-m", "sh", "-c", mountTwice, "sh", repository, opt, fmt.Sprint(a.uid), cmd.Path}
			asRoot := exec.Command(in[0], append(in[1:], cmd.Args[1:]...)...)
			asRoot.Env = slices.Concat(cmd.Env, []string{"TMPDIR=" + temporary}) // which is hidden, too
			if out, err := asRoot.CombinedOutput(); err != nil || string(out) != test.want {
				t.Errorf("%s: %v: %q", name, err, out)
			}
		}
	})
}

func TestSystemCallsThatReachOutOfTheSandboxAreRefused(t *testing.T) {
	eachUser(t, func(t *testing.T, a attacker) {
		wantRefused(t, a.attack(t, "calls"), append(slices.Clone(outOfEverySandbox), "ptrace", "process_vm_readv")...)
	})
}

// outOfEverySandbox are calls that reach out of a sandbox, whether bubblewrap or a container engine
// made it.
var outOfEverySandbox = []string{
	"keyctl", "add_key", "request_key", "bpf", "perf_event_open", "userfaultfd", "mount", "fsopen", "open_tree",
	"setns", "kexec_load", "syslog", "open_by_handle_at", "io_uring_setup", "vsock", "vsock pair", "alg",
}

// wantRefused checks what the attack "calls" printed.
func wantRefused(t *testing.T, out string, calls ...string) {
	t.Helper()
	for _, name := range calls {
		if !strings.Contains(out, name+" refused\n") {
			t.Errorf("%s: %s", name, out)
		}
	}
}

// The same calls are refused in a container, to its root and to its users, with and without the
// machine's network. Keys are the machine's: a container would read them, and leave messages there.
func TestSystemCallsThatReachOutOfAContainerAreRefused(t *testing.T) {
	for name, hostNetwork := range map[string]bool{"with its own network": false, "with the machine's network": true} {
		t.Run(name, func(t *testing.T) {
			_, isolation := newContainer(t, func(cfg *sandbox.ContainerConfig) {
				cfg.HostNetwork = hostNetwork
				cfg.Mounts = []sandbox.ContainerMount{{Source: os.Args[0], Target: "/attack", ReadOnly: true}}
			})
			for _, user := range []string{"root", "agent"} {
				isolation.User = user
				_, out := inside(t, isolation, roleVariable+"=attack /attack calls")
				wantRefused(t, out, outOfEverySandbox...)
			}
		})
	}
}

func TestTwoContainersShareNoKeys(t *testing.T) {
	secret := fmt.Sprintf("fit-test-key-%d", os.Getpid())
	id, err := unix.AddKey("user", secret, []byte("of the machine"), unix.KEY_SPEC_USER_KEYRING)
	if err != nil {
		testenv.Missing(t, "the kernel keeps no keys for this user (%v): run it as root, outside of a container", err)
	}
	defer func() { _, _ = unix.KeyctlInt(unix.KEYCTL_UNLINK, id, unix.KEY_SPEC_USER_KEYRING, 0, 0) }()
	_, isolation := newContainer(t, func(cfg *sandbox.ContainerConfig) {
		cfg.Mounts = []sandbox.ContainerMount{{Source: os.Args[0], Target: "/attack", ReadOnly: true}}
	})
	_, out := inside(t, isolation, roleVariable+"=attack /attack find "+secret)
	if out != "" {
		t.Errorf("a key of the machine is found: %s", out)
	}
}

// Two runs that nothing connects: what the first leaves must not reach the second, while it runs or
// afterwards.
func TestTwoRunsShareNothingThatCanBeWritten(t *testing.T) {
	eachUser(t, func(t *testing.T, a attacker) {
		second := a
		second.dir = a.newDir(t, a.parent)
		name := fmt.Sprintf("fit-test-%d-%d", os.Getpid(), a.uid)
		leave := a.command(t, isolatedRun{Argv: []string{a.harness, "leave", name}})
		stdout, err := leave.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := leave.Start(); err != nil {
			t.Fatal(err)
		}
		defer func() {
			_ = leave.Process.Kill()
			_ = leave.Wait()
		}()
		if said, err := bufio.NewReader(stdout).ReadString('\n'); said != "left\n" {
			t.Fatalf("the first run did not come up: %q, %v", said, err)
		}
		if out := second.attack(t, "find", name); out != "" {
			t.Errorf("the second run found %s", out)
		}
	})
}

// Whoever may write to a file may set its times to now, and device files are the machine's.
func TestTheTimesOfDeviceFilesCarryNoMessage(t *testing.T) {
	eachUser(t, func(t *testing.T, a attacker) {
		out := a.shell(t, `for d in null zero full random urandom tty; do touch /dev/$d && echo "$d is changed"; done 2>/dev/null
			echo works >/dev/null; head -c 1 /dev/zero | wc -c; grep CapEff /proc/self/status | tr -d '\t'`)
		if out != "1\nCapEff:0000000000000000\n" {
			t.Errorf("printed %q", out)
		}
	})
}

// A file system on which owners cannot be mapped: programs keep root's number, and nothing else of
// root.
func TestWithoutMappedOwnersProgramsKeepRootsNumberOnly(t *testing.T) {
	if !testenv.CanMount(t) {
		return
	}
	needBwrap(t)
	a := attacker{harness: testenv.PublicBinary(t)}
	a.dir = filepath.Dir(a.harness)
	layers := t.TempDir()
	for _, dir := range []string{"lower", "upper", "work", "merged"} {
		if err := os.Mkdir(filepath.Join(layers, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	merged := filepath.Join(layers, "merged")
	inner := a.command(t, isolatedRun{Dir: merged, Argv: []string{
		"sh", "-c",
		`echo mine >made && id -u && grep CapEff /proc/self/status | tr -d '\t'; { true >>/proc/sys/kernel/core_pattern; } 2>/dev/null || echo refused`,
	}})
	cmd := exec.Command(testenv.NeedTool(t, "unshare"), append([]string{
		"-m", "sh", "-c",
		`mount -t overlay overlay -o lowerdir="$0"/lower,upperdir="$0"/upper,workdir="$0"/work "$0"/merged || exit 9; exec "$@"`,
		layers,
	}, inner.Args...)...)
	cmd.Env = inner.Env
	out, err := cmd.CombinedOutput()
	if err != nil {
		testenv.Missing(t, "no overlay file system: %v: %s", err, out)
	}
	if want := "0\nCapEff:0000000000000000\nrefused\n"; string(out) != want {
		t.Errorf("printed %q, want %q", out, want)
	}
}

func TestNothingEscapesFromAnOrdinaryUser(t *testing.T) {
	testenv.AsOrdinaryUser(t, []string{
		"TestDoctorsEscapeFails", "TestWhatContainersNeedIsSaid", "TestProgramsShareAPrivateNetworkAndReachNothingElse",
		"TestHiddenVariablesAreGoneFromTheKernelsListOnly", "TestATreeThatUsesTooMuchIsEnded",
		"TestLimitsHoldForTheProgramAndItsChildren", "TestFileLimitStopsAWriter", "TestMemoryLimitStopsAnEater",
		"TestFloodIsKilledAtTheOutputLimit",
	})
}

func TestWhatContainersNeedIsSaid(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := sandbox.FindEngine(t.Context(), "")
	if err == nil || strings.Contains(err.Error(), "newuidmap") != (os.Getuid() != 0) {
		t.Errorf("user %d reads: %v", os.Getuid(), err)
	}
}

func TestDoctorsEscapeFails(t *testing.T) {
	needBwrap(t)
	if got := sandbox.TryEscape(t.Context()); !got.OK || !strings.Contains(got.Detail, "refused") {
		t.Errorf("got %+v", got)
	}
}

// channels are the ways from one program to another that are tried.
var channels = []string{
	"user key", "session key", "shared memory", "message queue", "abstract socket",
	"loopback port", "/tmp/", "/dev/shm/", "/var/tmp/", "/run/",
}

// playAttack is a hostile program.
func playAttack(args []string) int {
	switch args[0] {
	case "calls":
		attackCalls()
	case "leave":
		for _, channel := range channels {
			_ = leave(channel, args[1]) // what is refused cannot be found either
		}
		fmt.Println("left")
		_ = syscall.Pause() // until it is killed with the harness
	case "find":
		for _, channel := range channels {
			if found := find(channel, args[1]); found != "nothing" {
				fmt.Printf("%s: %s\n", channel, found)
			}
		}
	case "reach":
		return reach(args[1], args[2:])
	}
	return 0
}

// nobody is a process that there never is. To trace it is refused like any tracing; where tracing
// is allowed, as in a container, nothing stops: a program that asks to be traced stops for good at
// its next signal.
const nobody = 1 << 30

func attackCalls() {
	for name, call := range map[string]func() unix.Errno{
		"keyctl":            raw(unix.SYS_KEYCTL, unix.KEYCTL_GET_KEYRING_ID, keyring(unix.KEY_SPEC_USER_KEYRING), 1),
		"add_key":           raw(unix.SYS_ADD_KEY, 0, 0, 0),
		"request_key":       raw(unix.SYS_REQUEST_KEY, 0, 0, 0),
		"ptrace":            raw(unix.SYS_PTRACE, unix.PTRACE_ATTACH, nobody, 0),
		"process_vm_readv":  raw(unix.SYS_PROCESS_VM_READV, uintptr(os.Getpid()), 0, 0),
		"bpf":               raw(unix.SYS_BPF, 0, 0, 0),
		"perf_event_open":   raw(unix.SYS_PERF_EVENT_OPEN, 0, 0, 0),
		"userfaultfd":       raw(unix.SYS_USERFAULTFD, unix.O_CLOEXEC, 0, 0),
		"mount":             raw(unix.SYS_MOUNT, 0, 0, 0),
		"fsopen":            raw(unix.SYS_FSOPEN, 0, 0, 0),
		"open_tree":         raw(unix.SYS_OPEN_TREE, 0, 0, 0),
		"kexec_load":        raw(unix.SYS_KEXEC_LOAD, 0, 0, 0),
		"io_uring_setup":    raw(unix.SYS_IO_URING_SETUP, 0, 0, 0),
		"setns":             raw(unix.SYS_SETNS, 0, 0, 0),
		"syslog":            raw(unix.SYS_SYSLOG, 10, 0, 0),
		"open_by_handle_at": raw(unix.SYS_OPEN_BY_HANDLE_AT, 0, 0, 0),
		"alg":               raw(unix.SYS_SOCKET, unix.AF_ALG, unix.SOCK_SEQPACKET, 0),
		"vsock":             raw(unix.SYS_SOCKET, unix.AF_VSOCK, unix.SOCK_STREAM, 0),
		"vsock pair":        raw(unix.SYS_SOCKETPAIR, unix.AF_VSOCK, unix.SOCK_STREAM, 0),
	} {
		if errno := call(); errno == unix.EPERM || errno == unix.ENOSYS || errno == unix.EAFNOSUPPORT {
			fmt.Println(name, "refused")
		} else {
			fmt.Println(name, "gives", errno)
		}
	}
}

func raw(number, a, b, c uintptr) func() unix.Errno {
	return func() unix.Errno {
		_, _, errno := unix.Syscall(number, a, b, c)
		return errno
	}
}

func keyring(id int) uintptr { return uintptr(id) }

// sysvKey is the number that both runs know.
func sysvKey(name string) int {
	sum := 0x7f17
	for _, r := range name {
		sum = sum*31 + int(r)
	}
	return sum & 0x7fff_ffff
}

// leave puts a message where the next run may find it.
func leave(channel, name string) error {
	switch channel {
	case "user key", "session key":
		ring := unix.KEY_SPEC_USER_KEYRING
		if channel == "session key" {
			ring = unix.KEY_SPEC_SESSION_KEYRING
		}
		id, err := unix.AddKey("user", name, []byte("HIDDEN"), ring)
		if err != nil {
			return err
		}
		return unix.KeyctlSetperm(id, 0x3f3f3f3f)
	case "shared memory":
		id, err := unix.SysvShmGet(sysvKey(name), 4096, unix.IPC_CREAT|0o666)
		if err != nil {
			return err
		}
		memory, err := unix.SysvShmAttach(id, 0, 0)
		copy(memory, "HIDDEN")
		return err
	case "message queue":
		return messageQueue(name, unix.O_CREAT|unix.O_RDWR)
	case "abstract socket":
		_, err := net.Listen("unix", "@"+name)
		return err
	case "loopback port":
		_, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(20000+sysvKey(name)%9999))
		return err
	default:
		return os.WriteFile(channel+name, []byte("HIDDEN"), 0o666)
	}
}

// find reports whether the other run's message is there.
func find(channel, name string) string {
	var err error
	switch channel {
	case "user key", "session key":
		if _, err = unix.RequestKey("user", name, "", 0); err != nil {
			_, err = unix.KeyctlSearch(unix.KEY_SPEC_USER_KEYRING, "user", name, 0)
		}
	case "shared memory":
		_, err = unix.SysvShmGet(sysvKey(name), 4096, 0o666)
	case "message queue":
		err = messageQueue(name, unix.O_RDONLY)
	case "abstract socket":
		_, err = net.Dial("unix", "@"+name)
	case "loopback port":
		_, err = net.Dial("tcp", "127.0.0.1:"+strconv.Itoa(20000+sysvKey(name)%9999))
	default:
		_, err = os.ReadFile(channel + name)
	}
	if err != nil {
		return "nothing"
	}
	return "HIDDEN"
}

func messageQueue(name string, flags int) error {
	text, err := unix.BytePtrFromString(name)
	if err != nil {
		return err
	}
	_, _, errno := unix.Syscall6(unix.SYS_MQ_OPEN, uintptr(unsafe.Pointer(text)), uintptr(flags), 0o666, 0, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}
