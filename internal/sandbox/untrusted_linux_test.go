package sandbox_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/fit-eval/fit/internal/sandbox"
	"github.com/fit-eval/fit/internal/sandbox/untrusted"
	"github.com/fit-eval/fit/internal/testenv"
)

// reachScript is a hook with a helper of its own that runs a program which attacks both, and then
// says how it is. HARNESS is this test binary, BIN has fit-untrusted in it.
const reachScript = `PATH=BIN:$PATH
sleep MARKER1 & helper=$!
flags() { sed -n s/flags://p /proc/$$/fdinfo/0 /proc/$$/fdinfo/1 /proc/$$/fdinfo/2; }; before=$(flags)
fit-untrusted env ROLE=attack HARNESS reach MARKER2 $$ $helper $PPID; echo "status $?"
kill -0 $helper && [ "$before" = "$(flags)" ] && echo "the helper lives; $(ulimit -n) $(ulimit -Hn) files"
kill -9 $helper
`

// reachHook writes the hook's script for a harness. What it prints shows whether it was reached.
func reachHook(t *testing.T, a attacker) (script, marker string, unharmed func(printed string) bool) {
	t.Helper()
	bin := a.newDir(t, a.parent)
	if err := os.Symlink(a.harness, filepath.Join(bin, untrusted.Name)); err != nil {
		t.Fatal(err)
	}
	marker = newMarker(t)
	words := strings.NewReplacer("BIN", bin, "ROLE", roleVariable, "HARNESS", a.harness, "MARKER", marker)
	script = words.Replace(reachScript)
	return script, marker, func(printed string) bool {
		return strings.HasPrefix(printed, "tried\nstatus 5\nthe helper lives; ") &&
			!strings.Contains(printed, "; 7 ") && strings.HasSuffix(printed, " files\n")
	}
}

func TestUntrustedProgramsDoNotReachTheHookInASandbox(t *testing.T) {
	eachUser(t, func(t *testing.T, a attacker) {
		script, marker, unharmed := reachHook(t, a)
		out := a.run(t, isolatedRun{
			Argv:      []string{"sh", "-c", script},
			Isolation: sandbox.Isolation{ReadOnly: []string{a.parent}},
		})
		if !unharmed(out) {
			t.Errorf("the hook printed %q", out)
		}
		mustBeGone(t, marker)
	})
}

// TestUntrustedProgramsDoNotReachTheHook runs hooks without a sandbox, also where the kernel
// refuses namespaces.
func TestUntrustedProgramsDoNotReachTheHook(t *testing.T) {
	unshare := testenv.NeedTool(t, "unshare")
	refused := []string{"--user", "--map-root-user"}
	// The hook is not process 1, which the kernel protects.
	around := map[string]struct {
		namespace []string
		script    string
	}{
		"namespaces":         {script: `"$@"; exit $?`},
		"no user namespaces": {namespace: refused, script: `echo 0 >/proc/sys/user/max_user_namespaces; "$@"; exit $?`},
		"no namespaces": {
			namespace: refused,
			script:    `echo 0 >/proc/sys/user/max_user_namespaces; setpriv --bounding-set=-all "$@"; exit $?`,
		},
	}
	eachUser(t, func(t *testing.T, a attacker) {
		for name, test := range around {
			t.Run(name, func(t *testing.T) {
				if name == "no namespaces" && !scopesSignals() {
					testenv.Missing(t, "Linux 6.12, whose Landlock can keep signals in")
				}
				script, marker, unharmed := reachHook(t, a)
				if test.namespace == nil && a.uid != 0 {
					test.namespace = []string{"--user", "--map-current-user"}
				}
				// Whatever gets through ends at this namespace.
				argv := slices.Concat([]string{"--pid", "--fork", "--mount-proc"}, test.namespace,
					[]string{"sh", "-c", test.script, "sh", "sh", "-c", script})
				cmd := exec.Command(unshare, argv...)
				cmd.Dir = a.dir
				cmd.Env = []string{"PATH=/usr/local/bin:/usr/bin:/bin", roleVariable + "=attack", quickExit}
				cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
				if os.Getuid() == 0 {
					cmd.SysProcAttr.Credential = &syscall.Credential{Uid: a.uid, Gid: a.uid}
				}
				var out bytes.Buffer
				cmd.Stdout, cmd.Stderr = &out, &out
				err := cmd.Run()
				if !unharmed(out.String()) {
					t.Errorf("the hook printed %q: %v", out.String(), err)
				}
				if name != "no namespaces" {
					mustBeGone(t, marker)
				}
			})
		}
	})
}

