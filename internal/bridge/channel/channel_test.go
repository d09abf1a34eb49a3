package channel_test

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/fit-eval/fit/internal/bridge"
	"github.com/fit-eval/fit/internal/bridge/channel"
	"github.com/fit-eval/fit/internal/bridge/server"
	"github.com/fit-eval/fit/internal/github/githubtest"
	"github.com/fit-eval/fit/internal/harness"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const secret = "It's a Secret to Everybody"

// place is a bridge with a repository, whose runs are the test.
type place struct {
	t      *testing.T
	site   *githubtest.Site
	github *channel.GitHub
	cfg    server.Config
	http   *httptest.Server
	jobs   chan server.Job
	at     atomic.Pointer[server.Server]
	end    func()
}

func open(t *testing.T, adapt func(*channel.GitHub)) *place {
	t.Helper()
	p := &place{t: t, site: githubtest.Start(t, secret), jobs: make(chan server.Job, 100)}
	p.github = &channel.GitHub{
		Base:    p.site.URL(),
		Token:   githubtest.Token,
		Secret:  []byte(secret),
		Tenants: map[string]string{strings.ToLower(githubtest.Repository): "default"},
	}
	if adapt != nil {
		adapt(p.github)
	}
	mux := http.NewServeMux()
	p.http = httptest.NewServer(mux)
	t.Cleanup(p.http.Close)
	p.cfg = server.Config{
		Dir:     t.TempDir(),
		Address: p.http.URL,
		Dispatch: func(ctx context.Context, job server.Job) error {
			p.jobs <- job
			<-ctx.Done()
			return ctx.Err()
		},
		MaxRuns:  50,
		Channels: []server.Channel{p.github.Channel()},
	}
	p.cfg.Channels[0].Settle = 10 * time.Millisecond // the site sees a comment when it has answered
	mux.Handle("POST /api/webhook", p.github)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { p.at.Load().Handler().ServeHTTP(w, r) })
	p.start()
	p.site.Hook(p.http.URL + "/api/webhook")
	return p
}

func (p *place) start() {
	p.t.Helper()
	at, err := server.Open(p.cfg)
	if err != nil {
		p.t.Fatal(err)
	}
	p.github.Hear = at.Hear
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- at.Serve(ctx) }()
	p.end = func() {
		p.end = func() {}
		cancel()
		if err := <-served; err != nil {
			p.t.Error(err)
		}
		if err := at.Close(); err != nil {
			p.t.Error(err)
		}
	}
	p.t.Cleanup(func() { p.end() })
	p.at.Store(at)
}

// run is the next run that the bridge starts.
func (p *place) run() run {
	p.t.Helper()
	select {
	case job := <-p.jobs:
		return run{p, job}
	case <-time.After(2 * time.Minute):
		p.t.Fatal("no run was started")
		panic("unreachable")
	}
}

type run struct {
	p   *place
	job server.Job
}

func (r run) client() bridge.Client {
	return bridge.Client{URL: r.job.CallbackURL, CorrelationID: r.job.Run, HTTP: r.p.http.Client()}
}

func (r run) reply(seq int64, body string) {
	r.p.t.Helper()
	sender := bridge.NewSender(r.client())
	defer sender.Close()
	sender.Send(harness.Reply{Body: body, Agent: "alice", Kind: harness.ReplyReply, Seq: seq})
	if unsent := sender.Flush(r.p.t.Context()); len(unsent) > 0 {
		r.p.t.Fatalf("not posted: %v, %v", unsent, sender.Err())
	}
}

func (r run) ends() {
	r.p.t.Helper()
	end := bridge.Terminal{Verdict: harness.VerdictAdjourned, Summary: "MIT.", LastActedSeq: 100}
	if err := r.client().PostTerminal(r.p.t.Context(), end); err != nil {
		r.p.t.Fatal(err)
	}
}

