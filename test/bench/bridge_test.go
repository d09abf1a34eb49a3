package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fit-eval/fit/internal/bridge/server"
	"github.com/fit-eval/fit/internal/testenv"
	"github.com/fit-eval/fit/internal/view"
)

// What people do in the threads of a bridge, and what their pages may take.
const (
	postsASecond = 5
	// followed is how many threads one browser follows.
	followed = 10
	// mostOfRelay is how much longer a post may take to a page than an event through a bare relay.
	mostOfRelay = 5
)

// crowd posts in threads, and reads them in pages. Its posts hold the time at which they were sent.
type crowd struct {
	t       *testing.T
	client  *http.Client
	address string
	header  http.Header
	threads []string
	began   time.Time

	mu    sync.Mutex
	took  []time.Duration
	last  map[string]int // the last post that a page has of a thread; they are numbered from 1
	wrong []string
}

func newCrowd(t *testing.T, address string, header http.Header) *crowd {
	transport := &http.Transport{MaxIdleConnsPerHost: 1000}
	t.Cleanup(transport.CloseIdleConnections)
	return &crowd{
		t:       t,
		client:  &http.Client{Transport: transport},
		address: address,
		header:  header,
		began:   time.Now(),
		last:    map[string]int{},
	}
}

func (c *crowd) do(ctx context.Context, method, path string, body any) (*http.Response, error) {
	content, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, method, c.address+path, strings.NewReader(string(content)))
	if err != nil {
		return nil, err
	}
	request.Header = c.header
	response, err := c.client.Do(request)
	if err == nil && response.StatusCode != http.StatusOK {
		said, _ := io.ReadAll(response.Body)
		_ = response.Body.Close()
		return nil, fmt.Errorf("%s %s: %d %s", method, path, response.StatusCode, said)
	}
	return response, err
}

// seen notes that a page shows a post.
func (c *crowd) seen(thread, body string) {
	number, sent, _ := strings.Cut(body, " ")
	n, err := strconv.Atoi(number)
	at, atErr := strconv.ParseInt(sent, 10, 64)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil || atErr != nil || n != c.last[thread]+1 {
		c.wrong = append(c.wrong, fmt.Sprintf("%s after post %d: %q", thread, c.last[thread], body))
		return
	}
	c.last[thread] = n
	c.took = append(c.took, time.Since(c.began)-time.Duration(at))
}

// post posts in all threads for a while.
func (c *crowd) post(path func(thread string) string, posts int) {
	var work sync.WaitGroup
	begin := time.NewTicker(time.Second / postsASecond / time.Duration(len(c.threads))) // not all at the same moment
	defer begin.Stop()
	for _, thread := range c.threads {
		<-begin.C
		work.Go(func() {
			pace := time.NewTicker(time.Second / postsASecond)
			defer pace.Stop()
			for n := range posts {
				<-pace.C
				body := fmt.Sprintf("%d %d", n+1, time.Since(c.began))
				response, err := c.do(c.t.Context(), http.MethodPost, path(thread), map[string]string{"body": body})
				if err != nil {
					c.t.Error(err)
					return
				}
				_, _ = io.Copy(io.Discard, response.Body)
				_ = response.Body.Close()
			}
		})
	}
	work.Wait()
}

// arrived waits until the pages have all posts, and returns how long 99% of them took at most.
func (c *crowd) arrived(posts int) time.Duration {
	c.t.Helper()
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for limit := time.After(2 * time.Minute); ; {
		c.mu.Lock()
		took, wrong := slices.Clone(c.took), slices.Clone(c.wrong)
		c.mu.Unlock()
		if len(wrong) > 0 {
			c.t.Fatalf("%d posts are wrong, the first: %s", len(wrong), wrong[0])
		}
		if len(took) == posts*len(c.threads) {
			slices.Sort(took)
			return took[len(took)*99/100]
		}
		select {
		case <-look.C:
		case <-limit:
			c.t.Fatalf("%d of %d posts arrived", len(took), posts*len(c.threads))
		}
	}
}

// stream reads a stream of events, and calls take with each.
func (c *crowd) stream(ctx context.Context, path string, take func(event, data string)) {
	response, err := c.do(ctx, http.MethodGet, path, nil)
	if err != nil {
		c.t.Error(err)
		return
	}
	defer response.Body.Close()
	event := ""
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		if name, is := strings.CutPrefix(lines.Text(), "event: "); is {
			event = name
		} else if data, is := strings.CutPrefix(lines.Text(), "data: "); is {
			take(event, data)
		}
	}
}