// scopesSignals reports whether the kernel has what is used where there are no namespaces.
func scopesSignals() bool {
	version, _, _ := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	return int(version) >= 6
}

// reach attacks the processes with these numbers, and prints what it could do. It leaves a process
// behind that sleeps, and ends with status 5.
func reach(sleep string, targets []string) int {
	signal.Ignore(syscall.SIGTERM)
	left := exec.Command("sleep", sleep)
	left.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := left.Start(); err != nil {
		fmt.Println(err)
	}
	for _, text := range targets {
		pid, err := strconv.Atoi(text)
		if err != nil || pid == left.Process.Pid || unix.Tgkill(os.Getpid(), pid, 0) == nil ||
			unix.Tgkill(os.Getppid(), pid, 0) == nil {
			continue // here the number is that of a thread of ours, or of our process 1
		}
		reachByProc(pid)
		reachByNumber(pid)
	}
	for fd := range 3 {
		_ = unix.SetNonblock(fd, true)
	}
	_ = unix.Kill(os.Getppid(), unix.SIGKILL)
	_ = unix.Kill(0, unix.SIGTERM)
	_ = unix.Kill(-1, unix.SIGTERM)
	fmt.Println("tried")
	_ = unix.Kill(-1, unix.SIGKILL)
	return 5
}

// reachByNumber attacks a process by its number, which is nobody's in a namespace of its own.
func reachByNumber(pid int) {
	limit := unix.Rlimit{Cur: 7, Max: 7}
	_ = unix.Prlimit(pid, unix.RLIMIT_NOFILE, &limit, nil)
	if unix.PtraceSeize(pid) == nil {
		fmt.Println("traced", pid)
	}
	if pidfd, err := unix.PidfdOpen(pid, 0); err == nil {
		_ = unix.PidfdSendSignal(pidfd, unix.SIGKILL, nil, 0)
	}
	_, _ = unix.FcntlInt(1, unix.F_SETOWN, pid)
	_, _ = unix.FcntlInt(1, unix.F_SETSIG, int(unix.SIGKILL))
	_, _ = unix.FcntlInt(1, unix.F_SETFL, unix.O_ASYNC)
	_, _, _ = unix.Syscall(unix.SYS_TGKILL, uintptr(pid), uintptr(pid), uintptr(unix.SIGKILL))
	_, _, _ = unix.Syscall(unix.SYS_TKILL, uintptr(pid), uintptr(unix.SIGKILL), 0)
	_ = unix.Kill(-pid, unix.SIGKILL)
	_ = unix.Kill(pid, unix.SIGKILL)
}

