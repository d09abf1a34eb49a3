package view

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"sync"
	"testing"

	"github.com/fit-eval/fit/internal/testenv"
)

// browser is one Chromium for all tests, driven by a Node.js process over its standard streams.
type browser struct {
	in      io.Writer
	mu      sync.Mutex
	next    int
	waiting map[int]chan reply
}

type reply struct {
	ID    int             `json:"id"`
	Value json.RawMessage `json:"value"`
	Error string          `json:"error"`
}

// driver is stopped at the end of all tests: when its input ends, it closes the browser.
var driver struct {
	once sync.Once
	*browser
	stop func()
	err  error
}

// chromium returns the browser, and starts it for the first test that needs it.
func chromium(t *testing.T) *browser {
	t.Helper()
	// The shell draws the same pages without the rest of the browser, in half the time.
	program, err := exec.LookPath("chromium-headless-shell")
	if err != nil {
		program = testenv.NeedTool(t, "chromium")
	}
	node := testenv.NeedTool(t, "node")
	if _, err := os.Stat("node_modules/playwright-core"); err != nil {
		testenv.Missing(t, "playwright-core is not installed; scripts/setup does it")
	}
	driver.once.Do(func() { driver.browser, driver.stop, driver.err = launch(node, program) })
	if driver.err != nil {
		t.Fatal(driver.err)
	}
	return driver.browser
}

func launch(node, program string) (*browser, func(), error) {
	cmd := exec.Command(node, "driver.mjs", program)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, nil, err
	}
	b := &browser{in: in, waiting: map[int]chan reply{}}
	done := make(chan struct{})
	go func() {
		defer close(done)
		b.receive(out)
	}()
	stop := func() {
		_ = in.Close()
		<-done
		_ = cmd.Wait()
	}
	return b, stop, nil
}

// receive hands every answer to the test that waits for it.
func (b *browser) receive(out io.Reader) {
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var a reply
		if json.Unmarshal(lines.Bytes(), &a) != nil {
			continue
		}
		b.mu.Lock()
		waiting := b.waiting[a.ID]
		delete(b.waiting, a.ID)
		b.mu.Unlock()
		if waiting != nil {
			waiting <- a
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for id, waiting := range b.waiting {
		delete(b.waiting, id)
		waiting <- reply{Error: "the browser's driver has ended"}
	}
}

// run plays a scenario in a window of its own and returns what it measured.
func (b *browser) run(t *testing.T, name string, args map[string]any) json.RawMessage {
	t.Helper()
	if args == nil {
		args = map[string]any{}
	}
	got := make(chan reply, 1)
	b.mu.Lock()
	b.next++
	id := b.next
	b.waiting[id] = got
	line, err := json.Marshal(map[string]any{"id": id, "name": name, "args": args})
	if err == nil {
		_, err = b.in.Write(append(line, '\n'))
	}
	b.mu.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	a := <-got
	if a.Error != "" {
		t.Fatalf("scenario %s: %s", name, a.Error)
	}
	return a.Value
}
