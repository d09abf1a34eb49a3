package democli

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/http/cookiejar"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/cli/console"
)

// With --view the pages of a demo are there when it is over, until the user ends it, and the
// browser was asked to show them.
func TestADemoIsShown(t *testing.T) {
	dir := t.TempDir()
	opened := filepath.Join(dir, "opened")
	browser := "#!/bin/sh\necho \"$1\" >" + opened + "\n"
	if err := os.WriteFile(filepath.Join(dir, "xdg-open"), []byte(browser), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	t.Setenv("TMPDIR", t.TempDir())
	printed, stdout := io.Pipe()
	command := New(&console.Console{Stdout: stdout, Stderr: io.Discard, Environ: os.Environ()})
	command.SetArgs([]string{"--view", "--runs", "1"})
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- command.ExecuteContext(ctx)
		_ = stdout.Close()
	}()
	address := ""
	for lines := bufio.NewScanner(printed); lines.Scan() && !strings.HasPrefix(lines.Text(), "again "); {
		if strings.HasPrefix(lines.Text(), "http://") {
			address = lines.Text()
		}
	}
	go func() { _, _ = io.Copy(io.Discard, printed) }()
	if status := visit(t, address); status != http.StatusOK {
		t.Errorf("%s answers %d", address, status)
	}
	end()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if shown, err := os.ReadFile(opened); err != nil || strings.TrimSpace(string(shown)) != address {
		t.Errorf("the browser was to show %q, not %q (%v)", shown, address, err)
	}
}

// visit opens an address as a browser does, which keeps the cookie that it gets for its token.
func visit(t *testing.T, address string) int {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := (&http.Client{Jar: jar}).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	return answer.StatusCode
}
