package fleet

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"

	"github.com/fit-eval/fit/experiment"
	"github.com/fit-eval/fit/internal/testenv"
	"github.com/fit-eval/fit/ledger"
	"github.com/fit-eval/fit/task"
)

// Who does not belong to the fleet is refused in one line that says why and does not repeat the
// token.
func TestStrangersAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	own, err := parseJoinURL(w.url)
	if err != nil {
		t.Fatal(err)
	}
	secure, err := StartServer(ServerConfig{Listen: "0.0.0.0:0", Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer secure.Close()
	withTLS, err := parseJoinURL(secure.URL())
	if err != nil || withTLS.Fingerprint == "" {
		t.Fatalf("%s %v", secure.URL(), err)
	}
	_, port, err := net.SplitHostPort(withTLS.Address)
	if err != nil {
		t.Fatal(err)
	}
	withTLS.Address = "127.0.0.1:" + port
	hub, err := Dial(t.Context(), withTLS.String(), "test")
	if err != nil {
		t.Fatalf("the right one: %v", err)
	}
	hub.Close()
	pair, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	seed, err := pair.Seed()
	if err != nil {
		t.Fatal(err)
	}
	wrongToken := own
	wrongToken.Token = string(seed)
	wrongCert, noCert, cert := withTLS, withTLS, own
	wrongCert.Fingerprint = strings.Repeat("ab", 32)
	noCert.Fingerprint = ""
	cert.Fingerprint = withTLS.Fingerprint
	for name, c := range map[string]struct{ url, want string }{
		"token":       {wrongToken.String(), "refused the token"},
		"fingerprint": {wrongCert.String(), "certificate is not the one"},
		"no TLS":      {noCert.String(), "wants TLS"},
		"TLS":         {cert.String(), "has no TLS"},
		"cut token":   {strings.Replace(w.url, own.Token, own.Token[:20], 1), "not whole"},
		"no URL":      {"http://127.0.0.1:1", "not a valid join URL"},
		"nobody":      {"fit://" + own.Token + "@127.0.0.1:1", "connect to fit://127.0.0.1:1"},
	} {
		_, err := Dial(t.Context(), c.url, "stranger")
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") ||
			strings.Contains(err.Error(), own.Token) {
			t.Errorf("%s: %v, want %q in one line", name, err, c.want)
		}
	}
}

func TestAnotherProtocolIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	kv, err := w.dial().js.KeyValue(t.Context(), fleetBucket)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := kv.Put(t.Context(), protocolKey, []byte(strconv.Itoa(Protocol+1))); err != nil {
		t.Fatal(err)
	}
	if _, err := Dial(t.Context(), w.url, "old"); err == nil || !strings.Contains(err.Error(), "speaks protocol") {
		t.Errorf("%v", err)
	}
}

// Garbage on the port, messages that are too large and results that lie disturb nobody.
func TestGarbageDisturbsNobody(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	join, err := parseJoinURL(w.url)
	if err != nil {
		t.Fatal(err)
	}
	p, output := w.prepared(2, 1, "a"), filepath.Join(w.dir, "run")
	dir, e := w.coordinate(p, output, nil)
	raw, err := net.Dial("tcp", join.Address)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = raw.Write(bytes.Repeat([]byte("\x00\xffGET / HTTP/1.1\r\n"), 10_000))
	_ = raw.Close()
	hub := w.dial()
	if err := hub.nc.Publish("fit.done."+e.run+".x", make([]byte, 100<<20)); err == nil ||
		!strings.Contains(err.Error(), "maximum payload") {
		t.Errorf("100 MB: %v", err)
	}
	cell := p.Plan.Cells()[0]
	for _, lie := range []any{
		"no object",
		done{Protocol: 9},
		done{Protocol: Protocol, Name: "runs/other"},
		done{Protocol: Protocol, Name: "../../escape", Nonce: newNonce()},
	} {
		content, err := json.Marshal(lie)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{cell.RunDir(1), "../../escape"} {
			if _, err := hub.js.Publish(t.Context(), doneSubject(e.run, token(name)), content); err != nil {
				t.Fatal(err)
			}
		}
		subject := "fit.work." + e.run + "." + e.pools[0].Name + "." + newNonce()
		if _, err := hub.js.Publish(t.Context(), subject, content); err != nil {
			t.Fatal(err)
		}
		_ = hub.nc.Publish(eventSubject(e.run), content)
		_ = hub.nc.Publish(cancelSubject(e.run), content)
	}
	w.work("w1", 1, passes, nil)
	if outcome := w.run(dir, e); outcome.Status != experiment.Complete {
		t.Fatalf("%+v", outcome)
	}
	w.check(p, output)
	if _, err := os.Stat(filepath.Join(w.dir, "escape")); err == nil {
		t.Error("a result left the run directory")
	}
}

