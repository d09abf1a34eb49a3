package view

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fit-eval/fit/internal/model/scripted"
)

// The page of a running experiment steers it, and changes while it runs. The model answers only
// once the page has been steered, so that the experiment cannot end before.
func TestRunningExperiment(t *testing.T) {
	t.Parallel()
	b, dir := chromium(t), filepath.Join(t.TempDir(), "live")
	script, err := scripted.Parse([]byte(`{"usage": {"input": 1000, "output": 100}, "turns": [{"text": "Done."}]}`))
	if err != nil {
		t.Fatal(err)
	}
	model := scripted.NewServer(map[string]*scripted.Script{"": script}, scripted.Options{})
	answering, answer := context.WithCancel(t.Context())
	gated := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/answer" {
			answer()
			return
		}
		select {
		case <-answering.Done():
			model.ServeHTTP(w, r)
		case <-r.Context().Done():
		}
	}))
	defer gated.Close()
	defer answer()
	cmd := fitCommand(t, "benchmark", "run", "--family", demoFamily(t), "--runs", "1", "--no-probe",
		"--arm", "a=agent:builtin,model:claude-sonnet-4-5", "--model-url", gated.URL, "--output", dir)
	startExperiment(t, cmd, dir)
	args := map[string]any{
		"url":    serve(t, dir),
		"answer": gated.URL + "/answer",
		"allow":  []string{"409"}, // one arm has nothing to be compared with
	}
	said := decode[[]string](t, b.run(t, "control", args))
	if !strings.HasPrefix(said[0], "cancel ") || !strings.Contains(said[1], "taken off the queue") {
		t.Errorf("the button reads %q, and the server answers %q", said[0], said[1])
	}
	b.run(t, "liveExperiment", args)
}

// startExperiment starts a fit-benchmark run, which ends with the test, and waits until it can be
// steered.
func startExperiment(t *testing.T, cmd *exec.Cmd, dir string) {
	t.Helper()
	cmd.Env = append(os.Environ(), "ANTHROPIC_API_KEY=none")
	cmd.Stdout, cmd.Stderr = io.Discard, io.Discard
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	})
	waitFor(t, func() bool {
		_, err := os.Lstat(filepath.Join(dir, "control.sock"))
		return err == nil
	})
}

// An experiment that its budget stopped says on its page what to do: the command there has a budget
// with which it runs the rest.
func TestTheCommandOfAStoppedExperimentContinuesIt(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "stopped")
	script, err := scripted.Parse([]byte(`{"usage": {"input": 1000, "output": 100}, "turns": [{"text": "Done."}]}`))
	if err != nil {
		t.Fatal(err)
	}
	model := httptest.NewServer(scripted.NewServer(map[string]*scripted.Script{"": script}, scripted.Options{}))
	defer model.Close()
	cmd := fitCommand(t, "benchmark", "run", "--family", demoFamily(t), "--runs", "1", "--no-probe",
		"--concurrency", "1", "--arm", "a=agent:builtin,model:claude-sonnet-4-5", "--model-url", model.URL, "--output", dir,
		"--max-cost-usd", "0.02")
	cmd.Env, cmd.Stdout, cmd.Stderr = append(os.Environ(), "ANTHROPIC_API_KEY=none"), io.Discard, io.Discard
	if err := cmd.Run(); cmd.ProcessState.ExitCode() != 4 {
		t.Fatalf("a budget of 2 cents ends with %v, want code 4", err)
	}
	address := serve(t, dir)
	g := &guide{asked: askView(t, address)}
	place := spot{"stopped", "#/x/" + g.id(t, "stopped"), ".claim"}
	page := glance(t, map[string]any{"url": address}, place)["stopped"]
	page.says(t, "rerun the command with a larger budget to continue")
	_, command, _ := strings.Cut(page.Text, "What to do: fit-benchmark ")
	command, _, ok := strings.Cut(command, " --output "+dir+" ")
	if !ok || !strings.HasSuffix(command, " --max-cost-usd 0.06") {
		t.Fatalf("the page says %q", page.Text)
	}
	words := append([]string{"benchmark"}, strings.Fields(command)...)
	cmd = fitCommand(t, append(words, "--output", dir)...)
	cmd.Env, cmd.Stdout = append(os.Environ(), "ANTHROPIC_API_KEY=none"), io.Discard
	if err := cmd.Run(); err != nil {
		t.Errorf("%s: %v", command, err)
	}
	page = glance(t, map[string]any{"url": address}, place)["stopped"]
	page.says(t, "0 of 12 runs")
	if strings.Contains(page.Text, "What to do") {
		t.Errorf("a complete experiment says %q", page.Text)
	}
}

// A cell whose model does not answer runs until it is cancelled; its page puts it back.
func TestRunningCellIsCancelledAndRequeued(t *testing.T) {
	t.Parallel()
	b, dir := chromium(t), filepath.Join(t.TempDir(), "stuck")
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}))
	defer silent.Close()
	cmd := fitCommand(t, "benchmark", "run", "--family", demoFamily(t), "--runs", "1", "--no-probe",
		"--concurrency", "1",
		"--arm", "a=agent:builtin,model:claude-sonnet-4-5", "--model-url", silent.URL, "--output", dir)
	startExperiment(t, cmd, dir)
	name := decode[string](t, b.run(t, "cancelRunning", map[string]any{
		"url": serve(t, dir),
	}))
	var answer struct {
		Status struct {
			Cancelled, Queued int
			Running           []struct{ Task string }
		}
	}
	answerOf(t, &answer, "benchmark", "ctl", dir, "--format", "json")
	if answer.Status.Cancelled != 0 || answer.Status.Queued != 11 ||
		strings.HasPrefix(name, answer.Status.Running[0].Task+",") {
		t.Errorf("%s was cancelled and requeued, and ctl says %+v", name, answer.Status)
	}
}

// A trace that is being written grows on the page without moving what is read.
func TestGrowingTrace(t *testing.T) {
	t.Parallel()
	b := chromium(t)
	c := begin()
	for i := range 30 {
		c.text(fmt.Sprintf("early %d", i))
	}
	path := c.save(t)
	url := serve(t, path)
	stop := make(chan struct{})
	done := make(chan error, 1)
	go func() { done <- appendUntil(path, stop) }()
	b.run(t, "grows", map[string]any{"url": url, "text": "late "})
	close(stop)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// appendUntil writes an entry ten times a second until it is told to stop.
func appendUntil(path string, stop chan struct{}) error {
	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for i := 0; ; i++ {
		var c conversation
		c.text(fmt.Sprintf("late %d", i))
		if _, err := io.WriteString(file, c.String()); err != nil {
			return err
		}
		select {
		case <-stop:
			return nil
		case <-tick.C:
		}
	}
}

// waitFor waits for a condition of the file system.
func waitFor(t *testing.T, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Minute); time.Now().Before(end); {
		if holds() {
			return
		}
		select {
		case <-t.Context().Done():
			t.Fatal("the test ended")
		case <-time.After(20 * time.Millisecond):
		}
	}
	t.Fatal("the condition did not come to hold within ten minutes")
}
