package bridge_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/fit-eval/fit/internal/bridge"
	"github.com/fit-eval/fit/internal/harness"
	"github.com/fit-eval/fit/redact"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const token = "/api/callback/default/0f5a"

// thread is a small bridge: it keeps what was posted, and knows each reply by its correlation id
// and seq.
type thread struct {
	mu       sync.Mutex
	posts    []string
	seen     map[string]bool
	raw      []string
	inbox    []bridge.InboxMessage
	trouble  func(n int) int // the status of the n-th request, 0 for no trouble
	requests int
}

func (b *thread) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.requests++
	if b.trouble != nil {
		if status := b.trouble(b.requests); status != 0 {
			http.Error(w, "trouble", status)
			return
		}
	}
	switch {
	case r.Method == http.MethodGet && strings.HasPrefix(r.URL.Path, "/api/inbox/"):
		since, _ := strconv.ParseInt(r.URL.Query().Get("since"), 10, 64)
		page := bridge.InboxPage{Messages: []bridge.InboxMessage{}}
		for _, m := range b.inbox {
			if m.Seq > since {
				page.Messages = append(page.Messages, m)
			}
		}
		_ = json.NewEncoder(w).Encode(page)
	case r.Method == http.MethodPost && r.URL.Path == token:
		b.callback(w, r)
	default:
		http.Error(w, "unknown", http.StatusNotFound)
	}
}

func (b *thread) callback(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var callback bridge.Callback
	if err := json.Unmarshal(body, &callback); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	b.raw = append(b.raw, strings.TrimSpace(string(body)))
	if callback.Kind != bridge.KindTerminal {
		key := callback.CorrelationID + "/" + strconv.FormatInt(*callback.Seq, 10)
		if b.seen[key] {
			_ = json.NewEncoder(w).Encode(map[string]bool{"ok": true, "dedupe": true})
			return
		}
		b.seen[key] = true
		b.posts = append(b.posts, callback.Agent+": "+callback.Body)
	}
	_ = json.NewEncoder(w).Encode(map[string]bool{"ok": true})
}

func serve(t *testing.T, b *thread) (*httptest.Server, bridge.Client) {
	t.Helper()
	b.seen = map[string]bool{}
	server := httptest.NewServer(b)
	t.Cleanup(server.Close)
	return server, bridge.Client{
		URL: server.URL + token, CorrelationID: "corr-1", Backoff: time.Millisecond, HTTP: server.Client(),
		Redactor: redact.New(redact.Config{Extra: map[string]string{"DEPLOY_KEY": "s3cr3t-value-0001"}}),
	}
}

func reply(seq int64, body string) harness.Reply {
	return harness.Reply{Body: body, Agent: "alice", Kind: harness.ReplyReply, Seq: seq}
}

// flush waits until everything was posted or refused, however slow the machine is.
func flush(t *testing.T, s *bridge.Sender) []int64 {
	t.Helper()
	return s.Flush(t.Context())
}

func TestRepliesArePostedInOrderAndRedacted(t *testing.T) {
	b := &thread{}
	_, client := serve(t, b)
	s := bridge.NewSender(client)
	defer s.Close()
	s.Send(reply(7, "one"))
	s.Send(harness.Reply{Body: "the key is s3cr3t-value-0001 <b>", Agent: "lead", Kind: harness.ReplyAck, Seq: 9})
	if unsent := flush(t, s); len(unsent) != 0 {
		t.Errorf("not posted: %v, %v", unsent, s.Err())
	}
	want := []string{
		`{"correlation_id":"corr-1","kind":"reply","seq":7,"body":"one","agent":"alice"}`,
		`{"correlation_id":"corr-1","kind":"ack","seq":9,"body":"the key is [REDACTED:env:DEPLOY_KEY] <b>","agent":"lead"}`,
	}
	if diff := cmp.Diff(want, b.raw); diff != "" {
		t.Errorf("what was posted (-want +got):\n%s", diff)
	}
}

func TestABridgeThatAnswers500IsTriedAgainAndGetsEverythingOnce(t *testing.T) {
	b := &thread{trouble: func(n int) int {
		switch {
		case n <= 3:
			return http.StatusInternalServerError
		case n == 4:
			return http.StatusTooManyRequests
		default:
			return 0
		}
	}}
	_, client := serve(t, b)
	s := bridge.NewSender(client)
	defer s.Close()
	for i := range int64(5) {
		s.Send(reply(i, strconv.FormatInt(i, 10)))
	}
	if unsent := flush(t, s); len(unsent) != 0 {
		t.Errorf("not posted: %v, %v", unsent, s.Err())
	}
	if diff := cmp.Diff([]string{"alice: 0", "alice: 1", "alice: 2", "alice: 3", "alice: 4"}, b.posts); diff != "" {
		t.Errorf("the thread (-want +got):\n%s", diff)
	}
}

func TestASecondDeliveryIsKnownBySeqAndCorrelationID(t *testing.T) {
	b := &thread{}
	_, client := serve(t, b)
	for range 2 { // a session that was resumed posts its earlier replies again
		s := bridge.NewSender(client)
		s.Send(reply(3, "only once"))
		flush(t, s)
		s.Close()
	}
	other := client
	other.CorrelationID = "corr-2"
	s := bridge.NewSender(other)
	defer s.Close()
	s.Send(reply(3, "of another session"))
	flush(t, s)
	if diff := cmp.Diff([]string{"alice: only once", "alice: of another session"}, b.posts); diff != "" {
		t.Errorf("the thread (-want +got):\n%s", diff)
	}
}

