package fleet

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fit-eval/fit/internal/cli"
	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/containertest"
	"github.com/fit-eval/fit/internal/testenv"
)

// The environment that makes the test binary fit itself: which version it says it is, and by how
// much its clock is off.
const (
	envVersion = "FIT_FLEET_TEST_VERSION"
	envClock   = "FIT_FLEET_TEST_CLOCK"
)

func TestMain(m *testing.M) {
	version := os.Getenv(envVersion)
	if version == "" {
		code := m.Run()
		containertest.Remove()
		os.Exit(code)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	con := console.System(version)
	if off, err := time.ParseDuration(os.Getenv(envClock)); err == nil {
		con.Now = func() time.Time { return time.Now().Add(off) }
	}
	os.Exit(cli.Run(ctx, os.Args, con))
}

// world is a hub with the processes around it.
type world struct {
	t       *testing.T
	dir     string
	binary  string
	private bool // every machine has a network of its own
	address string
	url     string // the file with the URL of coordinators
	worker  string // that of workers
	model   string // port of the models
}

// machine is a place where processes run: a network of its own, or this one.
type machine struct {
	name   string
	holder *exec.Cmd // keeps the network; nil: the test's
	link   string    // on the hub's side
	tmp    string
	model  *process // nil: that of the first machine
}

// process is a run of fit.
type process struct {
	t    *testing.T
	name string
	cmd  *exec.Cmd
	out  *output
	over chan struct{}
}

// output collects what a process says.
type output struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.all.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.all.String()
}

func newWorld(t *testing.T) *world {
	t.Helper()
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	w := &world{
		t:       t,
		dir:     t.TempDir(),
		binary:  binary,
		private: os.Getuid() == 0,
		address: "127.0.0.1",
		model:   testenv.FreePort(t),
	}
	if w.private {
		w.address = fmt.Sprintf("10.%d.%d.1", 200+os.Getpid()%50, os.Getpid()/50%250)
		w.bridge()
	}
	return w
}

// command runs a program of the system to its end.
func (w *world) command(argv ...string) {
	w.t.Helper()
	if out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput(); err != nil {
		w.t.Fatalf("%s: %v\n%s", strings.Join(argv, " "), err, out)
	}
}

func (w *world) bridgeName() string { return fmt.Sprintf("fitbr%d", os.Getpid()) }

// bridge makes the switch that the machines are connected to.
func (w *world) bridge() {
	w.t.Helper()
	w.command("ip", "link", "add", "name", w.bridgeName(), "type", "bridge")
	w.t.Cleanup(func() { w.command("ip", "link", "delete", w.bridgeName()) })
	w.command("ip", "addr", "add", w.address+"/24", "dev", w.bridgeName())
	w.command("ip", "link", "set", w.bridgeName(), "up")
}

// machine makes a machine with a model on its own loopback interface. Its network goes with the
// process that holds it. A disk of its own has a size in megabytes; 0: none.
func (w *world) machine(number, disk int) *machine {
	w.t.Helper()
	m := &machine{name: fmt.Sprintf("w%d", number), tmp: filepath.Join(w.dir, fmt.Sprintf("w%d", number))}
	if err := os.Mkdir(m.tmp, 0o755); err != nil {
		w.t.Fatal(err)
	}
	if w.private && disk > 0 {
		w.disk(m.tmp, disk)
	}
	if !w.private {
		if number == 1 {
			w.serveModel(m)
		}
		return m
	}
	m.holder = exec.Command("sleep", "infinity")
	m.holder.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	if err := m.holder.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = m.holder.Process.Kill(); _ = m.holder.Wait() })
	pid := strconv.Itoa(m.holder.Process.Pid)
	m.link = fmt.Sprintf("fit%d-%d", os.Getpid(), number)
	inside := w.address[:strings.LastIndexByte(w.address, '.')+1] + strconv.Itoa(1+number)
	w.command("ip", "link", "add", "name", m.link, "type", "veth", "peer", "name", "eth0", "netns", pid)
	w.t.Cleanup(func() { _ = exec.Command("ip", "link", "delete", m.link).Run() }) // sockets may keep the network
	w.command("ip", "link", "set", m.link, "master", w.bridgeName(), "up")
	w.command("nsenter", "-t", pid, "-n", "ip", "link", "set", "lo", "up")
	w.command("nsenter", "-t", pid, "-n", "ip", "addr", "add", inside+"/24", "dev", "eth0")
	w.command("nsenter", "-t", pid, "-n", "ip", "link", "set", "eth0", "up")
	w.serveModel(m)
	return m
}

// disk gives a directory a disk of its own, of some megabytes.
func (w *world) disk(dir string, size int) {
	w.t.Helper()
	w.command("mount", "-t", "tmpfs", "-o", fmt.Sprintf("size=%dm", size), "fit-test", dir)
	w.t.Cleanup(func() { w.command("umount", "-l", dir) })
}