// A worker that lies about its files is an error, and what it names is not written.
func TestARecordNamesOnlyItsOwnFiles(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"../x", "/etc/passwd", "runs/t/a/0/2/x", "runs/t/a/0/1/../../x"} {
		r := ledger.Record{RunDir: "runs/t/a/0/1", AgentTracePath: name}
		if insideRunDir(&r) == nil {
			t.Errorf("%q was accepted", name)
		}
	}
	r := ledger.Record{RunDir: "runs/t/a/0/1", AgentTracePath: "runs/t/a/0/1/agent.ndjson"}
	if err := insideRunDir(&r); err != nil {
		t.Error(err)
	}
}

func TestArchivesCannotLeaveTheirDirectory(t *testing.T) {
	t.Parallel()
	for name, headers := range map[string][]tar.Header{
		"parent":   {{Name: "../x", Typeflag: tar.TypeReg, Mode: 0o600}},
		"absolute": {{Name: "/tmp/x", Typeflag: tar.TypeReg, Mode: 0o600}},
		"through": {
			{Name: "l", Typeflag: tar.TypeSymlink, Linkname: ".."},
			{Name: "l/x", Typeflag: tar.TypeReg, Mode: 0o600},
		},
		"device":    {{Name: "x", Typeflag: tar.TypeChar}},
		"hard link": {{Name: "x", Typeflag: tar.TypeLink, Linkname: "/etc/passwd"}},
		"same name": {
			{Name: "x", Typeflag: tar.TypeReg, Mode: 0o600},
			{Name: "x", Typeflag: tar.TypeReg, Mode: 0o600},
		},
		"setuid kept": {{Name: "s", Typeflag: tar.TypeReg, Mode: 0o4755}},
	} {
		var archive bytes.Buffer
		out := tar.NewWriter(&archive)
		for i := range headers {
			if err := out.WriteHeader(&headers[i]); err != nil {
				t.Fatal(err)
			}
		}
		if err := out.Close(); err != nil {
			t.Fatal(err)
		}
		parent := t.TempDir()
		dir := filepath.Join(parent, "in")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		err := readTar(&archive, dir)
		if name == "setuid kept" {
			info, statErr := os.Stat(filepath.Join(dir, "s"))
			if err != nil || statErr != nil || info.Mode()&fs.ModeSetuid != 0 {
				t.Errorf("%s: %v %v", name, err, statErr)
			}
		} else if err == nil {
			t.Errorf("%s was unpacked", name)
		}
		if entries, err := os.ReadDir(parent); err != nil || len(entries) != 1 {
			t.Errorf("%s: %v %v", name, entries, err)
		}
	}
}