// reachByProc attacks a process by what /proc shows of it.
func reachByProc(pid int) {
	dir := fmt.Sprintf("/proc/%d", pid)
	for _, name := range []string{"/mem", "/environ", "/fd/1", "/root/etc", "/cwd/", "/maps"} {
		file, err := os.Open(dir + name)
		if err != nil {
			continue
		}
		var content [64]byte
		if n, _ := file.ReadAt(content[:], 0); n > 0 || name != "/mem" && name != "/maps" {
			fmt.Println("opened", dir+name)
		}
		_ = file.Close()
	}
	handle, err := unix.Open(dir, unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	info := unsafe.Pointer(nil)
	_, _, errno := unix.Syscall6(unix.SYS_PIDFD_SEND_SIGNAL, uintptr(handle), uintptr(unix.SIGKILL), uintptr(info), 0,
		0, 0)
	if errno == 0 {
		fmt.Println("killed by its directory:", pid)
	}
	_ = unix.Close(handle)
}

// Where nothing can be mounted, what is hidden can be neither read, run, listed nor changed,
// whether or not the kernel allows namespaces.
func TestFilesOfTheHookAreHiddenWhereNothingCanBeMounted(t *testing.T) {
	testenv.NeedTool(t, "unshare")
	const script = `cd "$(mktemp -d)" && mkdir -p kept work/shown kept/work && echo word | tee kept/word kept/work/word >word
cp /bin/echo kept/echo; export OUT=$PWD FIT_UNTRUSTED=PATH,TMPDIR,OUT
export FIT_UNTRUSTED_VIEW='{"hidden":["'$PWD'/kept","'$PWD'/word"],"shown":["'$PWD'/kept/work"]}'
cat >work/program <<'END'
cat kept/work/word; cat kept/word word /proc/self/root$OUT/kept/word; kept/echo run; ls kept
mv kept/word work/shown && cat work/shown/word; ln kept/word work/word && cat work/word
echo new >work/new && mkdir work/made && mv work/new work/made/new && cat work/made/new
echo temporary >"$TMPDIR/file" && cat "$TMPDIR/file"
(echo forged >kept/word) 2>/dev/null; mv work/new kept/word; rm -f kept/word; ln -s x kept/link; mkdir kept/dir
END
fit-untrusted sh work/program 2>/dev/null; rm -r work/made
unshare -Ur sh -c 'echo 0 >/proc/sys/user/max_user_namespaces; fit-untrusted sh work/program 2>/dev/null'
ls kept; cat kept/word; rm -r "$PWD"`
	out, errs, _, status := asUntrusted(t, script)
	want := strings.Repeat("word\nnew\ntemporary\n", 2) + "echo\nword\nwork\nword\n"
	if out != want || errs != "" || status != 0 {
		t.Errorf("printed %q and %q, status %d, want %q", out, errs, status, want)
	}
}

// A program gets the input that is meant for it, and not what its starter may read on from. Where
// that is withheld, the program says what to write.
func TestUntrustedProgramsGetTheInputThatIsMeantForThem(t *testing.T) {
	testenv.NeedTool(t, "python3")
	testenv.NeedTool(t, "node")
	const (
		twice = `printf '1\n2\n' `
		loop  = `while read -r i; do fit-untrusted cat; timeout 60 fit-untrusted cat; echo $i; done`
		file  = `echo 1 >f; `
	)
	given := map[string]string{
		`fit-untrusted --stdin cat; true`:                                                                    "input\n",
		`cat | fit-untrusted cat`:                                                                            "input\n",
		`for i in 1 2; do echo $i | fit-untrusted cat; done`:                                                 "1\n2\n",
		`sleep 0.1 | fit-untrusted cat`:                                                                      "",
		`echo 1 | timeout 60 fit-untrusted --stdin cat`:                                                      "1\n",
		`echo 1 | fit-untrusted timeout 60 cat`:                                                              "1\n",
		file + `fit-untrusted cat <f; timeout 60 fit-untrusted cat <f`:                                       "1\n1\n",
		twice + `>f; ` + loop + ` <f`:                                                                        "1\n2\n",
		file + `fit-untrusted sh -c 'echo 2 >/dev/fd/0' <f; cat f`:                                           "1\n",
		file + `</dev/null fit-untrusted sh -c 'test -f /dev/fd/1 || echo 2; echo 3 >&2' >>f 2>&1; cat f`:    "1\n2\n3\n",
		"bash -c 'fit-untrusted cat <<END\n1\nEND\ntrue'":                                                    "1\n",
		"sh <<END\nfit-untrusted cat\n: 2\nEND":                                                              "",
		`python3 -c 'import subprocess; subprocess.run(["fit-untrusted", "cat"], input=b"1")'`:               "1",
		`node -e 'child_process.spawnSync("fit-untrusted", ["cat"], {input: "1\n", stdio: ["pipe", 1, 2]})'`: "1\n",
	}
	// What the hook prints where the program does, the program cannot read.
	given[`{ echo 1; fit-untrusted sh -c 'exec 4>&1; timeout 1 head -c 1 /dev/fd/4 >f' </dev/null; echo >end; } |
{ until [ -e end ]; do sleep 0.05; done; cat; wc -c <f; }`] = "1\n0\n"
	given[`{ fit-untrusted sh -c 'yes; echo $? >f' </dev/null; } | head -n 1`] = "y\n"
	withheld := map[string]string{
		`fit-untrusted cat; true`:                "",
		`echo 1 | timeout 60 fit-untrusted cat`:  "",
		twice + `| ` + loop:                      "1\n2\n",
		`f() { fit-untrusted cat; }; echo 1 | f`: "",
	}
	for script, want := range withheld {
		t.Run(script, func(t *testing.T) {
			stdout, stderr, _, status := asUntrusted(t, script)
			if stdout != want || status != 0 || !strings.Contains(stderr, "write fit-untrusted --stdin") {
				t.Errorf("printed %q and %q, status %d, want %q and what to write", stdout, stderr, status, want)
			}
		})
	}
	for script, want := range given {
		t.Run(script, func(t *testing.T) {
			if stdout, stderr, _, status := asUntrusted(t, script); stdout != want || stderr != "" || status != 0 {
				t.Errorf("printed %q and %q, status %d, want %q", stdout, stderr, status, want)
			}
		})
	}
}