// inbox is what people wrote to the run.
func (r run) inbox() []string {
	r.p.t.Helper()
	poller := bridge.Poller{URL: r.job.InboxURL, HTTP: r.p.http.Client()}
	messages, err := poller.Receive(r.p.t.Context(), 0)
	if err != nil {
		r.p.t.Fatal(err)
	}
	var list []string
	for _, m := range messages {
		list = append(list, m.Author+": "+m.Text)
	}
	return list
}

// comments waits until the bridge has written so many.
func (p *place) comments(on *githubtest.Subject, n int) []string {
	p.t.Helper()
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for limit := time.After(time.Minute); ; {
		list := p.site.Comments(on)
		if len(list) >= n {
			return list
		}
		select {
		case <-look.C:
		case <-limit:
			p.t.Fatalf("only %q", list)
		}
	}
}

func check(t *testing.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// TestIssuesAndDiscussionsAreThreads: what opens them starts a run, comments reach it, and what
// agents say is a comment. What the bridge wrote is not heard.
func TestIssuesAndDiscussionsAreThreads(t *testing.T) {
	for _, kind := range []string{"issue", "discussion"} {
		t.Run(kind, func(t *testing.T) {
			p := open(t, nil)
			on := p.site.Open(kind, "Which licence?", "We need one.", githubtest.Eve)
			first := p.run()
			check(t, "the task", "Which licence?\n\nWe need one.", first.job.Task)
			first.reply(4, "I am for MIT.\n\n<b>Really.</b>")
			p.site.Say(on, "Why not BSD?", githubtest.Eve)
			check(t, "the inbox", []string{"@eve: Why not BSD?"}, first.inbox())
			first.ends()
			check(t, "comments", []string{
				"**alice:**\n\nI am for MIT.\n\n<b>Really.</b>", "**The discussion is adjourned.**\n\nMIT.",
			}, p.comments(on, 2))
			p.site.Say(on, "And the docs?", githubtest.Eve)
			second := p.run()
			check(t, "the thread", first.job.Thread, second.job.Thread)
			task := second.job.Task
			if !strings.HasSuffix(task, "Now:\n\nAnd the docs?") || strings.Contains(task, "fit bridge") {
				t.Errorf("the next task: %q", task)
			}
		})
	}
}

// deliver sends a webhook and returns the answer.
func (p *place) deliver(payload []byte, header map[string]string) (status int, answer string) {
	p.t.Helper()
	request, err := http.NewRequestWithContext(p.t.Context(), http.MethodPost, p.http.URL+"/api/webhook",
		bytes.NewReader(payload))
	if err != nil {
		p.t.Fatal(err)
	}
	for name, value := range header {
		request.Header.Set(name, value)
	}
	response, err := p.http.Client().Do(request)
	if err != nil {
		p.t.Fatal(err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	return response.StatusCode, string(content)
}

// TestOnlySignedDeliveriesAreHeard: and one that is sent again, under its own name or another, is
// heard once.
func TestOnlySignedDeliveriesAreHeard(t *testing.T) {
	p := open(t, nil)
	on := p.site.Open("discussion", "Which licence?", "We need one.", githubtest.Eve)
	first := p.run()
	p.site.Hook("")
	event, payload := p.site.Payload(on, p.site.Say(on, "Take MIT.", githubtest.Eve), "created")
	for _, signature := range []string{
		"", "sha256=", "sha256=00", githubtest.Sign("another", payload), githubtest.Sign(secret, payload[1:]),
		strings.TrimPrefix(githubtest.Sign(secret, payload), "sha256="),
	} {
		bad := map[string]string{"X-GitHub-Event": event, "X-Hub-Signature-256": signature}
		status, answer := p.deliver(payload, bad)
		if status != http.StatusUnauthorized || strings.Contains(answer, secret) {
			t.Errorf("%q: %d %s", signature, status, answer)
		}
	}
	good := map[string]string{"X-GitHub-Event": event, "X-Hub-Signature-256": githubtest.Sign(secret, payload)}
	for i, id := range []string{"72d3162e-cc78-11e3", "72d3162e-cc78-11e3", "another"} {
		good["X-GitHub-Delivery"] = id
		status, answer := p.deliver(payload, good)
		if status != http.StatusOK || strings.Contains(answer, `"dedupe":true`) != (i > 0) {
			t.Errorf("delivery %d: %d %s", i, status, answer)
		}
	}
	check(t, "the inbox", []string{"@eve: Take MIT."}, first.inbox())
	form := []byte("payload=%7B%7D")
	status, answer := p.deliver(form, map[string]string{"X-Hub-Signature-256": githubtest.Sign(secret, form)})
	if status != http.StatusUnsupportedMediaType || !strings.Contains(answer, "application/json") {
		t.Errorf("a form: %d %s", status, answer)
	}
}

// TestWhoIsHeard: a stranger's issue would cost money, and bots would talk to each other.
func TestWhoIsHeard(t *testing.T) {
	stranger := githubtest.User{Login: "trent", Association: "CONTRIBUTOR"}
	heard := func(p *place, by githubtest.User) bool {
		on := p.site.Open("issue", "Which licence?", "By "+by.Login, by)
		p.site.Say(on, "@fit, what do you say?", githubtest.Eve) // is heard in any case
		first := p.run()
		if first.job.Task == "Which licence?\n\nBy "+by.Login {
			return true
		}
		if !strings.Contains(first.job.Task, "@"+by.Login+": Which licence?\n\nBy "+by.Login) {
			p.t.Errorf("the team is not told what was asked: %q", first.job.Task)
		}
		return false
	}
	for name, c := range map[string]struct {
		allowed []string
		want    []string
	}{
		"nobody else": {nil, []string{"eve"}},
		"a bot":       {[]string{"dependabot[bot]"}, []string{"eve", "dependabot[bot]"}},
		"everybody":   {[]string{"*"}, []string{"eve", "mallory", "trent"}},
		"somebody":    {[]string{"Trent"}, []string{"eve", "trent"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := open(t, func(g *channel.GitHub) { g.Allowed = c.allowed })
			var got []string
			for _, by := range []githubtest.User{githubtest.Eve, githubtest.Mallory, stranger, githubtest.Robot} {
				if heard(p, by) {
					got = append(got, by.Login)
				}
			}
			check(t, "heard", c.want, got)
		})
	}
	t.Run("a mention", func(t *testing.T) {
		p := open(t, func(g *channel.GitHub) { g.Mention = "@fit" })
		if heard(p, githubtest.Eve) {
			t.Error("an issue that does not mention the bridge was heard")
		}
	})
}

// TestEditedAndDeletedComments: the runs to come are told what is there, and one that is live is
// told of the change.
func TestEditedAndDeletedComments(t *testing.T) {
	p := open(t, nil)
	on := p.site.Open("issue", "Which licence?", "We need one.", githubtest.Eve)
	first := p.run()
	said := p.site.Say(on, "Take BSD.", githubtest.Eve)
	p.site.Change(on, said, "Take MIT.")
	gone := p.site.Say(on, "I hate you.", githubtest.Eve)
	p.site.Change(on, gone, "")
	check(t, "the inbox", []string{
		"@eve: Take MIT.", "@eve: I edited what I wrote. It now reads:\n\nTake MIT.", "@eve: (deleted)",
		"@eve: I deleted what I wrote earlier.",
	}, first.inbox())
	first.ends()
	p.site.Change(on, said, "Take MIT, please.") // nobody is at work: it starts nothing
	event, old := p.site.Payload(on, gone, "edited")
	p.site.Deliver(event, old) // a delivery that is late brings nothing back
	p.site.Say(on, "Well?", githubtest.Eve)
	task := p.run().job.Task
	if !strings.Contains(task, "@eve: Take MIT, please.") || strings.Contains(task, "hate") ||
		!strings.HasSuffix(task, "Now:\n\nWell?") {
		t.Errorf("the next task: %q", task)
	}
}

// TestChangesOfWhatWasNotHeard start nothing, and count when its creation is delivered again: a
// bridge that was down heard of neither.
func TestChangesOfWhatWasNotHeard(t *testing.T) {
	p := open(t, nil)
	on := p.site.Open("issue", "Which licence?", "We need one.", githubtest.Eve)
	p.run().ends()
	unheard := func(body, changed string) (event string, created []byte) {
		p.site.Hook("")
		said := p.site.Say(on, body, githubtest.Eve)
		event, created = p.site.Payload(on, said, "created")
		p.site.Hook(p.http.URL + "/api/webhook")
		p.site.Change(on, said, changed)
		return event, created
	}
	event, edited := unheard("Take BSD.", "Take MIT.")
	_, gone := unheard("I hate you.", "")
	p.site.Deliver(event, gone)
	p.site.Say(on, "Well?", githubtest.Eve)
	next := p.run()
	if !strings.HasSuffix(next.job.Task, "Now:\n\nWell?") || strings.Contains(next.job.Task, "Take") ||
		strings.Contains(next.job.Task, "hate") {
		t.Errorf("the task of the first run since: %q", next.job.Task)
	}
	for range 2 {
		p.site.Deliver(event, edited)
	}
	check(t, "the inbox", []string{"@eve: Take MIT."}, next.inbox())
	t.Run("without a thread", func(t *testing.T) {
		p := open(t, func(g *channel.GitHub) { g.Mention = "@fit" })
		on := p.site.Open("issue", "Which licence?", "We need one.", githubtest.Eve)
		p.site.Hook("")
		said := p.site.Say(on, "@fit I hate you.", githubtest.Eve)
		event, created := p.site.Payload(on, said, "created")
		p.site.Hook(p.http.URL + "/api/webhook")
		p.site.Change(on, said, "")
		p.site.Deliver(event, created)
		p.site.Say(on, "@fit Well?", githubtest.Eve)
		if task := p.run().job.Task; strings.Contains(task, "hate") {
			t.Errorf("the task: %q", task)
		}
	})
}

// TestFailuresLoseNothingAndPostNothingTwice: GitHub takes a comment and its answer is lost, GitHub
// is down, and there were too many requests.
func TestFailuresLoseNothingAndPostNothingTwice(t *testing.T) {
	for _, kind := range []string{"issue", "discussion"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel() // it waits most of the time
			p := open(t, nil)
			fail := make(chan string, 100)
			hook := func(when string) func(*http.Request) (int, http.Header, string) {
				return func(*http.Request) (int, http.Header, string) {
					select {
					case how := <-fail:
						switch when + " " + how {
						case "after lost":
							panic(http.ErrAbortHandler)
						case "after broken":
							return http.StatusBadGateway, nil, "<html>Bad Gateway</html>"
						case "before down":
							return http.StatusServiceUnavailable, nil, ""
						case "before secondary":
							return http.StatusForbidden, http.Header{"Retry-After": {"1"}},
								`{"message":"You have exceeded a secondary rate limit."}`
						case "before primary":
							return http.StatusTooManyRequests, http.Header{
								"X-Ratelimit-Remaining": {"0"}, "X-Ratelimit-Reset": {"0"},
							}, `{"message":"API rate limit exceeded"}`
						}
						fail <- how
					default:
					}
					return 0, nil, ""
				}
			}
			p.site.Before, p.site.After = hook("before"), hook("after")
			on := p.site.Open(kind, "Which licence?", "We need one.", githubtest.Eve)
			first := p.run()
			var want []string
			for i, how := range []string{"lost", "down", "broken", "secondary", "primary"} {
				fail <- how
				first.reply(int64(i), how)
				want = append(want, "**alice:**\n\n"+how)
				p.comments(on, len(want))
			}
			first.ends()
			want = append(want, "**The discussion is adjourned.**\n\nMIT.")
			check(t, "comments", want, p.comments(on, len(want)))
		})
	}
}

// TestALockedIssueHoldsUpNobodyElse, and what it refused is tried when the bridge is started again.
func TestALockedIssueHoldsUpNobodyElse(t *testing.T) {
	p := open(t, nil)
	notes := make(chan string, 100)
	p.cfg.Note = func(text string) { notes <- text }
	p.end()
	p.start()
	locked := p.site.Open("issue", "locked", "x", githubtest.Eve)
	first := p.run()
	p.site.Lock(locked, true)
	first.reply(1, "one")
	other := p.site.Open("issue", "other", "x", githubtest.Eve)
	second := p.run()
	second.reply(1, "two")
	p.comments(other, 1)
	if note := <-notes; !strings.Contains(note, "issue is locked") || strings.Contains(note, githubtest.Token) {
		t.Errorf("the operator is told: %q", note)
	}
	p.end()
	p.site.Lock(locked, false)
	p.start()
	check(t, "comments", []string{"**alice:**\n\none"}, p.comments(locked, 1))
}

// TestLongRepliesAreSeveralComments: GitHub takes 65,536 characters at a time.
func TestLongRepliesAreSeveralComments(t *testing.T) {
	p := open(t, nil)
	on := p.site.Open("issue", "Which licence?", "We need one.", githubtest.Eve)
	body := strings.Repeat(strings.Repeat("ö", 99)+"\n", 1500)
	p.run().reply(1, body)
	var got strings.Builder
	for i, text := range p.comments(on, 3) {
		_, part, _ := strings.Cut(text, " of 3)\n\n")
		got.WriteString(part)
		if i < 2 && !strings.HasSuffix(part, "\n") {
			t.Errorf("part %d ends within a line", i)
		}
	}
	if got.String() != body {
		t.Errorf("%d bytes of %d", got.Len(), len(body))
	}
}

// TestAWebhookSendsEveryPostSigned: in order, again until it is taken, and under the same id.
func TestAWebhookSendsEveryPostSigned(t *testing.T) {
	type request struct {
		id, at, signature string
		body              []byte
	}
	requests := make(chan request, 100)
	calls := 0
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		requests <- request{
			r.Header.Get("Webhook-Id"), r.Header.Get("Webhook-Timestamp"), r.Header.Get("Webhook-Signature"), body,
		}
		if calls++; calls == 1 {
			w.WriteHeader(http.StatusInternalServerError)
		}
	}))
	t.Cleanup(receiver.Close)
	p := open(t, nil)
	key, err := channel.ParseSecret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	if err != nil {
		t.Fatal(err)
	}
	p.end()
	p.cfg.Channels = append(p.cfg.Channels, (&channel.Webhook{URL: receiver.URL, Secret: key}).Channel())
	p.start()
	p.site.Open("issue", "Which licence?", "We need one.", githubtest.Eve)
	p.run().reply(1, "I am for MIT.")
	var ids, bodies []string
	for range 3 {
		got := <-requests
		if want := "v1," + signature(key, got.id, got.at, got.body); got.signature != want {
			t.Errorf("signature %q, want %q", got.signature, want)
		}
		var event channel.Event
		if err := json.Unmarshal(got.body, &event); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, got.id)
		bodies = append(bodies, event.Data.Post.Author+": "+event.Data.Post.Body)
	}
	check(t, "posts", []string{
		"@eve: Which licence?\n\nWe need one.", "@eve: Which licence?\n\nWe need one.", "alice: I am for MIT.",
	}, bodies)
	if ids[0] != ids[1] || slices.Contains(ids[:2], ids[2]) {
		t.Errorf("ids: %q", ids)
	}
}

// signature is what the receiver computes, from the description in the guide.
func signature(key []byte, id, at string, body []byte) string {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(id + "." + at + "." + string(body)))
	return base64.StdEncoding.EncodeToString(mac.Sum(nil))
}
