package bridgecli_test

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"database/sql"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/fit-eval/fit/internal/bridge/channel"
	"github.com/fit-eval/fit/internal/github/githubtest"
)

const (
	githubSecret  = "SecretOfTheRepositorysWebhook"
	webhookSecret = "SecretOfTheOutgoingWebhook"
)

var secrets = []string{githubtest.Token, githubSecret, webhookSecret}

// commented is what the bridge writes in such a thread.
var commented = []string{
	"**The discussion is adjourned.**\n\nMIT.", "**The discussion is recessed.**\n\nPeople must choose.",
	"**alice:**\n\nAlice is for MIT.", "**bob:**\n\nBob is for BSD.", "**lead:**\n\nMIT it is, Eve.",
}

// receiver takes webhooks, and knows a post by its id, as the guide says.
type receiver struct {
	mu    sync.Mutex
	known map[string]bool
	posts map[string][]int64 // numbers, by thread
	raw   strings.Builder
}

func (r *receiver) ServeHTTP(_ http.ResponseWriter, request *http.Request) {
	body, _ := io.ReadAll(request.Body)
	var event channel.Event
	r.mu.Lock()
	defer r.mu.Unlock()
	r.raw.Write(body)
	if id := request.Header.Get("Webhook-Id"); json.Unmarshal(body, &event) == nil && !r.known[id] {
		r.known[id] = true
		r.posts[event.Data.Thread] = append(r.posts[event.Data.Thread], event.Data.Post.N)
	}
}

// serveGitHub makes a bridge serve a repository and a webhook.
func (b *bridge) serveGitHub(site *githubtest.Site, flags ...string) {
	b.t.Helper()
	for name, text := range map[string]string{"token": githubtest.Token, "github-secret": githubSecret} {
		if err := os.WriteFile(filepath.Join(b.dir, name), []byte(text+"\n"), 0o600); err != nil {
			b.t.Fatal(err)
		}
	}
	b.env = append(b.env, "FIT_BRIDGE_WEBHOOK_SECRET="+webhookSecret)
	b.flags = slices.Concat([]string{
		"--github", githubtest.Repository, "--github-api", site.URL(), "--github-token-file", "token",
		"--github-secret-file", "github-secret", "--github-pace", "1ms",
	}, flags)
	b.served = func() { site.Hook("http://" + b.address.Host + "/api/webhook") }
}

// count asks the database of the bridge.
func (b *bridge) count(query string) (n int) {
	b.t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(b.dir, "bridge", "bridge.db")+"?_pragma=busy_timeout(30000)")
	if err != nil {
		b.t.Fatal(err)
	}
	defer db.Close()
	if err := db.QueryRow(query).Scan(&n); err != nil {
		b.t.Fatal(err)
	}
	return n
}

// moments stops the site at given requests, until the bridge has been killed.
type moments struct {
	mu    sync.Mutex
	count int
	at    []int
	stop  chan chan struct{}
}

func (m *moments) pass(r *http.Request) (status int, header http.Header, body string) {
	m.mu.Lock()
	m.count++
	hit := len(m.at) > 0 && m.count >= m.at[0]
	if hit {
		m.at = m.at[1:]
	}
	m.mu.Unlock()
	if hit {
		killed := make(chan struct{})
		select {
		case m.stop <- killed:
			<-killed
		case <-r.Context().Done(): // the test is over
		}
	}
	return 0, nil, ""
}

