package fleet

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"

	"github.com/fit-eval/fit/internal/experiment"
	"github.com/fit-eval/fit/internal/testenv"
	"github.com/fit-eval/fit/internal/tree"
	"github.com/fit-eval/fit/ledger"
)

// peer is somebody with a key of the fleet and a client of their own.
type peer struct {
	t    *testing.T
	nc   *nats.Conn
	js   jetstream.JetStream
	pair nkeys.KeyPair
	key  string
}

// join connects with the URL in a file.
func join(t *testing.T, file string) *peer {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	at, err := url.Parse(strings.TrimSpace(string(content)))
	if err != nil {
		t.Fatal(err)
	}
	p := &peer{t: t}
	if p.pair, err = nkeys.FromSeed([]byte(at.User.Username())); err != nil {
		t.Fatal(err)
	}
	if p.key, err = p.pair.PublicKey(); err != nil {
		t.Fatal(err)
	}
	p.nc, err = nats.Connect("nats://"+at.Host, nats.Nkey(p.key, p.pair.Sign), nats.CustomInboxPrefix("_INBOX."+p.key),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.nc.Close)
	if p.js, err = jetstream.New(p.nc, jetstream.WithDefaultTimeout(5*time.Second)); err != nil {
		t.Fatal(err)
	}
	return p
}

// may reports whether the hub answers a request; one without permission is not answered.
func (p *peer) may(subject string, content string) bool {
	p.t.Helper()
	answer, err := p.nc.Request(subject, []byte(content), 500*time.Millisecond)
	return err == nil && !strings.Contains(string(answer.Data), `"error"`)
}

// pool is what the fleet's store says about the experiment.
type pool struct {
	Run, Name, By string
	Needs         struct {
		Agents    map[string]string
		Isolation string
	}
}

func (p *peer) pool() pool {
	p.t.Helper()
	var found pool
	eventually(p.t, "an experiment is there", func() bool {
		answer, err := p.nc.Request("$JS.API.DIRECT.GET.KV_fit-fleet",
			[]byte(`{"seq":1,"next_by_subj":"$KV.fit-fleet.pool.>"}`), 5*time.Second)
		return err == nil && json.Unmarshal(answer.Data, &found) == nil && found.Run != ""
	})
	return found
}

// send publishes a result, signed with the key of the peer.
func (p *peer) send(run, name string, result map[string]any) {
	p.t.Helper()
	sum := sha256.Sum256([]byte(name))
	message := nats.NewMsg(fmt.Sprintf("fit.done.%s.%s.%s", run, p.key, hex.EncodeToString(sum[:12])))
	result["protocol"], result["name"] = 2, name
	for key, value := range map[string]any{"nonce": hex.EncodeToString(sum[12:20]), "worker": "enemy", "host": "h"} {
		if result[key] == nil {
			result[key] = value
		}
	}
	var err error
	if message.Data, err = json.Marshal(result); err != nil {
		p.t.Fatal(err)
	}
	signature, err := p.pair.Sign(append([]byte(message.Subject+"\n"), message.Data...))
	if err != nil {
		p.t.Fatal(err)
	}
	message.Header.Set("Fit-Key", p.key)
	message.Header.Set("Fit-Signature", base64.StdEncoding.EncodeToString(signature))
	if _, err := p.js.PublishMsg(context.Background(), message); err != nil {
		p.t.Error(err)
	}
}

// taken is an attempt that was given to the peer.
type taken struct {
	message jetstream.Msg
	name    string
	Ticket  string
	Cell    experiment.Cell
	Attempt int
}

// take takes an attempt, as a worker does.
func (p *peer) take(of pool) *taken {
	p.t.Helper()
	got := &taken{}
	eventually(p.t, "an attempt is given to the peer", func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		consumer, err := p.js.Consumer(ctx, "fit-work-"+of.Run+"-"+of.Name, "workers")
		if err != nil {
			return false
		}
		batch, err := consumer.Fetch(1, jetstream.FetchMaxWait(time.Second))
		if err != nil {
			return false
		}
		got.message = <-batch.Messages()
		return got.message != nil && json.Unmarshal(got.message.Data(), got) == nil
	})
	got.name = got.Cell.RunDir(got.Attempt)
	return got
}

// passed is the record of a pass.
func (of pool) passed(name string) map[string]any {
	return map[string]any{
		"verdict": "pass", "grade": map[string]any{"verdict": "pass", "gatesPass": true, "healthy": true},
		"agent": "builtin", "agentVersion": of.Needs.Agents["builtin"], "isolation": of.Needs.Isolation,
		"agentTracePath": name + "/agent.ndjson", "durationMs": 5,
	}
}

