package view

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/fit-eval/fit/internal/report/versus"
	"github.com/fit-eval/fit/internal/report/versus/versustest"
)

// TestFilesThatAreNone: a pipe, a link or a directory where a file should be is named, nothing
// waits for it, and nothing behind it is read.
func TestFilesThatAreNone(t *testing.T) {
	top := t.TempDir()
	elsewhere := runDirectory(t, filepath.Join(top, "elsewhere"))
	replace := func(dir, file string, make func(path string) error) {
		t.Helper()
		path := filepath.Join(runDirectory(t, filepath.Join(top, "shown", dir)), filepath.FromSlash(file))
		if err := errors.Join(os.RemoveAll(path), make(path)); err != nil {
			t.Fatal(err)
		}
	}
	pipe := func(path string) error { return syscall.Mkfifo(path, 0o600) }
	replace("piped", "results.jsonl", pipe)
	replace("planned", "plan.json", pipe)
	replace("directory", "results.jsonl", func(path string) error { return os.Mkdir(path, 0o700) })
	replace("linked", "results.jsonl", func(path string) error {
		return os.Symlink(filepath.Join(elsewhere, "results.jsonl"), path)
	})
	replace("diff", "runs/fix-add-00/after/0/1/diff.patch", pipe)
	p := open(t, filepath.Join(top, "shown"))
	for _, entry := range p.list() {
		base := "/api/experiments/" + entry.ID
		if entry.Name == "diff" {
			var answer cellAnswer
			p.read(base+"/cells/fix-add-00/after/0", &answer)
			said := strings.Join(answer.Problems, " ")
			if answer.Diff != nil || !strings.Contains(said, "diff.patch is not a regular file") {
				t.Errorf("a diff that is a pipe: %v %v", answer.Diff, answer.Problems)
			}
			continue
		}
		if entry.State != runDamaged || len(entry.Arms) > 0 ||
			!strings.Contains(entry.Problem, "is not a regular file") {
			t.Errorf("%s is %s: %s", entry.Name, entry.State, entry.Problem)
		}
		status, content := p.get(base + "/versus")
		if status != http.StatusUnprocessableEntity || !bytes.Contains(content, []byte("is not a regular file")) {
			t.Errorf("%s/versus: %d %.200s", entry.Name, status, content)
		}
	}
}