// TestKilledAtAnyStepTheChannelHasEveryPostOnce: people and agents discuss in issues and
// discussions of GitHub, while the bridge is killed: before GitHub takes a comment, when it has
// taken it and not answered, and while GitHub tells the bridge of one.
func TestKilledAtAnyStepTheChannelHasEveryPostOnce(t *testing.T) {
	t.Parallel()
	threads, kills := 3, 10
	if os.Getenv("FIT_SOAK") != "" {
		threads, kills = 30, 100
	}
	site := githubtest.Start(t, githubSecret)
	hook := &receiver{known: map[string]bool{}, posts: map[string][]int64{}}
	outside := httptest.NewServer(hook)
	t.Cleanup(outside.Close)
	step := &moments{stop: make(chan chan struct{})}
	// a comment is two steps, and the last of a thread are for the kills during webhooks
	for i := range kills - threads {
		step.at = append(step.at, 2+i*(2*threads*len(commented)-2)/kills)
	}
	site.Before, site.After = step.pass, step.pass
	b := newBridge(t, func(b *bridge) {
		b.serveGitHub(site, append([]string{"--webhook", outside.URL}, b.flags...)...)
	})
	var all []*githubtest.Subject
	for i := range threads {
		kind := []string{"issue", "discussion"}[i%2]
		all = append(all, site.Open(kind, "Which licence?", "We need one.", githubtest.Eve))
	}
	done := 0
	kill := func() {
		b.kill()
		done++
	}
	answered := map[*githubtest.Subject]bool{}
	var said sync.WaitGroup
	b.until("every thread is adjourned on GitHub", func() bool {
		select {
		case killed := <-step.stop:
			kill()
			close(killed) // GitHub takes what it has got, although nobody waits for the answer
			b.serve()
		default:
		}
		over := 0
		for _, on := range all {
			comments := site.Comments(on)
			if len(comments) >= len(commented) {
				over++
			}
			if all := strings.Join(comments, "\n"); strings.Contains(all, "The discussion is failed") {
				t.Fatal(all)
			}
			if slices.Contains(comments, commented[1]) && !answered[on] {
				answered[on] = true
				said.Go(func() { site.Say(on, "Take MIT.", githubtest.Eve) })
				kill() // at some moment of that delivery, which GitHub repeats
				b.serve()
			}
		}
		return over == threads
	})
	said.Wait()
	b.until("the outboxes are empty", func() bool { return b.count("SELECT count(*) FROM outbox") == 0 })
	for _, on := range all {
		got := site.Comments(on)
		slices.Sort(got)
		if diff := gocmp.Diff(commented, got); diff != "" {
			t.Errorf("comments (-want +got):\n%s", diff)
		}
	}
	var want []int64
	for n := range len(commented) + 2 { // with what Eve wrote
		want = append(want, int64(n+1))
	}
	hook.mu.Lock()
	defer hook.mu.Unlock()
	for thread, posts := range hook.posts {
		if diff := gocmp.Diff(want, posts); diff != "" {
			t.Errorf("posts of %s at the webhook (-want +got):\n%s", thread, diff)
		}
	}
	if len(hook.posts) != threads || done < kills {
		t.Errorf("%d threads at the webhook, %d kills", len(hook.posts), done)
	}
	b.kill()
	b.nothingHasAToken(b.written(), secrets...)
}

// TestTokensAreNowhere: an agent prints what the environment of its processes has, and everything
// that is written, shown or sent is searched.
func TestTokensAreNowhere(t *testing.T) {
	t.Parallel()
	site := githubtest.Start(t, githubSecret)
	hook := &receiver{known: map[string]bool{}, posts: map[string][]int64{}}
	outside := httptest.NewServer(hook)
	t.Cleanup(outside.Close)
	b := newBridge(t, func(b *bridge) {
		b.serveGitHub(site, append([]string{"--webhook", outside.URL}, b.flags...)...)
	})
	on := site.Open("issue", "Which licence?", "We need one.", githubtest.Eve)
	b.until("it is suspended", func() bool { return slices.Contains(site.Comments(on), commented[1]) })
	site.Lock(on, true)
	site.Say(on, "Take MIT.", githubtest.Eve)
	b.until("GitHub refuses what is left", func() bool {
		return b.count("SELECT count(refused) FROM outbox") == 2
	})
	var pages json.RawMessage
	b.ask(http.MethodGet, "/api/threads", nil, &pages)
	b.kill()
	written := b.written()
	written["comments"] = fmt.Append(nil, site.Comments(on))
	hook.mu.Lock()
	defer hook.mu.Unlock()
	written["webhooks"], written["pages"] = []byte(hook.raw.String()), pages
	for what, mark := range map[string]string{
		"trace.ndjson": "LIBHARNESS_AGENT_PROFILE=alice",
		"comments":     "Alice is for MIT.", "webhooks": "Alice is for MIT.", "pages": "thread-",
		"standard error": "locked",
	} {
		if !slices.ContainsFunc(slices.Collect(maps.Keys(written)), func(path string) bool {
			return strings.HasSuffix(path, what) && strings.Contains(string(written[path]), mark)
		}) {
			t.Errorf("no %s has %q", what, mark)
		}
	}
	b.nothingHasAToken(written, secrets...)
}

