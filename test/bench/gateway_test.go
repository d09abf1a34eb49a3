package bench

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fit-eval/fit/internal/gateway"
	"github.com/fit-eval/fit/internal/gateway/calls"
	"github.com/fit-eval/fit/internal/model/scripted/scriptedtest"
	"github.com/fit-eval/fit/price"
	"github.com/fit-eval/fit/redact"
	"github.com/fit-eval/fit/session"
)

// gatewayStreams is how many streams are open at the same time.
const gatewayStreams = 50

// streamer is an endpoint that streams events of the Messages protocol, each with the time at which
// it was sent.
type streamer struct {
	began  time.Time
	events int
	// pace is called before each event.
	pace func(event int)
}

// ServeHTTP implements http.Handler.
func (s *streamer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	w.Header().Set("Content-Type", "text/event-stream")
	flusher := http.NewResponseController(w)
	fmt.Fprint(w, `event: message_start`+"\n"+
		`data: {"type":"message_start","message":{"model":"claude-sonnet-4-5","usage":{"input_tokens":10,"output_tokens":1}}}`+
		"\n\n")
	for i := range s.events {
		s.pace(i)
		fmt.Fprintf(w, `event: content_block_delta
data: {"type":"content_block_delta","index":0,"at":%d,"delta":{"type":"text_delta","text":"a few words of text"}}

`, time.Since(s.began).Nanoseconds())
		_ = flusher.Flush()
	}
	fmt.Fprint(w, `event: message_delta`+"\n"+
		`data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":9}}`+"\n\n"+
		`event: message_stop`+"\n"+`data: {"type":"message_stop"}`+"\n\n")
}

// open asks for a stream and calls seen for every event with the time that it took.
func (s *streamer) open(t *testing.T, client *http.Client, url, token string, seen func(took time.Duration)) {
	body := `{"model":"claude-sonnet-4-5","max_tokens":1000,"stream":true,"messages":[{"role":"user","content":"hi"}]}`
	url += "/v1/messages"
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Error(err)
		return
	}
	request.Header.Set("X-Api-Key", token)
	request.Header.Set("Content-Type", "application/json")
	reply, err := client.Do(request)
	if err != nil {
		t.Error(err)
		return
	}
	defer reply.Body.Close()
	complete := false
	lines := bufio.NewScanner(reply.Body)
	for lines.Scan() {
		line := lines.Text()
		complete = complete || strings.Contains(line, `{"type":"message_stop"}`)
		_, rest, found := strings.Cut(line, `"at":`)
		if !found {
			continue
		}
		number, _, _ := strings.Cut(rest, ",")
		at, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			t.Error(err)
			return
		}
		seen(time.Since(s.began) - time.Duration(at))
	}
	if !complete || lines.Err() != nil {
		t.Errorf("status %d, the stream is not complete: %v", reply.StatusCode, lines.Err())
	}
}