// TestARunDirectoryIsDeleted: every answer about it says so, and the live page is told to look.
func TestARunDirectoryIsDeleted(t *testing.T) {
	dir := runDirectory(t, filepath.Join(t.TempDir(), "run"))
	p := open(t, filepath.Dir(dir))
	base := "/api/experiments/" + p.list()[0].ID
	stream, err := p.client.Get(p.base + "/api/events?experiment=" + p.list()[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Body.Close()
	lines := bufio.NewReader(stream.Body)
	if _, err := lines.ReadString('\n'); err != nil { // it has looked at the directory
		t.Fatal(err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	for line := ""; line != "event: report\n"; {
		if line, err = lines.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	for _, address := range []string{
		"", "/cells", "/forest", "/plan?effect=0.1&runs=3", "/versus", "/labels?dimension=correctness",
		"/cells/fix-add-00/after/0",
	} {
		status, content := p.get(base + address)
		if status != http.StatusGone || !bytes.Contains(content, []byte("no longer exists")) {
			t.Errorf("%s: %d %s", address, status, content)
		}
	}
}

// TestAllInterfaces: a server on all interfaces answers to the address that it was reached at, and
// to no name that leads there.
func TestAllInterfaces(t *testing.T) {
	server, err := New(Config{Paths: []Path{{Shown: "run", Real: t.TempDir()}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	everywhere := &net.TCPAddr{IP: net.IPv4zero, Port: 4000}
	if url := server.URL(everywhere); !strings.HasPrefix(url, "http://127.0.0.1:4000/?token=") {
		t.Errorf("the address to open is %s", url)
	}
	handler := server.Handler(everywhere)
	at := &net.TCPAddr{IP: net.IPv4(192, 0, 2, 7), Port: 4000}
	for host, want := range map[string]int{
		"192.0.2.7:4000": http.StatusSeeOther, "localhost:4000": http.StatusSeeOther,
		"192.0.2.8:4000": http.StatusForbidden, "rebound.example:4000": http.StatusForbidden,
	} {
		t.Run(host, func(t *testing.T) {
			request, err := http.NewRequestWithContext(context.WithValue(t.Context(), http.LocalAddrContextKey, at),
				http.MethodGet, "/?token="+server.token, http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			request.Host = host
			out := &recorder{header: http.Header{}, status: http.StatusOK}
			handler.ServeHTTP(out, request)
			if out.status != want {
				t.Errorf("%s: %d, want %d", host, out.status, want)
			}
		})
	}
}

// TestProblemsOfTraces: what cannot be read is named as the user named it, once, and lines that
// were left out are counted.
func TestProblemsOfTraces(t *testing.T) {
	top := t.TempDir()
	write(t, filepath.Join(top, "broken.ndjson.gz"), "\x1f\x8bgarbage")
	write(t, filepath.Join(top, "broken.ndjson.zst"), "(\xb5/\xfdgarbage")
	write(t, filepath.Join(top, "skips.ndjson"), `{"type":"system","subtype":"init"}`+"\nnonsense\n[1]\n")
	p := open(t, top)
	var list experimentsAnswer
	p.read("/api/experiments", &list)
	for _, one := range list.Traces {
		for _, endpoint := range []string{"overview?", "page?page=0&", "lanes?buckets=10&", "messages?", "prompts?"} {
			status, content := p.get("/api/trace/" + endpoint + "trace=" + one.ID)
			text := string(content)
			if one.Name == "skips.ndjson" {
				if endpoint == "overview?" && !strings.Contains(text, `"skippedLines":2`) {
					t.Errorf("%s: %s", one.Name, text)
				}
				continue
			}
			if status != http.StatusUnprocessableEntity || strings.Contains(text, top) ||
				strings.Count(text, one.Name) != 1 {
				t.Errorf("%s of %s: %d %s", endpoint, one.Name, status, text)
			}
		}
	}
}

// TestAPageThatGoesAwayWhileATraceIsUnpacked does not take it from the others.
func TestAPageThatGoesAwayWhileATraceIsUnpacked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "trace.ndjson.zst")
	var packed bytes.Buffer
	writer, err := zstd.NewWriter(&packed)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(writer, "{}\n"); err != nil {
		t.Fatal(err)
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	write(t, path, packed.String())
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	var files unpacked
	t.Cleanup(func() { _ = files.close() })
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := files.open(gone, path, info); !errors.Is(err, context.Canceled) {
		t.Errorf("whoever has gone away gets %v", err)
	}
	if _, err := files.open(t.Context(), path, info); err != nil {
		t.Errorf("the next one gets %v", err)
	}
}

// TestLabelsAreInNoOrder: where a run stands in the directory does not say when it is shown.
func TestLabelsAreInNoOrder(t *testing.T) {
	dir := runDirectory(t, filepath.Join(t.TempDir(), "run"))
	if err := versustest.Judge(t.Context(), dir, versus.Options{}, 1); err != nil {
		t.Fatal(err)
	}
	p := open(t, dir)
	address := "/api/experiments/" + p.list()[0].ID + "/labels?dimension=correctness&skip="
	var skipped []string
	for range 6 {
		var answer labelsAnswer
		p.read(address+strings.Join(skipped, ","), &answer)
		skipped = append(skipped, answer.Item.Item)
	}
	if !slices.IsSorted(skipped) {
		t.Errorf("the order is not that of the names: %v", skipped)
	}
	other := open(t, dir) // another start, another order
	var answer labelsAnswer
	other.read(address, &answer)
	if answer.Item.Item == skipped[0] {
		t.Errorf("the name of a run is the same after every start: %s", skipped[0])
	}
}

// TestManyAskForOneHeadToHead: its report is made once, and everybody gets it.
func TestManyAskForOneHeadToHead(t *testing.T) {
	dir := runDirectory(t, filepath.Join(t.TempDir(), "run"))
	p := open(t, dir)
	address := "/api/experiments/" + p.list()[0].ID + "/versus"
	answers := make([][]byte, 8)
	var asking sync.WaitGroup
	for i := range answers {
		asking.Go(func() { _, answers[i] = p.get(address) })
	}
	asking.Wait()
	for _, answer := range answers {
		if !bytes.Equal(answer, answers[0]) || !bytes.Contains(answer, []byte(`"statement"`)) {
			t.Fatalf("%.200s", answer)
		}
	}
}

// TestAGrowingTrace: however often a large trace grows, one pass over it is kept and at most the
// one before.
func TestAGrowingTrace(t *testing.T) {
	top := t.TempDir()
	write(t, filepath.Join(top, "trace.ndjson"), `{"type":"system","subtype":"init"}`+"\n")
	p := open(t, top)
	var list experimentsAnswer
	p.read("/api/experiments", &list)
	_, file, err := p.server.openNamed(t.Context(), list.Traces[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	var last *scan
	for range 20 {
		file.bytes++
		job := p.server.startScan(file)
		if again := p.server.startScan(file); again != job {
			t.Fatal("a trace is read twice at the same size")
		}
		<-job.done
		if job.err != nil || job.overview == nil || job.before != last || last != nil && last.before != nil {
			t.Fatalf("%+v after %+v", job, last)
		}
		last = job
	}
	if len(p.server.indexing.jobs) != 1 {
		t.Errorf("%d passes are kept", len(p.server.indexing.jobs))
	}
}

// TestASlowReader: a client that does not read its answer is left after a while.
func TestASlowReader(t *testing.T) {
	server, err := New(Config{Paths: []Path{{Shown: "run", Real: t.TempDir()}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	answering := server.httpServer(listener.Addr())
	if answering.WriteTimeout <= 0 || answering.WriteTimeout > 10*time.Minute {
		t.Errorf("an answer may take %v", answering.WriteTimeout)
	}
	answering.WriteTimeout = 100 * time.Millisecond
	closed := make(chan struct{}, 1)
	answering.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateClosed {
			closed <- struct{}{}
		}
	}
	var serving sync.WaitGroup
	serving.Go(func() { _ = answering.Serve(listener) })
	t.Cleanup(serving.Wait)
	t.Cleanup(func() { _ = answering.Close() })
	conn, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	question := fmt.Sprintf("GET /app.js HTTP/1.1\r\nHost: %s\r\nCookie: fit-view-%s=%s\r\n\r\n", listener.Addr(), port,
		server.session)
	// Many questions, and no answer is read: the buffers of the connection are full before the
	// last.
	serving.Go(func() {
		for range 10_000 {
			if _, err := io.WriteString(conn, question); err != nil {
				return
			}
		}
	})
	<-closed
}
