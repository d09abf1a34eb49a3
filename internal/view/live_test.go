package view

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fit-eval/fit/internal/experiment/control"
)

// pausable is a running experiment that can be paused and nothing else.
type pausable struct {
	paused atomic.Bool
	busy   chan struct{} // if set, nothing is answered until it is closed
}

func (p *pausable) Status(context.Context) (control.Status, error) {
	if p.busy != nil {
		<-p.busy
	}
	status := control.Status{State: control.Running, Total: 48, Running: []control.Cell{}}
	if p.paused.Load() {
		status.State = control.Paused
	}
	return status, nil
}

func (p *pausable) Control(_ context.Context, c control.Command) (string, error) {
	if c.Action != control.Pause {
		return "", errors.New("only pause")
	}
	p.paused.Store(true)
	return "paused", nil
}

// fixed is a running experiment whose status does not change.
type fixed control.Status

func (f fixed) Status(context.Context) (control.Status, error) { return control.Status(f), nil }

func (fixed) Control(context.Context, control.Command) (string, error) { return "", nil }

// TestLive: a page sees that an experiment runs, steers it, and hears when it ends.
func TestLive(t *testing.T) {
	dir := runDirectory(t, filepath.Join(t.TempDir(), "run"))
	running := &pausable{}
	server, err := control.Serve(dir, running)
	if err != nil {
		t.Fatal(err)
	}
	p := open(t, dir)
	entry := p.list()[0]
	if entry.State != runRunning {
		t.Fatalf("the state is %s", entry.State)
	}
	stream, err := p.client.Get(p.base + "/api/events?experiment=" + entry.ID)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Body.Close()
	lines := bufio.NewReader(stream.Body)
	await := func(event, part string) {
		t.Helper()
		for {
			line, err := lines.ReadString('\n')
			if err != nil {
				t.Fatalf("waiting for %s: %v", event, err)
			}
			if line != "event: "+event+"\n" {
				continue
			}
			if data, err := lines.ReadString('\n'); err != nil || strings.Contains(data, part) {
				return
			}
		}
	}
	await("experiment", entry.ID)
	await("status", `"state":"running"`)
	post := func(body string) (int, string) {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost,
			p.base+"/api/experiments/"+entry.ID+"/ctl", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Origin", p.base)
		request.Header.Set("Content-Type", "application/json")
		response, err := p.client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		content, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return response.StatusCode, string(content)
	}
	if status, content := post(`{"action":"pause"}`); status != http.StatusOK || !strings.Contains(content, "paused") {
		t.Errorf("pause: %d %s", status, content)
	}
	await("status", `"state":"paused"`)
	status, content := post(`{"action":"resume"}`)
	if status != http.StatusConflict || !strings.Contains(content, "only pause") {
		t.Errorf("resume: %d %s", status, content)
	}
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
	await("status", `"state":"ended"`)
}

// TestABusyExperimentHasNotEnded: a process that does not answer in time is taken for what it said
// last, and not for one that has ended.
func TestABusyExperimentHasNotEnded(t *testing.T) {
	dir := runDirectory(t, filepath.Join(t.TempDir(), "run"))
	first, err := control.Serve(dir, &pausable{})
	if err != nil {
		t.Fatal(err)
	}
	p := open(t, dir)
	at, err := p.server.directory(p.list()[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	forget := func() {
		p.server.pulses.mu.Lock()
		defer p.server.pulses.mu.Unlock()
		last := p.server.pulses.known[at.id]
		p.server.pulses.known[at.id] = polledStatus{status: last.status}
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	busy := make(chan struct{})
	second, err := control.Serve(dir, &pausable{busy: busy})
	if err != nil {
		t.Fatal(err)
	}
	soon, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	forget()
	if status := p.server.pollStatus(soon, at); status == nil || status.State != control.Running {
		t.Errorf("a process that is busy is %+v", status)
	}
	close(busy)
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}
	forget()
	if status := p.server.pollStatus(t.Context(), at); status != nil {
		t.Errorf("a process that has ended is %+v", status)
	}
}