// gatewayTo starts a gateway with a budget and rate control before an endpoint, and records its
// calls, as runs do by default.
func gatewayTo(t *testing.T, url string) *gateway.Seat {
	t.Helper()
	prices := session.ListPrices(price.Default())
	var record *calls.Writer
	g, err := gateway.Start(gateway.Config{
		Prices: prices,
		Rate:   gateway.NewRateControl(),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(g.Close(), record.Close()); err != nil {
			t.Error(err)
		}
	})
	record, err = calls.Create(filepath.Join(t.TempDir(), "agent.calls"), calls.Config{
		Redactor: redact.New(redact.Config{}),
	})
	if err != nil {
		t.Fatal(err)
	}
	seat, err := g.Join(gateway.Member{
		Name:      "agent",
		Account:   gateway.NewAccount("the benchmark", gateway.Budget{USD: 1e6, Tokens: 1e12}, prices),
		Calls:     record,
		Upstreams: []gateway.Upstream{{Protocol: gateway.Anthropic, URL: url + "/v1", Header: gateway.APIKey("key")}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return seat
}

func percentile(sorted []time.Duration, share float64) time.Duration {
	return sorted[int(share*float64(len(sorted)-1))]
}

// TestGatewayLatency: of 50 streams at a time, the 99th percentile of an event's latency through
// the gateway is less than 1 ms above that of direct connections in the same run.
func TestGatewayLatency(t *testing.T) {
	needBench(t)
	const rounds, events, every = 5, 50, 20 * time.Millisecond
	endpoint := &streamer{
		began:  time.Now(),
		events: events,
		pace:   func(int) { time.Sleep(every/2 + rand.N(every)) },
	}
	server := httptest.NewServer(endpoint)
	defer server.Close()
	seat := gatewayTo(t, server.URL)
	ways := []struct{ url, token string }{{server.URL, "key"}, {seat.URL, seat.Token}}
	took := make([][]time.Duration, len(ways))
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: gatewayStreams}}
	defer client.CloseIdleConnections()
	for range rounds {
		for i, way := range ways {
			var mu sync.Mutex
			var all sync.WaitGroup
			for range gatewayStreams {
				all.Go(func() {
					endpoint.open(t, client, way.url, way.token, func(d time.Duration) {
						mu.Lock()
						took[i] = append(took[i], d)
						mu.Unlock()
					})
				})
			}
			all.Wait()
		}
	}
	for i := range took {
		if len(took[i]) != rounds*events*gatewayStreams {
			t.Fatalf("%d events of %d", len(took[i]), rounds*events*gatewayStreams)
		}
		slices.Sort(took[i])
	}
	added := percentile(took[1], 0.99) - percentile(took[0], 0.99)
	t.Logf("%d streams, %d events each way: median direct %s, gateway %s; p99 direct %s, gateway %s; added %s",
		gatewayStreams, len(took[0]), percentile(took[0], 0.5), percentile(took[1], 0.5), percentile(took[0], 0.99),
		percentile(took[1], 0.99), added)
	if added > time.Millisecond {
		t.Errorf("the gateway adds %s to the 99th percentile; the limit is 1 ms", added)
	}
}

// TestGatewayHoldsNothingBack: an endpoint that sends an event only when the one before has arrived
// gets through.
func TestGatewayHoldsNothingBack(t *testing.T) {
	needBench(t)
	const events = 2000
	arrived := make(chan struct{}, 1)
	endpoint := &streamer{began: time.Now(), events: events, pace: func(event int) {
		if event > 0 {
			<-arrived
		}
	}}
	server := httptest.NewServer(endpoint)
	defer server.Close()
	seat := gatewayTo(t, server.URL)
	began := time.Now()
	seen := 0
	endpoint.open(t, http.DefaultClient, seat.URL, seat.Token, func(time.Duration) {
		if seen++; seen < events {
			arrived <- struct{}{}
		}
	})
	if seen != events {
		t.Errorf("%d of %d events arrived", seen, events)
	}
	t.Logf("%d events, each sent when the one before had arrived: %s each", events, time.Since(began)/events)
}

// TestGatewayTakesFlatMemory: 50 streams of 10,000 events take no more memory at their end than
// after a tenth of them.
func TestGatewayTakesFlatMemory(t *testing.T) {
	needBench(t)
	const events, early = 10_000, 1000
	stops := []*barrier{newBarrier(gatewayStreams), newBarrier(gatewayStreams)}
	endpoint := &streamer{began: time.Now(), events: events, pace: func(event int) {
		switch event {
		case early:
			stops[0].wait()
		case events - 1:
			stops[1].wait()
		}
	}}
	server := httptest.NewServer(endpoint)
	defer server.Close()
	seat := gatewayTo(t, server.URL)
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: gatewayStreams}}
	defer client.CloseIdleConnections()
	var all sync.WaitGroup
	var arrived atomic.Int64
	quiet := []chan struct{}{make(chan struct{}), make(chan struct{})} // nothing is on its way any more
	count := func(time.Duration) {
		switch arrived.Add(1) {
		case early * gatewayStreams:
			close(quiet[0])
		case (events - 1) * gatewayStreams:
			close(quiet[1])
		}
	}
	for range gatewayStreams {
		all.Go(func() { endpoint.open(t, client, seat.URL, seat.Token, count) })
	}
	var held [2]uint64
	for i, stop := range stops {
		<-stop.full
		<-quiet[i]
		held[i] = live()
		close(stop.open)
	}
	all.Wait()
	grown := int64(held[1]) - int64(held[0])
	t.Logf("%d streams hold %.1f MB after %d events and %.1f MB after %d", gatewayStreams, float64(held[0])/1e6, early,
		float64(held[1])/1e6, events)
	if grown > 1<<20 {
		t.Errorf("%d bytes more; the limit is 1 MiB for all streams", grown)
	}
}

// barrier holds a number of goroutines until it is opened.
type barrier struct {
	mu         sync.Mutex
	missing    int
	full, open chan struct{}
}

func newBarrier(count int) *barrier {
	return &barrier{missing: count, full: make(chan struct{}), open: make(chan struct{})}
}

func (b *barrier) wait() {
	b.mu.Lock()
	if b.missing--; b.missing == 0 {
		close(b.full)
	}
	b.mu.Unlock()
	<-b.open
}

// TestGatewayInARun: the gateway adds at most 15 ms and 10 MB to a run.
func TestGatewayInARun(t *testing.T) {
	fit := needBench(t)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.txt"), []byte("a\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	url := scriptedtest.Serve(t, `{"turns":[{"calls":[{"read":"a.txt"}]},{"text":"Read."}]}`)
	run := func(gateway string) func() *exec.Cmd {
		return func() *exec.Cmd {
			cmd := exec.Command(fit, "harness", "run", "--agent", "builtin", "--model-url", url, "--task-text", "read",
				"--cwd", dir, "--gateway", gateway, "--isolation", "none",
				"--output", filepath.Join(dir, "trace.ndjson"))
			cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_CACHE_HOME="+dir)
			return cmd
		}
	}
	samples := measure(t, 20, run("off"), run("on"))
	without, with := medianWall(samples[0]), medianWall(samples[1])
	rss := medianRSS(samples[1]) - medianRSS(samples[0])
	t.Logf("without the gateway %s · with it %s · added %s and %.1f MB", without, with, with-without,
		float64(rss)/1024)
	if with-without > 15*time.Millisecond {
		t.Errorf("the gateway adds %s to a run; the limit is 15 ms", with-without)
	}
	if rss > 10*1024 {
		t.Errorf("the gateway adds %d KiB to a run; the limit is 10 MB", rss)
	}
}

func medianRSS(samples []sample) int64 {
	var all []int64
	for _, s := range samples {
		all = append(all, s.rss)
	}
	slices.Sort(all)
	return all[len(all)/2]
}
