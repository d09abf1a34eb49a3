package model_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fit-eval/fit/internal/model"
)

// fakeEndpoint answers from memory, so that time in a test can be fake too.
type fakeEndpoint struct {
	replies []fakeReply
	asked   []time.Time
}

type fakeReply struct {
	status int
	header map[string]string
	body   string
}

func (f *fakeEndpoint) RoundTrip(r *http.Request) (*http.Response, error) {
	f.asked = append(f.asked, time.Now())
	reply := f.replies[min(len(f.asked), len(f.replies))-1]
	if reply.status == 0 {
		return nil, errors.New("connection refused")
	}
	header := http.Header{"Content-Type": {"application/json"}}
	for name, value := range reply.header {
		header.Set(name, value)
	}
	return &http.Response{
		StatusCode: reply.status, Header: header, Body: io.NopCloser(strings.NewReader(reply.body)),
		Request: r,
	}, nil
}

var fine = fakeReply{
	status: 200,
	body:   `{"id":"m","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"ok"}],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1}}`,
}

func (f *fakeEndpoint) client(t *testing.T, cfg model.Config) model.Client {
	t.Helper()
	cfg.Protocol, cfg.HTTPClient = model.Anthropic, &http.Client{Transport: f}
	client, err := model.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func (f *fakeEndpoint) waits() []time.Duration {
	var waits []time.Duration
	for i := 1; i < len(f.asked); i++ {
		waits = append(waits, f.asked[i].Sub(f.asked[i-1]))
	}
	return waits
}

func TestBackoffGrowsAndIsSpread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		endpoint := &fakeEndpoint{replies: []fakeReply{{status: 500}, {status: 529}, {}, {status: 503}, fine}}
		if _, err := endpoint.client(t, model.Config{}).Complete(t.Context(), question()); err != nil {
			t.Fatal(err)
		}
		limit := 500 * time.Millisecond
		for i, wait := range endpoint.waits() {
			if wait < limit/2 || wait > limit {
				t.Errorf("wait %d was %v, want between %v and %v", i, wait, limit/2, limit)
			}
			limit *= 2
		}
		if len(endpoint.asked) != 5 {
			t.Errorf("asked %d times", len(endpoint.asked))
		}
	})
}

func TestRetryAfterIsHonoured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, tt := range map[string]struct {
			header map[string]string
			want   time.Duration
		}{
			"seconds":      {map[string]string{"Retry-After": "20"}, 20 * time.Second},
			"milliseconds": {map[string]string{"Retry-After-Ms": "1500", "Retry-After": "20"}, 1500 * time.Millisecond},
			"a past date":  {map[string]string{"Retry-After": "Mon, 01 Jan 1990 00:00:00 GMT"}, 0},
			"a date":       {map[string]string{"Retry-After": "in a minute"}, time.Minute},
		} {
			if tt.header["Retry-After"] == "in a minute" {
				tt.header["Retry-After"] = time.Now().Add(time.Minute).UTC().Format(http.TimeFormat)
			}
			endpoint := &fakeEndpoint{replies: []fakeReply{{status: 429, header: tt.header}, fine}}
			if _, err := endpoint.client(t, model.Config{}).Complete(t.Context(), question()); err != nil {
				t.Fatal(err)
			}
			got := endpoint.waits()[0]
			if slack := got - tt.want; slack < -time.Second || slack > time.Second {
				t.Errorf("%s: waited %v, want %v", name, got, tt.want)
			}
		}
	})
}

func TestAnAbsurdRetryAfterIsReportedAndNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		endpoint := &fakeEndpoint{replies: []fakeReply{{
			status: 429,
			header: map[string]string{"Retry-After": "86400"},
		}}}
		_, err := endpoint.client(t, model.Config{}).Complete(t.Context(), question())
		var failure *model.Error
		if !errors.As(err, &failure) || failure.RetryAfter != 24*time.Hour || len(endpoint.asked) != 1 {
			t.Errorf("asked %d times: %v", len(endpoint.asked), err)
		}
	})
}

func TestRetriesEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for given, want := range map[int]int{0: 1 + model.DefaultMaxRetries, 2: 3, -1: 1} {
			endpoint := &fakeEndpoint{replies: []fakeReply{{
				status: 500,
				body:   `{"type":"error","error":{"type":"api_error","message":"boom"}}`,
			}}}
			_, err := endpoint.client(t, model.Config{MaxRetries: given}).Complete(t.Context(), question())
			if kindOf(err) != model.KindServer || len(endpoint.asked) != want {
				t.Errorf("MaxRetries %d: asked %d times, want %d: %v", given, len(endpoint.asked), want, err)
			}
			if !strings.Contains(err.Error(), "boom") {
				t.Errorf("the service's words are lost: %v", err)
			}
		}
	})
}

func TestTheServiceKnowsBestWhetherToRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		endpoint := &fakeEndpoint{replies: []fakeReply{{
			status: 500,
			header: map[string]string{"X-Should-Retry": "false"},
		}}}
		if _, err := endpoint.client(t, model.Config{}).Complete(t.Context(), question()); err == nil ||
			len(endpoint.asked) != 1 {
			t.Errorf("asked %d times: %v", len(endpoint.asked), err)
		}
	})
}

func TestCancellingEndsTheWaitAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		endpoint := &fakeEndpoint{replies: []fakeReply{{status: 429, header: map[string]string{"Retry-After": "300"}}}}
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		start := time.Now()
		_, err := endpoint.client(t, model.Config{}).Complete(ctx, question())
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 3*time.Second {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
	})
}
