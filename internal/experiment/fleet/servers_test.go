package fleet

import (
	"bytes"
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/fit-eval/fit/internal/experiment"
	"github.com/fit-eval/fit/internal/testenv"
	"github.com/fit-eval/fit/ledger"
)

// debian starts the server of Debian's package. It returns its address and what starts it again
// after a kill -9.
func debian(t *testing.T, store string) (address string, again func()) {
	t.Helper()
	program := testenv.NeedTool(t, "nats-server")
	port := testenv.FreePort(t)
	address = "127.0.0.1:" + port
	var command *exec.Cmd
	end := func() {
		if command != nil {
			_ = command.Process.Kill()
			_ = command.Wait()
		}
	}
	again = func() {
		end()
		command = exec.Command(program, "-js", "-sd", store, "-a", "127.0.0.1", "-p", port, "--user", "fleet", "--pass",
			"wrong-horse")
		if err := command.Start(); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the server listens", func() bool {
			conn, err := net.Dial("tcp", address)
			if err == nil {
				_ = conn.Close()
			}
			return err == nil
		})
	}
	again()
	t.Cleanup(end)
	return address, again
}

// The same experiment on the embedded server and on the one of Debian's package: a cap, large
// artefacts, an infrastructure error, and a server that is started again in the middle.
func TestBothServers(t *testing.T) {
	t.Parallel()
	for name, begin := range map[string]func(t *testing.T) (w *world, again func()){
		"embedded": func(t *testing.T) (*world, func()) {
			t.Helper()
			w := newWorld(t)
			return w, func() {
				w.server.Close()
				w.serve(hubAddress(t, w.url))
			}
		},
		"nats-server": func(t *testing.T) (*world, func()) {
			t.Helper()
			w := &world{t: t, dir: t.TempDir()}
			address, again := debian(t, filepath.Join(w.dir, "store"))
			_, err := Dial(t.Context(), Dialing{URL: "nats://fleet:bad@" + address, Role: RoleCoordinator})
			if err == nil || strings.Contains(err.Error(), "bad") {
				t.Errorf("a wrong password: %v", err)
			}
			w.url = "nats://fleet:wrong-horse@" + address
			return w, again
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, again := begin(t)
			p, output := w.prepared(4, 2, "a", "b"), filepath.Join(w.dir, "run")
			if err := w.dial().SetCap(t.Context(), "model", 3); err != nil {
				t.Fatal(err)
			}
			large := bytes.Repeat([]byte("0123456789abcdef"), 64<<10) // beyond what fits in a message
			var count counter
			var failed atomic.Bool
			for _, worker := range []string{"w1", "w2"} {
				var sink experiment.Sink
				w.work(worker, 3, nil, func(cfg *WorkerConfig) {
					cfg.Executor = func(_ context.Context, job Job) (Attempts, error) {
						sink = job.Sink
						do := func(_ context.Context, cell experiment.Cell, n int) ledger.Record {
							defer count.enter()()
							if cell.Name() == p.Plan.Cells()[1].Name() && failed.CompareAndSwap(false, true) {
								return ledger.Record{Verdict: ledger.Error, ErrorClass: ledger.ErrorSetup}
							}
							dir := sink.AttemptDir(cell.RunDir(n))
							if err := os.MkdirAll(dir, 0o700); err != nil {
								t.Error(err)
							}
							if err := os.WriteFile(filepath.Join(dir, "large"), large, 0o600); err != nil {
								t.Error(err)
							}
							return verdict(cell)
						}
						return &fake{sink: sink, do: do}, nil
					}
				})
			}
			dir, e := w.coordinate(p, output, nil)
			done := w.start(dir, e)
			eventually(t, "some are done", func() bool { return count.begun.Load() > 5 })
			again()
			if outcome := <-done; outcome.Status != experiment.Complete {
				t.Fatalf("%+v", outcome)
			}
			for _, r := range w.check(p, output) {
				got, err := os.ReadFile(filepath.Join(output, filepath.FromSlash(r.RunDir), "large"))
				if r.Verdict != ledger.Error && (err != nil || !bytes.Equal(got, large)) {
					t.Errorf("%s left %d bytes, %v", r.Key(), len(got), err)
				}
			}
			if count.most.Load() > 3 || !failed.Load() {
				t.Errorf("%d ran at a time, the cap is 3; an attempt failed: %v", count.most.Load(), failed.Load())
			}
			eventually(t, "the experiment's streams are removed", func() bool {
				return len(streams(t, w.dial())) == 3
			})
		})
	}
}

// A hub's address and directory are its own, and its URL leads to it.
func TestAddressesOfAHub(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	hub, err := StartServer(ServerConfig{Listen: "0.0.0.0:0", Dir: dir, Public: "hub.example.com:4222"})
	if err != nil {
		t.Fatal(err)
	}
	defer hub.Close()
	if !strings.Contains(hub.URL(RoleWorker), "@hub.example.com:4222?cert=") {
		t.Errorf("%s", hub.URL(RoleWorker))
	}
	own, err := Dial(t.Context(), Dialing{URL: hub.OwnURL(RoleCoordinator), Role: RoleCoordinator})
	if err != nil {
		t.Fatalf("its own URL: %v", err)
	}
	own.Close()
	taken := hubAddress(t, hub.OwnURL(RoleWorker))
	for name, c := range map[string]struct {
		cfg  ServerConfig
		want string
	}{
		"directory": {ServerConfig{Listen: "127.0.0.1:0", Dir: dir}, "another hub uses"},
		"port":      {ServerConfig{Listen: "127.0.0.1:99999", Dir: t.TempDir()}, "the port must be from 0 to 65535"},
		"public":    {ServerConfig{Listen: "127.0.0.1:0", Dir: t.TempDir(), Public: "nonsense"}, "must be host:port"},
		"in use":    {ServerConfig{Listen: taken, Dir: t.TempDir()}, "address already in use"},
	} {
		t.Run(name, func(t *testing.T) {
			if other, err := StartServer(c.cfg); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v, want %q", name, err, c.want)
				if err == nil {
					other.Close()
				}
			}
		})
	}
	all, err := StartServer(ServerConfig{Listen: ":0", Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer all.Close()
	reached, err := Dial(t.Context(), Dialing{URL: all.URL(RoleCoordinator), Role: RoleCoordinator})
	if err != nil {
		t.Fatalf("a hub that listens everywhere says %s: %v", hubAddress(t, all.URL(RoleWorker)), err)
	}
	reached.Close()
}
