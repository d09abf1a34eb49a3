package view

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fit-eval/fit/internal/experiment/control"
	"github.com/fit-eval/fit/internal/report/versus/versustest"
)

// steered is a running experiment whose status a test changes; it keeps the commands it was given.
type steered struct {
	mu       sync.Mutex
	now      control.Status
	commands []control.Command
}

func (s *steered) Status(context.Context) (control.Status, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now, nil
}

func (s *steered) Control(_ context.Context, c control.Command) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.commands = append(s.commands, c)
	return "done", nil
}

// change changes the status, when the page asks for it.
func (s *steered) change(t *testing.T, change func(now *control.Status)) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		change(&s.now)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// steer makes a run directory that the given experiment runs in.
func steer(t *testing.T, running *steered) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "standing")
	if err := writeContest(dir, 2, versustest.Solves, "gives-up"); err != nil {
		t.Fatal(err)
	}
	if running == nil {
		return dir
	}
	server, err := control.Serve(dir, running)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	return dir
}

// The pages of a browser share one stream of events: a browser allows six connections to a server,
// and twenty pages work.
func TestTwentyTabs(t *testing.T) {
	t.Parallel()
	b := chromium(t)
	running := &steered{now: control.Status{
		State:   control.Running,
		Total:   10,
		Done:    7,
		Running: []control.Cell{},
	}}
	dir := steer(t, running)
	const someTrace = "runs/fix-add-00/pear/0/1/agent.ndjson"
	trace := filepath.Join(dir, someTrace)
	var c conversation
	c.text("more")
	if err := os.WriteFile(trace, []byte(begin().String()+c.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	change := running.change(t, func(now *control.Status) {
		now.Done = 9
		file, err := os.OpenFile(trace, os.O_APPEND|os.O_WRONLY, 0)
		if err == nil {
			_, err = file.WriteString(c.String())
			_ = file.Close()
		}
		if err != nil {
			t.Error(err)
		}
	})
	b.run(t, "manyTabs", map[string]any{
		"url": serve(t, dir), "change": change, "trace": "ID%2F" + url.PathEscape(someTrace),
	})
}

// Nothing changes in a run that has ended, so its pages hold no connection.
func TestFinishedRunsHaveNoStream(t *testing.T) {
	t.Parallel()
	b := chromium(t)
	b.run(t, "noStream", map[string]any{
		"url": serve(t, steer(t, nil)), "trace": "ID%2F" + url.PathEscape("runs/fix-add-00/pear/0/1/trace.ndjson"),
	})
}

// What is typed into a field is a draft: a status that arrives between two keys does not change it,
// and nothing is sent but what was confirmed.
func TestInputsAreDrafts(t *testing.T) {
	t.Parallel()
	b := chromium(t)
	running := &steered{now: control.Status{
		State:       control.Paused,
		LeftMs:      &control.Left{Est: 180_000, Lo: 120_000, Hi: 240_000},
		Total:       10,
		Done:        7,
		CostUSD:     1.75,
		Concurrency: 4,
		BudgetUSD:   new(5.0),
		Running:     []control.Cell{},
	}}
	address := serve(t, steer(t, running))
	change := running.change(t, func(now *control.Status) { now.CostUSD++ })
	b.run(t, "drafts", map[string]any{"url": address, "change": change})
	running.mu.Lock()
	defer running.mu.Unlock()
	want := []control.Command{{Action: control.Concurrency, N: 12}}
	if diff := cmp.Diff(want, running.commands); diff != "" {
		t.Errorf("the page sent (-want +got)\n%s", diff)
	}
}