// TestAWorkflowHoldsARun: it is started once, also if the bridge is killed when GitHub has started
// it and not said so, and reports its end itself.
func TestAWorkflowHoldsARun(t *testing.T) {
	t.Parallel()
	site := githubtest.Start(t, githubSecret)
	step := &moments{at: []int{2}, stop: make(chan chan struct{})} // when the workflow has been started
	site.Before, site.After = step.pass, step.pass
	b := newBridge(t, func(b *bridge) {
		b.serveGitHub(site, "--dispatch-workflow", githubtest.Repository+"/discuss.yml@main")
	})
	on := site.Open("discussion", "Which licence?", "We need one.", githubtest.Eve)
	killed := <-step.stop
	b.kill()
	close(killed)
	b.serve()
	var started []githubtest.Dispatch
	b.until("the workflow is started", func() bool {
		started = site.Dispatched()
		return len(started) > 0
	})
	inputs := started[0].Inputs
	task := "Which licence?\n\nWe need one."
	if d := started[0]; d.File != "discuss.yml" || d.Ref != "main" || inputs["prompt"] != task {
		t.Errorf("dispatched: %+v", d)
	}
	// the bridge has another port now; its operator would give it a --public address
	before, err := url.Parse(inputs["callback_url"])
	if err != nil {
		t.Fatal(err)
	}
	callback := "http://" + b.address.Host + before.Path
	var assigned struct {
		CorrelationID string `json:"correlation_id"`
		Prompt        string
	}
	response, err := http.Get(callback) //nolint:gosec,noctx // an address of this test
	if err != nil {
		t.Fatal(err)
	}
	err = json.NewDecoder(response.Body).Decode(&assigned)
	if err = cmp.Or(err, response.Body.Close()); err != nil || assigned.Prompt != inputs["prompt"] ||
		assigned.CorrelationID != inputs["correlation_id"] {
		t.Errorf("the assignment: %+v, %v", assigned, err)
	}
	end := fmt.Sprintf(`{"correlation_id":%q,"kind":"terminal","verdict":"adjourned","summary":"MIT.",
		"replies":[{"body":"I am for MIT.","agent":"alice","seq":1}],"last_acted_seq":-1}`, inputs["correlation_id"])
	response, err = http.Post(callback, "application/json", strings.NewReader(end)) //nolint:gosec,noctx // likewise
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatal(response, err)
	}
	_ = response.Body.Close()
	b.until("the end is on GitHub", func() bool { return len(site.Comments(on)) == 2 })
	want := []string{"**alice:**\n\nI am for MIT.", "**The discussion is adjourned.**\n\nMIT."}
	if diff := gocmp.Diff(want, site.Comments(on)); diff != "" {
		t.Errorf("comments (-want +got):\n%s", diff)
	}
	b.until("the bridge knows", func() bool { return b.count("SELECT count(*) FROM run WHERE dispatched") == 1 })
	if again := site.Dispatched(); len(again) != 1 {
		t.Errorf("the workflow was started %d times", len(again))
	}
	b.kill()
	b.nothingHasAToken(b.written(), secrets...)
}

// TestOverTLS: people reach the bridge with a certificate that they trust, and only with TLS, and
// the runs of this machine, which do not trust it, reach it, too.
func TestOverTLS(t *testing.T) {
	t.Parallel()
	authority := httptest.NewTLSServer(nil) // its certificate is for 127.0.0.1
	authority.Close()
	certificate := authority.TLS.Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(certificate.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	b := newBridge(t, func(b *bridge) {
		for name, block := range map[string]*pem.Block{
			"cert.pem": {Type: "CERTIFICATE", Bytes: certificate.Certificate[0]},
			"key.pem":  {Type: "PRIVATE KEY", Bytes: key},
		} {
			if err := os.WriteFile(filepath.Join(b.dir, name), pem.EncodeToMemory(block), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		b.flags = append([]string{"--tls-cert", "cert.pem", "--tls-key", "key.pem"}, b.flags...)
	})
	fit := func(env string, args ...string) (string, error) {
		command := exec.CommandContext(t.Context(), b.process.Path)
		command.Args = append([]string{"fit", "bridge"}, args...)
		command.Dir, command.Env = b.dir, append(slices.Clone(b.env), env)
		out, err := command.CombinedOutput()
		return strings.TrimSpace(string(out)), err
	}
	trusted := "SSL_CERT_FILE=" + filepath.Join(b.dir, "cert.pem")
	thread, err := fit(trusted, "post", "--dir", "bridge", "Which licence?")
	if err != nil {
		t.Fatal(thread, err)
	}
	said, err := fit(trusted, "read", "--dir", "bridge", thread, "--until", "recessed,failed")
	if err != nil || !strings.Contains(said, "alice: Alice is for MIT.") {
		t.Errorf("%v\n%s", err, said)
	}
	response, err := http.Get("http://" + b.address.Host + "/health") //nolint:noctx // an address of this test
	if err == nil {
		_ = response.Body.Close()
		if response.StatusCode == http.StatusOK {
			t.Error("the bridge answers without TLS")
		}
	}
	nobody := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: x509.NewCertPool()}}
	untrusted := &http.Client{Transport: nobody}
	if _, err := untrusted.Get("https://" + b.address.Host + "/health"); err == nil { //nolint:noctx // so
		t.Error("a client that trusts nobody was answered")
	}
}