// fillDisk leaves no room on a disk that is not the test's own, and returns what makes room again.
func (w *world) fillDisk(dir string) func() {
	w.t.Helper()
	if !w.private {
		return func() {}
	}
	name := filepath.Join(dir, "filler")
	file, err := os.Create(name)
	if err != nil {
		w.t.Fatal(err)
	}
	defer file.Close()
	for block := make([]byte, 1<<20); err == nil; {
		_, err = file.Write(block)
	}
	w.t.Logf("the disk of %s is full", filepath.Base(dir))
	return func() { _ = os.Remove(name) }
}

// cut ends or restores the connection of a machine. Without networks of their own the worker is
// stopped instead, which the hub cannot tell apart.
func (w *world) cut(m *machine, worker *process, cut bool) {
	w.t.Helper()
	w.t.Logf("link of %s: cut %v", m.name, cut)
	state, sign := "up", syscall.SIGCONT
	if cut {
		state, sign = "down", syscall.SIGSTOP
	}
	if !w.private {
		_ = worker.cmd.Process.Signal(sign) // it may have ended
	} else if err := exec.Command("ip", "link", "set", m.link, state).Run(); err != nil {
		w.t.Errorf("link of %s: %v", m.name, err)
	}
}

// reaches waits until a machine reaches the hub: a link that is up again carries nothing for a
// while.
func (w *world) reaches(m *machine, port string) {
	w.t.Helper()
	if !w.private {
		return
	}
	pid, connect := strconv.Itoa(m.holder.Process.Pid), "exec 3<>/dev/tcp/"+w.address+"/"+port
	eventually(w.t, m.name+" reaches the hub", func() bool {
		return exec.Command("nsenter", "-t", pid, "-n", "--", "bash", "-c", connect).Run() == nil
	})
}

// start starts fit on a machine; nil is the hub's.
func (w *world) start(m *machine, environ []string, args ...string) *process {
	w.t.Helper()
	argv := append([]string{w.binary}, args...)
	if m != nil && m.holder != nil {
		argv = append([]string{"nsenter", "-t", strconv.Itoa(m.holder.Process.Pid), "-n", "--"}, argv...)
	}
	p := &process{t: w.t, name: strings.Join(args[:2], " "), out: &output{}, over: make(chan struct{})}
	p.cmd = exec.Command(argv[0], argv[1:]...)
	p.cmd.Dir = w.dir
	tmp := filepath.Join(w.dir, "tmp")
	if m != nil {
		p.name, tmp = p.name+" on "+m.name, filepath.Join(m.tmp, "tmp")
	}
	_ = os.MkdirAll(tmp, 0o755)
	p.cmd.Env = append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + w.dir, "LANG=C.UTF-8", "TMPDIR=" + tmp, envVersion + "=1.2.3",
	}, environ...)
	p.cmd.Stdout, p.cmd.Stderr = p.out, p.out
	p.cmd.WaitDelay = time.Second
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := p.cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	go func() { _ = p.cmd.Wait(); close(p.over) }()
	w.t.Cleanup(func() {
		p.kill()
		if w.t.Failed() {
			text := p.out.String()
			w.t.Logf("%s said:\n%s", p.name, shorten(text))
		}
	})
	return p
}

// shorten returns the end of what a process said, without the records.
func shorten(text string) string {
	lines := strings.Split(text, "\n")
	lines = slices.DeleteFunc(lines, func(line string) bool { return strings.HasPrefix(line, "{") })
	return strings.Join(lines[max(0, len(lines)-40):], "\n")
}

// kill is kill -9. What the process has started must end by itself.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.over
}

// says waits until a process has said something.
func (p *process) says(text string) {
	p.t.Helper()
	eventually(p.t, p.name+" says "+text, func() bool {
		select {
		case <-p.over:
			p.t.Fatalf("%s ended before it said %q:\n%s", p.name, text, p.out)
		default:
		}
		return strings.Contains(p.out.String(), text)
	})
}

// eventually waits until something is true.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(15 * time.Minute); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within 15 minutes: %s", what)
		}
	}
}

// serveHub starts the hub; the same address makes it the same hub.
func (w *world) serveHub(port string, lease time.Duration, more ...string) *process {
	w.t.Helper()
	hub := w.start(nil, nil, append([]string{
		"fleet", "serve", "--listen", net.JoinHostPort(w.address, port), "--dir", "hub", "--lease", lease.String(),
	}, more...)...)
	hub.says("workers join with")
	w.url, w.worker = filepath.Join(w.dir, "hub", "coordinator.url"), filepath.Join(w.dir, "hub", "worker.url")
	return hub
}

// serveModel starts the model of a machine.
func (w *world) serveModel(m *machine) {
	w.t.Helper()
	m.model = w.start(m, nil, "model", "serve", "--script", "script.json", "--addr", "127.0.0.1:"+w.model)
	m.model.says("http://")
}

// work starts the worker of a machine.
func (w *world) work(m *machine, environ ...string) *process {
	w.t.Helper()
	p := w.start(m, environ, "fleet", "work", "--fleet", w.worker, "--slots", "2", "--name", m.name, "--dir",
		filepath.Join(m.tmp, "fleet"))
	p.says("at a time")
	return p
}
