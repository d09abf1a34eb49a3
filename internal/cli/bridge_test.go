package cli_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/fit-eval/fit/internal/bridge"
)

// cmdBridge serves a small bridge while the script runs: bridge POSTS INBOX [trouble]. What is
// posted goes to one file, a line each; what people write is read from the other. It sets
// $CALLBACK_URL, $INBOX_URL and $CORRELATION_ID. Trouble is "flaky": every other request is
// answered by 500, or "refuse": all of them by 404.
func cmdBridge(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: bridge posts inbox [flaky|refuse]")
	}
	b := &bridgeStub{posts: ts.MkAbs(args[0]), inbox: ts.MkAbs(args[1]), seen: map[string]bool{}}
	if len(args) > 2 {
		b.trouble = args[2]
	}
	server := httptest.NewServer(b)
	ts.Defer(server.Close)
	ts.Setenv("CALLBACK_URL", server.URL+"/api/callback/default/token-4711")
	ts.Setenv("INBOX_URL", server.URL+"/api/inbox/default/corr-1")
	ts.Setenv("CORRELATION_ID", "corr-1")
}

type bridgeStub struct {
	posts, inbox, trouble string

	mu       sync.Mutex
	requests int
	seen     map[string]bool
}

func (b *bridgeStub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		b.answerInbox(w, r)
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.requests++
	switch {
	case b.trouble == "refuse":
		http.Error(w, "unknown", http.StatusNotFound)
	case b.trouble == "flaky" && b.requests%2 == 1:
		http.Error(w, "trouble", http.StatusInternalServerError)
	default:
		b.accept(w, r)
	}
}

func (b *bridgeStub) accept(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var callback bridge.Callback
	if err := json.Unmarshal(body, &callback); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if callback.Seq != nil {
		key := fmt.Sprintf("%s/%d", callback.CorrelationID, *callback.Seq)
		if b.seen[key] {
			_ = json.NewEncoder(w).Encode(map[string]bool{"ok": true, "dedupe": true})
			return
		}
		b.seen[key] = true
	}
	file, err := os.OpenFile(b.posts, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = file.Write(body)
		_ = file.Close()
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	_ = json.NewEncoder(w).Encode(map[string]bool{"ok": true})
}

// answerInbox holds the question for a moment, as a bridge does, and answers with what the file
// holds after the given seq.
func (b *bridgeStub) answerInbox(w http.ResponseWriter, r *http.Request) {
	since, _ := strconv.ParseInt(r.URL.Query().Get("since"), 10, 64)
	for deadline := time.Now().Add(2 * time.Second); ; {
		var page, answer bridge.InboxPage
		if data, err := os.ReadFile(b.inbox); err == nil {
			_ = json.Unmarshal(data, &page)
		}
		for _, m := range page.Messages {
			if m.Seq > since {
				answer.Messages = append(answer.Messages, m)
			}
		}
		if len(answer.Messages) > 0 || time.Now().After(deadline) || r.Context().Err() != nil {
			_ = json.NewEncoder(w).Encode(answer)
			return
		}
		time.Sleep(10 * time.Millisecond) // the script writes the file; there is nothing to wait on
	}
}