func TestAWrongTokenIsReportedAtOnceAndNotRetried(t *testing.T) {
	b := &thread{}
	server, client := serve(t, b)
	client.URL = server.URL + "/api/callback/default/wrong"
	s := bridge.NewSender(client)
	defer s.Close()
	s.Send(reply(1, "lost"))
	s.Send(reply(2, "lost too"))
	if diff := cmp.Diff([]int64{1, 2}, flush(t, s)); diff != "" {
		t.Errorf("unsent (-want +got):\n%s", diff)
	}
	if b.requests != 2 {
		t.Errorf("%d requests", b.requests)
	}
	if err := s.Err(); err == nil || !strings.Contains(err.Error(), "is unknown or has expired") ||
		strings.Contains(err.Error(), "wrong") {
		t.Errorf("the error must say what is wrong and not the address: %v", err)
	}
}

func TestAReplyThatTheBridgeRefusesDoesNotHoldUpTheOthers(t *testing.T) {
	b := &thread{trouble: func(n int) int {
		if n == 1 {
			return http.StatusBadRequest
		}
		return 0
	}}
	_, client := serve(t, b)
	s := bridge.NewSender(client)
	defer s.Close()
	s.Send(reply(1, "refused"))
	s.Send(reply(2, "taken"))
	if diff := cmp.Diff([]int64{1}, flush(t, s)); diff != "" {
		t.Errorf("unsent (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"alice: taken"}, b.posts); diff != "" {
		t.Errorf("the thread (-want +got):\n%s", diff)
	}
}

func TestABridgeThatIsDownOrSlowDoesNotHoldUpAnything(t *testing.T) {
	release := make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}))
	defer slow.Close()
	defer close(release)
	// It keeps its port, so that nobody else answers there.
	down := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		panic(http.ErrAbortHandler)
	}))
	defer down.Close()
	for name, url := range map[string]string{"slow": slow.URL, "down": down.URL} {
		t.Run(name, func(t *testing.T) {
			s := bridge.NewSender(bridge.Client{URL: url, CorrelationID: "c", HTTP: slow.Client()})
			defer s.Close()
			for i := range int64(1000) { // nobody takes one, and Send comes back all the same
				s.Send(reply(i, "x"))
			}
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			defer cancel()
			unsent := s.Flush(ctx)
			if len(unsent) != 1000 || unsent[0] != 0 || unsent[999] != 999 {
				t.Errorf("%d unsent", len(unsent))
			}
		})
	}
}

func TestTheInboxGivesMessagesWithTheirAuthors(t *testing.T) {
	b := &thread{inbox: []bridge.InboxMessage{
		{Seq: 1, Text: "hello", Author: "ann"},
		{Seq: 2, Text: "and?", Author: "bea", EnqueuedAt: 5},
	}}
	server, client := serve(t, b)
	p := &bridge.Poller{URL: server.URL + "/api/inbox/default/corr-1", HTTP: client.HTTP}
	got, err := p.Receive(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]harness.HumanMessage{
		{Seq: 1, Author: "ann", Text: "hello"},
		{Seq: 2, Author: "bea", Text: "and?"},
	}, got); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
	if got, err = p.Receive(t.Context(), 2); err != nil || len(got) != 0 {
		t.Errorf("after the last one: %v, %v", got, err)
	}
}

func TestAnInboxThatFailsSaysSoWithoutItsAddress(t *testing.T) {
	b := &thread{trouble: func(int) int { return http.StatusInternalServerError }}
	server, client := serve(t, b)
	p := &bridge.Poller{URL: server.URL + "/api/inbox/default/corr-1", HTTP: client.HTTP, Backoff: time.Millisecond}
	if _, err := p.Receive(t.Context(), 0); err == nil || !strings.Contains(err.Error(), "500") ||
		strings.Contains(err.Error(), "corr-1") {
		t.Errorf("error: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.Receive(ctx, 0); err == nil {
		t.Error("a cancelled question must end")
	}
}

func TestTerminal(t *testing.T) {
	b := &thread{}
	_, client := serve(t, b)
	err := client.PostTerminal(t.Context(),
		bridge.Terminal{Verdict: "adjourned", Replies: []harness.Reply{}, LastActedSeq: -1})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{`{"correlation_id":"corr-1","kind":"terminal","verdict":"adjourned","summary":"","run_url":"","cost_usd":0,"replies":[],"last_acted_seq":-1}`}
	if diff := cmp.Diff(want, b.raw); diff != "" {
		t.Errorf("what was posted (-want +got):\n%s", diff)
	}
}

// TestRedirectsAreNotFollowed: the address of a callback holds a token, and another server that
// answers 200 has not taken the callback.
func TestRedirectsAreNotFollowed(t *testing.T) {
	var visits atomic.Int32
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { visits.Add(1) }))
	defer elsewhere.Close()
	for _, status := range []int{http.StatusMovedPermanently, http.StatusFound, http.StatusTemporaryRedirect} {
		server := httptest.NewServer(http.RedirectHandler(elsewhere.URL, status))
		client := bridge.Client{URL: server.URL + "/callback?token=t0ken", CorrelationID: "c", HTTP: server.Client()}
		err := client.PostTerminal(t.Context(), bridge.Terminal{})
		var refused *bridge.StatusError
		if !errors.As(err, &refused) || refused.Status != status {
			t.Errorf("%d: %v", status, err)
		}
		server.Close()
	}
	if n := visits.Load(); n > 0 {
		t.Errorf("%d redirects were followed", n)
	}
}
