package bridgecli_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fit-eval/fit/internal/bridge/server"
	"github.com/fit-eval/fit/internal/cli"
	"github.com/fit-eval/fit/internal/model/scripted"
	"github.com/fit-eval/fit/internal/testenv"
)

// childVariable makes this test binary be fit.
const childVariable = "FIT_TEST_BE_FIT"

func TestMain(m *testing.M) {
	if os.Getenv(childVariable) != "" {
		os.Exit(cli.Main())
	}
	os.Exit(m.Run())
}

// licence is a discussion that asks everybody, waits for a person, and ends.
const licence = `{"scenarios":[
  {"name":"lead","when":{"tool":"orchestration/Adjourn"},"turns":[
    {"calls":[{"mcp":"orchestration/Ask","input":{"question":"Which licence?"}}]},
    {"label":"collect","cases":[
      {"when":{"any_prompt":"Take MIT"},"goto":"decide"},
      {"when":{"all":[{"any_prompt":"[answer#1]"},{"any_prompt":"[answer#2]"}]},"goto":"suspend"}],"text":"I wait."},
    {"goto":"collect"},
    {"label":"suspend","calls":[{"mcp":"orchestration/Recess","input":{"reason":"People must choose.","trigger":{"kind":"missing_input","replies":1}}}]},
    {"cases":[{"when":{"any_prompt":"Take MIT"},"goto":"decide"}],"text":"Suspended."},
    {"goto":"collect"},
    {"label":"decide","calls":[{"mcp":"orchestration/Acknowledge","input":{"message":"MIT it is, Eve."}}]},
    {"calls":[{"mcp":"orchestration/Adjourn","input":{"verdict":"adjourned","summary":"MIT."}}]},
    {"text":"Over."}]},
  {"name":"alice","when":{"system":"You are Alice"},"turns":[
    {"calls":[{"bash":"p=$$; while [ $p -gt 1 ]; do tr '\\0' '\\n' < /proc/$p/environ; p=$(sed -n 's/^PPid:.//p' /proc/$p/status); done"}]},
    {"calls":[{"mcp":"orchestration/Answer","input":{"message":"Alice is for MIT."}}]},{"text":"Answered."}]},
  {"name":"bob","when":{"system":"You are Bob"},"turns":[
    {"calls":[{"mcp":"orchestration/Answer","input":{"message":"Bob is for BSD."}}]},{"text":"Answered."}]}]}`

// discussed is what such a thread holds in the end, in the order of sorting.
var discussed = []string{
	"ack: MIT it is, Eve.", "agent: Alice is for MIT.", "agent: Bob is for BSD.", "end: MIT.",
	"end: People must choose.", "person: Take MIT.", "person: Which licence?",
}

// bridge is fit bridge serve in processes of its own.
type bridge struct {
	t       *testing.T
	dir     string
	env     []string
	flags   []string // of fit bridge serve
	said    bytes.Buffer
	process *exec.Cmd
	address *url.URL
	// served, if set, is called when the bridge has an address.
	served func()
}