func TestATreeComesBackAsItWas(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	from := filepath.Join(w.dir, "tree")
	if err := os.MkdirAll(filepath.Join(from, "closed", "empty"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, mode := range map[string]fs.FileMode{"a": 0o644, "closed/run": 0o755, "closed/read": 0o400} {
		if err := os.WriteFile(filepath.Join(from, name), []byte(name), mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("/nowhere", filepath.Join(from, "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(from, "closed"), 0o500); err != nil {
		t.Fatal(err)
	}
	want, err := experiment.TreeDigest(from)
	if err != nil {
		t.Fatal(err)
	}
	hash, err := treeHash(from, nil)
	if err != nil {
		t.Fatal(err)
	}
	hub := w.dial()
	store, err := hub.js.ObjectStore(t.Context(), treesBucket)
	if err != nil {
		t.Fatal(err)
	}
	e := &Executor{}
	if err := e.putRoot(t.Context(), store, root{path: from, hash: hash}); err != nil {
		t.Fatal(err)
	}
	cache := &treeCache{dir: filepath.Join(w.dir, "cache")}
	to, err := cache.fetch(t.Context(), store, hash)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := experiment.TreeDigest(to); err != nil || got != want {
		t.Errorf("%s %v, want %s", got, err, want)
	}
	if info, err := os.Stat(filepath.Join(to, "closed")); err != nil || info.Mode().Perm() != 0o500 {
		t.Errorf("%v %v", info, err)
	}
	if err := getTree(t.Context(), store, hash, strings.Repeat("0", 64), filepath.Join(w.dir, "other")); err == nil {
		t.Error("another content was accepted")
	}
	for _, wrong := range []string{"", "../x", strings.Repeat("z", 64), strings.ToUpper(hash)} {
		if _, err := cache.fetch(t.Context(), store, wrong); err == nil {
			t.Errorf("%q was accepted as a hash", wrong)
		}
	}
}

// Keys and tokens are neither on the wire nor in the hub's files; paths of the coordinator do not
// travel as paths of the experiment.
func TestSecretsDoNotTravel(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	join, err := parseJoinURL(w.url)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var heard bytes.Buffer
	wire := newLink(t, join.Address, func(part []byte) {
		mu.Lock()
		defer mu.Unlock()
		heard.Write(part)
	})
	w.url = wire.through(t, w.url)
	const key, password = "sk-secret-key-of-the-arm", "password-of-the-task"
	p, output := w.prepared(1, 1, "a"), filepath.Join(w.dir, "run")
	p.Arms[0].Env = map[string]string{"SERVICE_API_KEY": key, "PLAIN": "plain-value"}
	p.Family.Tasks[0].Env = []task.Variable{{Name: "DB_PASSWORD", Value: password, File: ".env.local", Secret: true}}
	variables := filepath.Join(p.Family.Tasks[0].Dir, ".env.local")
	if err := os.WriteFile(variables, []byte("DB_PASSWORD="+password), 0o600); err != nil {
		t.Fatal(err)
	}
	got := make(chan map[string]string, 1)
	w.work("w1", 1, passes, func(cfg *WorkerConfig) {
		cfg.Environ = []string{
			"SERVICE_API_KEY=of-the-worker", "DB_PASSWORD=also-of-the-worker", "OTHER_TOKEN=worker-token",
		}
		cfg.Executor = func(_ context.Context, job Job) (Attempts, error) {
			got <- map[string]string{
				"arm":   job.Prepared.Arms[0].Env["SERVICE_API_KEY"],
				"plain": job.Prepared.Arms[0].Env["PLAIN"],
				"task":  job.Prepared.Family.Tasks[0].Env[0].Value,
			}
			return &fake{sink: job.Sink, do: passes}, nil
		}
	})
	dir, e := w.coordinate(p, output, nil)
	content := streamFiles(t, filepath.Join(w.dir, "hub", "jetstream"))
	outcome, err := experiment.Run(t.Context(), dir, experiment.Config{
		Executor: e,
		Places:   e.Places,
		Changed:  e.Changed(),
	})
	if err != nil || outcome.Status != experiment.Complete {
		t.Fatalf("%+v %v", outcome, err)
	}
	content = append(content, unpacked(t, w.dial())...)
	if err := errors.Join(e.Close(), dir.Close()); err != nil {
		t.Fatal(err)
	}
	if values := <-got; values["arm"] != "of-the-worker" || values["task"] != "also-of-the-worker" ||
		values["plain"] != "plain-value" {
		t.Errorf("the worker's experiment has %v", values)
	}
	content = append(content, streamFiles(t, filepath.Join(w.dir, "hub", "jetstream"))...)
	mu.Lock()
	defer mu.Unlock()
	if !bytes.Contains(heard.Bytes(), []byte("fit.work.")) || !bytes.Contains(content, []byte("SERVICE_API_KEY")) ||
		!bytes.Contains(content, []byte("agent.task.md")) {
		t.Error("the capture is empty, so that nothing was tested")
	}
	for what, secret := range map[string]string{
		"the arm's key": key, "the task's password": password, "the token": join.Token,
		"the worker's key": "of-the-worker", "the worker's token": "worker-token",
	} {
		if bytes.Contains(heard.Bytes(), []byte(secret)) {
			t.Errorf("%s is on the wire", what)
		}
		if bytes.Contains(content, []byte(secret)) {
			t.Errorf("%s is in the hub's files", what)
		}
	}
}

// unpacked are the contents of all objects of the hub, without their compression.
func unpacked(t *testing.T, h *Hub) []byte {
	t.Helper()
	var all []byte
	for _, name := range streams(t, h) {
		bucket, is := strings.CutPrefix(name, "OBJ_")
		if !is {
			continue
		}
		store, err := h.js.ObjectStore(t.Context(), bucket)
		if err != nil {
			t.Fatal(err)
		}
		objects, err := store.List(t.Context())
		if err != nil && !errors.Is(err, jetstream.ErrNoObjectsFound) {
			t.Fatal(err)
		}
		for _, object := range objects {
			content, err := store.GetBytes(t.Context(), object.Name)
			if err != nil {
				t.Fatal(err)
			}
			decoder, err := zstd.NewReader(bytes.NewReader(content))
			if err != nil {
				t.Fatal(err)
			}
			plain, err := io.ReadAll(decoder)
			decoder.Close()
			if err == nil { // the description of the experiment is not compressed
				content = plain
			}
			all = append(all, content...)
		}
	}
	return all
}

// streamFiles are the bytes of all files of the hub's streams.
func streamFiles(t *testing.T, dir string) []byte {
	t.Helper()
	var all []byte
	err := filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) { // the hub removes streams by and by
			return nil
		}
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(name)
		all = append(all, content...)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// A key in a prompt would travel with it, so the experiment is refused.
func TestAKeyInATaskIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.prepared(1, 1, "a")
	p.Family.Tasks[0].Prompt = "use sk-my-own-key to log in"
	refused := func() {
		t.Helper()
		_, err := New(t.Context(), Config{
			Hub:      w.dial(),
			Prepared: p,
			Dir:      t.TempDir(),
			Provider: func(*experiment.Arm) string { return "model" },
			Secrets:  map[string]string{"OPENAI_API_KEY": "sk-my-own-key"},
		})
		if err == nil || !strings.Contains(err.Error(), "OPENAI_API_KEY") || strings.Contains(err.Error(), "sk-my") {
			t.Errorf("%v", err)
		}
	}
	refused()
	p.Family.Tasks[0].Prompt = ""
	// in the middle of a large file: what is searched comes in parts
	content := strings.Repeat("x", 100<<10) + "sk-my-own-key" + strings.Repeat("x", 100<<10)
	if err := os.WriteFile(filepath.Join(p.Family.Tasks[0].Dir, "notes"), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	refused()
	for at := range 12 { // a value that comes in two parts
		search := &secretSearch{values: map[string]string{"K": "sk-my-own-key"}}
		_, _ = search.Write([]byte("text sk-my-own-key"[:at+6]))
		_, _ = search.Write([]byte("text sk-my-own-key text"[at+6:]))
		if search.found != "K" {
			t.Errorf("not found when it is cut after %d", at)
		}
	}
}

// A worker without the agent, the isolation, a label or a variable gets nothing, and the
// coordinator says what is missing.
func TestPlacement(t *testing.T) {
	t.Parallel()
	all := Worker{
		Protocol: Protocol, Fit: "1", Isolation: []string{"none", "bwrap"}, Agents: map[string]string{"a": "2"},
		Labels: []string{"gpu"}, Env: []string{"KEY"},
	}
	needs := Needs{
		Fit: "1", Isolation: "bwrap", Agents: map[string]string{"a": "2"}, Labels: []string{"gpu"},
		Env: []string{"KEY"},
	}
	if why := all.Lacks(needs); why != "" {
		t.Error(why)
	}
	for want, change := range map[string]func(*Worker){
		"protocol":     func(w *Worker) { w.Protocol++ },
		"fit 3, not 1": func(w *Worker) { w.Fit = "3" },
		"no isolation": func(w *Worker) { w.Isolation = []string{"none"} },
		"no agent a":   func(w *Worker) { w.Agents = nil },
		"a 1, not 2":   func(w *Worker) { w.Agents = map[string]string{"a": "1"} },
		"no label gpu": func(w *Worker) { w.Labels = nil },
		"no KEY":       func(w *Worker) { w.Env = nil },
	} {
		lacking := all
		change(&lacking)
		if why := lacking.Lacks(needs); !strings.Contains(why, want) {
			t.Errorf("%q, want %q", why, want)
		}
	}
	w := newWorld(t)
	p, output := w.prepared(2, 1, "a", "b"), filepath.Join(w.dir, "run")
	p.Arms[1].Needs = []string{"gpu"}
	var notes strings.Builder
	var mu sync.Mutex
	dir, e := w.coordinate(p, output, func(cfg *Config) {
		cfg.Note = func(text string) {
			mu.Lock()
			defer mu.Unlock()
			notes.WriteString(text + "\n")
		}
	})
	where := map[string]string{}
	on := func(name string) doing {
		return func(_ context.Context, cell experiment.Cell, _ int) ledger.Record {
			mu.Lock()
			defer mu.Unlock()
			where[cell.Arm] += name
			return verdict(cell)
		}
	}
	w.work("plain", 2, on("plain"), nil)
	outcome := make(chan experiment.Outcome)
	go func() { outcome <- w.run(dir, e) }()
	eventually(t, 5*time.Second, "the coordinator says what is missing", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return strings.Contains(notes.String(), "waiting for a worker that can run b: plain: it has no label gpu")
	})
	w.work("gpu", 2, on("gpu"), func(cfg *WorkerConfig) { cfg.Labels = []string{"gpu"} })
	if o := <-outcome; o.Status != experiment.Complete {
		t.Fatalf("%+v", o)
	}
	if strings.Contains(where["b"], "plain") || where["b"] == "" || where["a"] == "" {
		t.Errorf("%v", where)
	}
}

// The queue of Debian's package does as well as the embedded one.
func TestAnExistingServer(t *testing.T) {
	t.Parallel()
	program := testenv.NeedTool(t, "nats-server")
	w := &world{t: t, dir: t.TempDir()}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	_ = listener.Close()
	command := exec.Command(program, "-js", "-sd", filepath.Join(w.dir, "store"), "-a", "127.0.0.1", "-p", port,
		"--user", "fleet", "--pass", "wrong-horse")
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = command.Process.Kill(); _ = command.Wait() })
	eventually(t, 10*time.Second, "the server listens", func() bool {
		conn, err := net.Dial("tcp", "127.0.0.1:"+port)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	})
	if _, err := Dial(t.Context(), "nats://fleet:bad@127.0.0.1:"+port, "stranger"); err == nil ||
		strings.Contains(err.Error(), "bad") {
		t.Errorf("a wrong password: %v", err)
	}
	w.url = "nats://fleet:wrong-horse@127.0.0.1:" + port
	p, output := w.prepared(3, 2, "a", "b"), filepath.Join(w.dir, "run")
	if err := w.dial().SetCap(t.Context(), "model", 2); err != nil {
		t.Fatal(err)
	}
	w.work("w1", 2, passes, nil)
	w.work("w2", 2, passes, nil)
	dir, e := w.coordinate(p, output, nil)
	if outcome := w.run(dir, e); outcome.Status != experiment.Complete {
		t.Fatalf("%+v", outcome)
	}
	w.check(p, output)
}

// Two experiments share the cap of a provider by what they want.
func TestSharesOfACap(t *testing.T) {
	t.Parallel()
	pools := []member{
		{key: "x1", demand: 1},
		{key: "x2", demand: 50},
		{key: "y1", demand: 50},
		{key: "z1"},
	}
	for whole := range 20 {
		sum := 0
		for _, p := range pools[:3] {
			sum += shareOf(whole, p.key, pools)
		}
		if sum > whole || whole > 2 && sum < whole {
			t.Errorf("shares of %d are %d together", whole, sum)
		}
	}
	if got := shareOf(11, "x2", pools); got != 5 {
		t.Errorf("got %d", got)
	}
	pools[2].granted, pools[0].running = 8, 2
	if got := room(11, "x2", pools); got != 1 {
		t.Errorf("with 8 granted and 2 running elsewhere, there is room for %d of 11, want 1", got)
	}
}

// A worker that is drained finishes what it has and leaves.
func TestDrain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p, output := w.prepared(4, 1, "a"), filepath.Join(w.dir, "run")
	gate := make(chan struct{})
	hub := w.dial()
	w.work("w1", 1, func(_ context.Context, cell experiment.Cell, _ int) ledger.Record {
		<-gate
		return verdict(cell)
	}, nil)
	dir, e := w.coordinate(p, output, nil)
	outcome := make(chan experiment.Outcome)
	go func() { outcome <- w.run(dir, e) }()
	busy := func(name string) func() bool {
		return func() bool {
			workers, err := hub.Workers(t.Context())
			return err == nil && len(workers) > 0 && workers[0].Name == name && len(workers[0].Running) == 1
		}
	}
	eventually(t, 6*time.Second, "the worker is busy", busy("w1"))
	if err := hub.Drain(t.Context(), "w9"); err == nil || !strings.Contains(err.Error(), "there are w1") {
		t.Errorf("%v", err)
	}
	if err := hub.Drain(t.Context(), "w1"); err != nil {
		t.Fatal(err)
	}
	eventually(t, 6*time.Second, "the worker drains", func() bool {
		status, err := hub.Status(t.Context())
		return err == nil && len(status.Workers) == 1 && status.Workers[0].Draining && len(status.Pools) == 1
	})
	close(gate)
	eventually(t, 6*time.Second, "the worker leaves", func() bool {
		workers, err := hub.Workers(t.Context())
		return err == nil && len(workers) == 0
	})
	w.work("w2", 1, passes, nil)
	if o := <-outcome; o.Status != experiment.Complete {
		t.Fatalf("%+v", o)
	}
	for _, r := range w.check(p, output) {
		if r.Worker == "w1" && r.TaskID == r.Arm {
			t.Error(r.Key())
		}
	}
}