// packed is the directory of an attempt, as workers send it, with its hash.
func packed(t *testing.T, files map[string]string) (content []byte, hash string) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if target, link := strings.CutPrefix(text, "-> "); link {
			if err := os.Symlink(target, path); err != nil {
				t.Fatal(err)
			}
		} else if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var plain bytes.Buffer
	if err := (tree.Walk{}).Pack(&plain, dir); err != nil {
		t.Fatal(err)
	}
	return squeezed(t, &plain)
}

func squeezed(t *testing.T, plain io.Reader) (content []byte, hash string) {
	t.Helper()
	var out bytes.Buffer
	encoder, err := zstd.NewWriter(&out, zstd.WithWindowSize(1<<20))
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.New()
	_, err = io.Copy(io.MultiWriter(encoder, sum), plain)
	if err = errors.Join(err, encoder.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes(), hex.EncodeToString(sum.Sum(nil))
}

// bomb is an archive with a file of zeros.
func bomb(t *testing.T, size int64) (content []byte, hash string) {
	t.Helper()
	dir := t.TempDir()
	file, err := os.Create(filepath.Join(dir, "agent.ndjson"))
	if err == nil {
		err = errors.Join(file.Truncate(size), file.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	reader, writer := io.Pipe()
	go func() { _ = writer.CloseWithError(tree.Walk{}.Pack(writer, dir)) }()
	return squeezed(t, reader)
}

// onBothServers runs a test with the hub of fit, and with a NATS server that has its roles. The
// peer has a worker's key, and the fleet may have more settings.
func onBothServers(t *testing.T, test func(t *testing.T, w *world, enemy *peer), settings ...string) {
	t.Helper()
	for name, serve := range map[string]func(w *world){
		"embedded": func(w *world) { w.serveHub(testenv.FreePort(w.t), 5*time.Second, settings...) },
		"nats-server": func(w *world) {
			program, address := testenv.NeedTool(w.t, "nats-server"), "127.0.0.1:"+testenv.FreePort(w.t)
			roles := w.start(nil, nil, "fleet", "permissions", address, "--dir", "hub", "--for", "conf")
			<-roles.over
			conf := fmt.Sprintf("listen: %q\njetstream {store_dir: %q}\n%s", address, filepath.Join(w.dir, "store"),
				roles.out)
			file := filepath.Join(w.dir, "nats.conf")
			if err := os.WriteFile(file, []byte(conf), 0o600); err != nil {
				w.t.Fatal(err)
			}
			server := exec.Command(program, "-c", file)
			if err := server.Start(); err != nil {
				w.t.Fatal(err)
			}
			w.t.Cleanup(func() { _ = server.Process.Kill(); _ = server.Wait() })
			eventually(w.t, "the server listens", func() bool {
				conn, err := net.Dial("tcp", address)
				if err == nil {
					_ = conn.Close()
				}
				return err == nil
			})
			w.url = filepath.Join(w.dir, "hub", "coordinator.url")
			w.worker = filepath.Join(w.dir, "hub", "worker.url")
			<-w.start(nil, nil, append([]string{
				"fleet", "serve", "--nats", w.url, "--lease", "5s",
			}, settings...)...).over
		},
	} {
		t.Run(name, func(t *testing.T) {
			binary, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			w := &world{
				t:       t,
				dir:     t.TempDir(),
				binary:  binary,
				address: "127.0.0.1",
				model:   testenv.FreePort(t),
			}
			w.family(2)
			<-w.start(nil, nil, "fleet", "key", "add", "enemy", "worker", "--dir", "hub").over
			serve(w)
			test(t, w, join(t, filepath.Join(w.dir, "hub", "enemy.url")))
		})
	}
}

// finish lets an honest worker finish the experiment, and returns what counts.
func (w *world) finish(coordinator *process) map[ledger.Cell]ledger.Record {
	w.t.Helper()
	w.work(w.machine(1, 0))
	<-coordinator.over
	if code := coordinator.cmd.ProcessState.ExitCode(); code != 0 {
		w.t.Errorf("the coordinator ended with %d", code)
	}
	records, contents := w.counted("fleet")
	for _, r := range contents.Records {
		if r.Worker != "w1" || r.SignedBy == "" || r.Verdict == ledger.Error {
			w.t.Errorf("%s: %s by %q, signed by %q: %s", r.Key(), r.Verdict, r.Worker, r.SignedBy, r.ErrorMessage)
		}
	}
	if len(records) != 4 {
		w.t.Errorf("%d cells count, want 4", len(records))
	}
	if strings.ContainsRune(coordinator.out.String(), '\x1b') {
		w.t.Error("an escape reached the terminal")
	}
	return records
}