// relay passes events on to the streams that follow their thread, and does nothing else.
type relay struct {
	mu      sync.Mutex
	streams map[string]chan string
}

func (l *relay) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPost {
		var said struct{ Body string }
		if err := json.NewDecoder(r.Body).Decode(&said); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		thread := r.URL.Query().Get("thread")
		l.mu.Lock()
		stream := l.streams[thread]
		l.mu.Unlock()
		stream <- thread + " " + said.Body
		return
	}
	stream := make(chan string, 1000)
	l.mu.Lock()
	for _, thread := range r.URL.Query()["thread"] {
		l.streams[thread] = stream
	}
	l.mu.Unlock()
	w.Header().Set("Content-Type", "text/event-stream")
	control := http.NewResponseController(w)
	fmt.Fprint(w, "event: ready\ndata: {}\n\n")
	for control.Flush() == nil {
		select {
		case event := <-stream:
			fmt.Fprintf(w, "event: post\ndata: %s\n\n", event)
		case <-r.Context().Done():
			return
		}
	}
}

// throughRelay is how long events take through a bare relay.
func throughRelay(t *testing.T, threads, posts int) time.Duration {
	t.Helper()
	web := httptest.NewServer(&relay{streams: map[string]chan string{}})
	t.Cleanup(web.Close)
	c := newCrowd(t, web.URL, http.Header{"Content-Type": {"application/json"}})
	for i := range threads {
		c.threads = append(c.threads, "thread-"+strconv.Itoa(i))
	}
	ctx, leave := context.WithCancel(t.Context())
	var pages, ready sync.WaitGroup
	for group := range slices.Chunk(c.threads, followed) {
		ready.Add(1)
		pages.Go(func() {
			c.stream(ctx, "/?"+url.Values{"thread": group}.Encode(), func(event, data string) {
				if event == "ready" {
					ready.Done()
					return
				}
				thread, body, _ := strings.Cut(data, " ")
				c.seen(thread, body)
			})
		})
	}
	ready.Wait()
	c.post(func(thread string) string { return "/?thread=" + thread }, posts)
	took := c.arrived(posts)
	leave()
	pages.Wait()
	return took
}

// page is a browser that follows threads: it hears which have changed, and reads what is new.
func (c *crowd) page(ctx context.Context, threads []string, ready func()) {
	after := map[string]int64{}
	c.stream(ctx, "/api/events?list=0", func(event, data string) {
		var said struct{ ID, Thread string }
		if err := json.Unmarshal([]byte(data), &said); err != nil {
			c.t.Error(err)
		}
		switch event {
		case "stream":
			response, err := c.do(ctx, http.MethodPost, "/api/events/"+said.ID, map[string]any{"threads": threads})
			if err != nil {
				c.t.Error(err)
			} else {
				_ = response.Body.Close()
			}
			ready()
		case "thread":
			after[said.Thread] = c.read(ctx, said.Thread, after[said.Thread])
		}
	})
}

// read reads the posts of a thread after a number.
func (c *crowd) read(ctx context.Context, thread string, after int64) int64 {
	for {
		response, err := c.do(ctx, http.MethodGet, fmt.Sprintf("/api/threads/%s?after=%d", thread, after), nil)
		if err != nil {
			if ctx.Err() == nil {
				c.t.Error(err)
			}
			return after
		}
		var view server.View
		err = json.NewDecoder(response.Body).Decode(&view)
		_ = response.Body.Close()
		if err != nil {
			return after
		}
		for _, post := range view.Posts {
			if after = post.N; post.Body != opening {
				c.seen(thread, post.Body)
			}
		}
		if after >= view.Thread.Last {
			return after
		}
	}
}

// opening is the post that opens a thread.
const opening = "Which licence?"