func newBridge(t *testing.T, adapt func(*bridge)) *bridge {
	t.Helper()
	b := &bridge{t: t, dir: t.TempDir()}
	b.flags = []string{
		"--max-runs", "8", "--", "--agent", "builtin", "--isolation", "none", "--agent-profiles", "alice,bob",
	}
	script, err := scripted.Parse([]byte(licence))
	if err != nil {
		t.Fatal(err)
	}
	model := httptest.NewServer(scripted.NewServer(map[string]*scripted.Script{"": script}, scripted.Options{}))
	t.Cleanup(model.Close)
	for name, text := range map[string]string{"alice": "You are Alice.", "bob": "You are Bob."} {
		profile := filepath.Join(b.dir, ".claude", "agents", name+".md")
		if err := os.MkdirAll(filepath.Dir(profile), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(profile, []byte(text+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	b.env = []string{
		childVariable + "=1", "GORACE=atexit_sleep_ms=0", "HOME=" + b.dir, "USER=Eve", "PATH=" + os.Getenv("PATH"),
		"TMPDIR=" + t.TempDir(),
	}
	b.flags = append(b.flags, "--model-url", model.URL) // which a run that is continued needs, too
	if adapt != nil {
		adapt(b)
	}
	b.serve()
	t.Cleanup(b.kill)
	return b
}

// serve starts the bridge, again over the same directory.
func (b *bridge) serve() {
	b.t.Helper()
	self, err := os.Executable()
	if err != nil {
		b.t.Fatal(err)
	}
	b.process = exec.Command(self)
	b.process.Args = append([]string{
		"fit", "bridge", "serve", "--dir", filepath.Join(b.dir, "bridge"), "--listen", "127.0.0.1:0",
	}, b.flags...)
	b.process.Dir, b.process.Env = b.dir, b.env
	b.process.Stderr = &b.said
	out, err := b.process.StdoutPipe()
	if err != nil {
		b.t.Fatal(err)
	}
	if err := b.process.Start(); err != nil {
		b.t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		_ = b.process.Wait()
		b.t.Fatalf("the bridge printed no address: %v\n%s", err, b.said.String())
	}
	if b.address, err = url.Parse(strings.TrimSpace(line)); err != nil {
		b.t.Fatal(err)
	}
	if b.served != nil {
		b.served()
	}
}

func (b *bridge) kill() {
	_ = b.process.Process.Kill()
	_ = b.process.Wait()
}

// ask sends a request of the owner.
func (b *bridge) ask(method, path string, body, into any) {
	b.t.Helper()
	content, err := json.Marshal(body)
	if err != nil {
		b.t.Fatal(err)
	}
	address := "http://" + b.address.Host + path
	request, err := http.NewRequestWithContext(b.t.Context(), method, address, bytes.NewReader(content))
	if err != nil {
		b.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+b.address.Query().Get("token"))
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		b.t.Fatal(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		b.t.Fatalf("%s %s: %d, %v\n%s", method, path, response.StatusCode, err, answer)
	}
	if into != nil {
		if err := json.Unmarshal(answer, into); err != nil {
			b.t.Fatal(err)
		}
	}
}

// view is a thread whose posts are named by their roles.
func (b *bridge) view(thread string) (state string, posts []string) {
	b.t.Helper()
	var view server.View
	b.ask(http.MethodGet, "/api/threads/"+thread, nil, &view)
	for _, p := range view.Posts {
		role := p.Role
		if role == "agent" && p.Author == "lead" {
			role = "ack"
		}
		posts = append(posts, role+": "+p.Body)
	}
	slices.Sort(posts)
	return view.Thread.State, posts
}

// until waits until something is so. Other processes make it so.
func (b *bridge) until(what string, is func() bool) {
	b.t.Helper()
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	limit := time.After(8 * time.Minute)
	for !is() {
		select {
		case <-look.C:
		case <-limit:
			b.t.Fatalf("never: %s", what)
		}
	}
}

// runs are the processes of runs, children of the bridge.
func (b *bridge) runs() []int {
	var found []int
	entries, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, entry := range entries {
		content, err := os.ReadFile(entry)
		_, rest, _ := strings.Cut(string(content), ") ")
		fields := strings.Fields(rest)
		if err != nil || len(fields) < 2 || fields[1] != strconv.Itoa(b.process.Process.Pid) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(entry))); err == nil {
			found = append(found, pid)
		}
	}
	return found
}

// TestKilledAtRandomStepsNothingIsLostOrDoubled: discussions in several threads are begun,
// suspended, resumed by a person and adjourned, while the bridge, or a run, is killed again and
// again.
func TestKilledAtRandomStepsNothingIsLostOrDoubled(t *testing.T) {
	if runtime.GOOS != "linux" {
		testenv.Missing(t, "/proc, to find the processes of runs in: it needs Linux")
	}
	for _, killed := range []string{"bridge", "run"} {
		t.Run(killed, func(t *testing.T) {
			t.Parallel()
			threads, kills := 3, 10
			if os.Getenv("FIT_SOAK") != "" {
				threads, kills = 100, 100 // a run that dies more than ten times is given up
			}
			b := newBridge(t, nil)
			var all []string
			for range threads {
				var posted server.Posted
				b.ask(http.MethodPost, "/api/threads", server.Written{Body: "Which licence?"}, &posted)
				all = append(all, posted.Thread)
			}
			answered := map[string]bool{}
			// at how many posts a kill comes
			random := rand.New(rand.NewPCG(41, uint64(len(killed))))
			steps := make([]int, kills)
			for i := range steps {
				steps[i] = threads + random.IntN(threads*(len(discussed)-1))
			}
			slices.Sort(steps)
			b.until("all threads are adjourned", func() bool {
				posts, over := 0, 0
				for _, thread := range all {
					state, said := b.view(thread)
					posts += len(said)
					switch {
					case state == "recessed" && !answered[thread]:
						answered[thread] = true
						b.ask(http.MethodPost, "/api/threads/"+thread+"/posts", server.Written{Body: "Take MIT."}, nil)
					case state == "adjourned":
						over++
					case state == "failed":
						t.Fatalf("a thread failed: %q", said)
					}
				}
				if len(steps) > 0 && posts >= steps[0] && over < threads {
					steps = steps[1:]
					for range random.IntN(20) { // some moment of that step: a few requests later
						b.view(all[0])
					}
					if killed == "bridge" {
						b.kill()
						b.serve()
					} else if runs := b.runs(); len(runs) > 0 {
						_ = syscall.Kill(runs[random.IntN(len(runs))], syscall.SIGKILL)
					}
				}
				return over == threads
			})
			for _, thread := range all {
				if _, posts := b.view(thread); !slices.Equal(posts, discussed) {
					t.Errorf("a thread (-want +got):\n%s", cmp.Diff(discussed, posts))
				}
			}
			if done := kills - len(steps); done < 3 {
				t.Errorf("only %d of %d kills", done, kills)
			}
			b.kill()
			b.nothingHasAToken(b.written())
		})
	}
}

// written is all that the bridge and its runs have written, but for the owner's address.
func (b *bridge) written() map[string][]byte {
	b.t.Helper()
	files := map[string][]byte{"standard error": b.said.Bytes()}
	err := filepath.WalkDir(filepath.Join(b.dir, "bridge"), func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() || entry.Name() == "owner.url" {
			return err
		}
		files[path], err = os.ReadFile(path)
		return err
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return files
}

// nothingHasAToken looks at all that was written.
func (b *bridge) nothingHasAToken(written map[string][]byte, secrets ...string) {
	b.t.Helper()
	for path, content := range written {
		for _, part := range append(secrets, b.address.Query().Get("token"), "/api/callback/default/") {
			if bytes.Contains(content, []byte(part)) {
				b.t.Errorf("%s holds %q", path, part)
			}
		}
	}
}
