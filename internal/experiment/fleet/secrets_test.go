package fleet

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/fit-eval/fit/internal/experiment"
	"github.com/fit-eval/fit/internal/experiment/fleet/portable"
	"github.com/fit-eval/fit/internal/task"
)

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
	w.url, w.worker = wire.through(t, w.url), wire.through(t, w.worker)
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
	if bytes.Contains(content, []byte("plain-value")) {
		t.Error("the experiment can be read in the hub's files")
	}
	content = append(content, unpacked(t, w.dial(), e.spec)...)
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
		t.Run(what, func(t *testing.T) {
			for form, shown := range forms(secret) {
				if bytes.Contains(heard.Bytes(), []byte(shown)) {
					t.Errorf("%s is on the wire, %s", what, form)
				}
				if bytes.Contains(content, []byte(shown)) {
					t.Errorf("%s is in the hub's files, %s", what, form)
				}
			}
		})
	}
}

// forms are the ways in which a value may be written.
func forms(value string) map[string]string {
	all := map[string]string{"plain": value, "in hex": hex.EncodeToString([]byte(value))}
	for at := range 3 { // where it begins in a group of three bytes
		coded := base64.StdEncoding.EncodeToString(append(make([]byte, at), value...))
		all[fmt.Sprintf("in base64 at %d", at)] = coded[at+1+at/2 : len(coded)-4]
	}
	return all
}

// The search finds a value in every form.
func TestFormsOfASecret(t *testing.T) {
	const secret = "sk-secret-key-of-the-arm"
	for _, before := range []string{"", "x", "xy", "xyz"} {
		coded := base64.StdEncoding.EncodeToString([]byte(before + secret + " and more"))
		found := false
		for _, form := range forms(secret) {
			found = found || strings.Contains(coded, form)
		}
		if !found {
			t.Errorf("%q is not found in %q", secret, coded)
		}
	}
}

// unpacked is what the worker of an attempt reads: the description of the experiment and its trees.
func unpacked(t *testing.T, h *Hub, spec string) []byte {
	t.Helper()
	store, err := h.js.ObjectStore(t.Context(), treesBucket)
	if err != nil {
		t.Fatal(err)
	}
	read := func(hash string) []byte {
		from, err := h.openObject(t.Context(), store, hash)
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(from)
		if err != nil {
			t.Fatal(err)
		}
		return content
	}
	all := read(spec)
	var described portable.Experiment
	if err := json.Unmarshal(all, &described); err != nil {
		t.Fatal(err)
	}
	ofTasks := slices.Concat(slices.Collect(maps.Values(described.Tasks))...)
	for _, hash := range slices.Concat(described.Shared, ofTasks) {
		decoder, err := newDecoder(bytes.NewReader(read(hash)))
		if err != nil {
			t.Fatal(err)
		}
		plain, err := io.ReadAll(decoder)
		decoder.Close()
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, plain...)
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

// A key in a prompt would be sent with it, so the experiment is refused.
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
	content = base64.StdEncoding.EncodeToString([]byte("the key is sk-my-own-key")) // as redaction finds it
	if err := os.WriteFile(filepath.Join(p.Family.Tasks[0].Dir, "notes"), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	refused()
	e := &Executor{cfg: Config{Secrets: map[string]string{"K": "sk-my-own-key"}}}
	for at := range 12 { // a value that comes in two parts
		err := e.searched(func(to io.Writer) error {
			_, err := to.Write([]byte("text sk-my-own-key"[:at+6]))
			_, more := to.Write([]byte("text sk-my-own-key text"[at+6:]))
			return errors.Join(err, more)
		})
		if err == nil || !strings.Contains(err.Error(), "the value of K,") {
			t.Errorf("not found when it is cut after %d: %v", at, err)
		}
	}
}