// openBridge starts a bridge with its pages, whose runs hold on.
func openBridge(t *testing.T) (*server.Server, *crowd) {
	t.Helper()
	dir := t.TempDir()
	var pages *view.ThreadPages
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { pages.ServeHTTP(w, r) }))
	bridge, err := server.Open(server.Config{
		Dir:     dir,
		Address: web.URL,
		Dispatch: func(ctx context.Context, _ server.Job) error {
			<-ctx.Done()
			return ctx.Err()
		},
		MaxRuns: 1000,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- bridge.Serve(ctx) }()
	pages, err = view.NewThreadPages(view.Config{}, view.Bridge{
		Server:  bridge,
		Address: web.URL,
		Trace:   func(_, run string) string { return filepath.Join(dir, run) },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		if err := pages.Close(); err != nil {
			t.Error(err)
		}
		web.Close()
		if err := <-served; err != nil {
			t.Error(err)
		}
		if err := bridge.Close(); err != nil {
			t.Error(err)
		}
	})
	token, err := server.Invite(dir, "default", "Eve")
	if err != nil {
		t.Fatal(err)
	}
	c := newCrowd(t, web.URL, http.Header{"Content-Type": {"application/json"}, "Origin": {web.URL}})
	c.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	response, err := c.client.Get(web.URL + "/?token=" + url.QueryEscape(token)) //nolint:noctx // of this test
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	cookie, _, _ := strings.Cut(response.Header.Get("Set-Cookie"), ";")
	c.header.Set("Cookie", cookie)
	return bridge, c
}

// throughBridge is how long posts take to the pages of a bridge, and how much memory the process
// has after a third of the posts and in the end.
func throughBridge(t *testing.T, threads, posts int) (took time.Duration, early, late int) {
	t.Helper()
	bridge, c := openBridge(t)
	for i := range threads { // a person may not open so many in so short a time
		thread, _, err := bridge.Hear(server.Heard{
			Tenant: "default", Channel: "bench", Place: strconv.Itoa(i), Opens: true,
			Body: opening, Key: opening,
		})
		if err != nil {
			t.Fatal(err)
		}
		c.threads = append(c.threads, thread)
	}
	ctx, leave := context.WithCancel(t.Context())
	var pages, ready sync.WaitGroup
	for group := range slices.Chunk(c.threads, followed) {
		ready.Add(1)
		pages.Go(func() { c.page(ctx, group, ready.Done) })
	}
	ready.Wait()
	c.began = time.Now()
	third := time.AfterFunc(time.Duration(posts)*time.Second/postsASecond/3, func() { early = resident(t) })
	c.post(func(thread string) string { return "/api/threads/" + thread + "/posts" }, posts)
	third.Stop()
	took = c.arrived(posts)
	late = resident(t)
	leave()
	pages.Wait()
	return took, early, late
}

// resident is how many pages of memory the process has when what is not used has been returned.
func resident(t *testing.T) int {
	t.Helper()
	debug.FreeOSMemory()
	var size, pages int
	content, err := os.ReadFile("/proc/self/statm")
	if err == nil {
		_, err = fmt.Sscan(string(content), &size, &pages)
	}
	if err != nil {
		t.Error(err)
	}
	return pages * os.Getpagesize()
}

// TestBridgeUnderLoad: people post in many threads and follow them in pages. Every page shows every
// post once and in order. With FIT_BENCH it also compares the time with that of a bare relay.
func TestBridgeUnderLoad(t *testing.T) {
	if _, err := os.Stat("/proc/self/statm"); err != nil {
		testenv.Missing(t, "/proc, to read the memory from: it needs Linux")
	}
	threads, seconds := 20, 1
	gated := os.Getenv("FIT_BENCH") != ""
	if gated {
		threads, seconds = 200, 30
	}
	bare := throughRelay(t, threads, seconds*postsASecond)
	took, early, late := throughBridge(t, threads, seconds*postsASecond)
	ratio := float64(took) / float64(bare)
	load, _ := os.ReadFile("/proc/loadavg")
	t.Logf("%d threads, %d posts a second: p99 %s, relay %s, ratio %.1f; memory %d MB after a third, %d MB in the end; load %s",
		threads, threads*postsASecond, took, bare, ratio, early>>20, late>>20, strings.TrimSpace(string(load)))
	if !gated {
		return
	}
	if ratio > mostOfRelay {
		t.Errorf("the ratio is %.1f, at most %d is allowed", ratio, mostOfRelay)
	}
	if late > early+early/4+16<<20 {
		t.Errorf("the memory grew from %d MB to %d MB", early>>20, late>>20)
	}
}
