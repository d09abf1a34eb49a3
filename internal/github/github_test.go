package github

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func TestRepositoriesGoByManyNames(t *testing.T) {
	for text, want := range map[string]string{
		"own/rep": "own/rep", "own/rep.git": "own/rep", "https://github.com/own/rep": "own/rep",
		"https://github.com/own/rep.git": "own/rep",
		"git@github.com:own/rep.git":     "own/rep", "ssh://git@github.com/own/rep": "own/rep",
		"https://git.example.com/x/own/rep.js.git": "own/rep.js",
	} {
		t.Run(text, func(t *testing.T) {
			if got, err := ParseRepository(text); err != nil || got.Owner+"/"+got.Name != want {
				t.Errorf("%s: %v, %v; want %s", text, got, err, want)
			}
		})
	}
	for _, text := range []string{"", "own", "own/../rep", "own/..", "a b/c", "https://github.com/"} {
		if got, err := ParseRepository(text); err == nil {
			t.Errorf("%q was taken for %v", text, got)
		}
	}
}

// standIn is a small GitHub. It hands out the answers in turn; the last one stays.
func standIn(t *testing.T, answers ...http.HandlerFunc) (*Client, *[]time.Duration) {
	t.Helper()
	var calls atomic.Int64 // a request that was given up may still be served beside the next one
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answers[min(int(calls.Add(1)), len(answers))-1](w, r)
	}))
	t.Cleanup(server.Close)
	var slept []time.Duration
	return &Client{
		Base: server.URL, Token: "tok", Repository: Repository{"own", "rep"}, HTTP: server.Client(),
		Sleep:  func(_ context.Context, d time.Duration) error { slept = append(slept, d); return nil },
		Random: func() float64 { return 1 },
		Now:    func() time.Time { return time.Unix(1000, 0) },
	}, &slept
}

func reply(status int, body string, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

const oneRun = `{"workflow_runs":[{"id":7,"name":"agent","status":"completed","conclusion":"success","created_at":"2030-01-01T00:00:00Z","head_branch":"main","html_url":"u"}]}`

func TestListsAreReadPageByPage(t *testing.T) {
	var asked []string
	c, _ := standIn(t, func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.RequestURI())
		if r.Header.Get("Authorization") != "Bearer tok" || r.Header.Get("X-GitHub-Api-Version") == "" {
			t.Errorf("headers %v", r.Header)
		}
		page := r.URL.Query().Get("page")
		if page == "" {
			w.Header().Set("Link", fmt.Sprintf(`<http://%s%s&page=2>; rel="next", <http://%s/last>; rel="last"`, r.Host,
				r.URL.RequestURI(), r.Host))
		}
		_, _ = fmt.Fprintf(w, `{"artifacts":[{"id":%d,"name":"trace--a"}]}`, len(asked))
	})
	artifacts, err := c.Artifacts(context.Background(), 5)
	if err != nil || len(artifacts) != 2 || artifacts[1].ID != 2 {
		t.Errorf("artifacts %+v, %v", artifacts, err)
	}
	if asked[0] != "/repos/own/rep/actions/runs/5/artifacts?per_page=100" {
		t.Errorf("asked %v", asked)
	}
}

func TestTheTokenDoesNotFollowALinkToAnotherHost(t *testing.T) {
	c, _ := standIn(t, reply(200, oneRun, "Link", `<https://evil.example/x>; rel="next"`))
	runs, err := c.Runs(context.Background(), time.Time{})
	if err != nil || len(runs) != 1 {
		t.Errorf("runs %+v, %v", runs, err)
	}
}

func TestWhatMayPassIsTriedAgain(t *testing.T) {
	for _, test := range []struct {
		name    string
		answers []http.HandlerFunc
		slept   []time.Duration
		want    string // part of the error; empty means success
	}{
		{
			"a broken gateway",
			[]http.HandlerFunc{reply(502, ""), reply(503, ""), reply(200, oneRun)},
			[]time.Duration{time.Second, 2 * time.Second},
			"",
		},
		{
			"too many requests",
			[]http.HandlerFunc{reply(429, "", "Retry-After", "7"), reply(200, oneRun)},
			[]time.Duration{7200 * time.Millisecond},
			"",
		},
		{
			"the hourly limit, nearly over",
			[]http.HandlerFunc{reply(403, `{"message":"rate limit"}`, "X-RateLimit-Remaining", "0", "X-RateLimit-Reset",
				"1030"), reply(200, oneRun)},
			[]time.Duration{30200 * time.Millisecond},
			"",
		},
		{
			"the hourly limit, far from over",
			[]http.HandlerFunc{reply(403, "", "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "4600")},
			nil,
			"used up for another 1h0m0s",
		},
		{
			"no access",
			[]http.HandlerFunc{reply(403, `{"message":"Resource not accessible"}`)},
			nil,
			"Resource not accessible (does the token have access",
		},
		{
			"not found",
			[]http.HandlerFunc{reply(404, `{"message":"Not Found"}`)},
			nil,
			"GitHub answered 404 to /repos/own/rep/actions/runs: Not Found",
		},
		{"a bad token", []http.HandlerFunc{reply(401, "")}, nil, "is the token still valid?"},
		{
			"always broken",
			[]http.HandlerFunc{reply(500, "")},
			[]time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second},
			"GitHub answered 500",
		},
		{"no JSON", []http.HandlerFunc{reply(200, "<html>")}, nil, "GitHub's answer to actions/runs"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c, slept := standIn(t, test.answers...)
			runs, err := c.Runs(context.Background(), time.Unix(0, 0))
			if test.want == "" && (err != nil || len(runs) != 1) {
				t.Errorf("runs %+v, %v", runs, err)
			}
			if test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("error %v, want %q", err, test.want)
			}
			if fmt.Sprint(*slept) != fmt.Sprint(test.slept) {
				t.Errorf("waited %v, want %v", *slept, test.slept)
			}
		})
	}
}

func TestASlowServerIsGivenUp(t *testing.T) {
	release := make(chan struct{})
	c, _ := standIn(t, func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	})
	defer close(release)
	c.Timeout = 20 * time.Millisecond
	if _, err := c.Runs(context.Background(), time.Time{}); err == nil ||
		!strings.Contains(err.Error(), "cannot be reached") {
		t.Errorf("error %v", err)
	}
}

func TestADownloadFollowsRedirectsWithoutTheToken(t *testing.T) {
	storage := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			t.Error("the token was sent to the storage")
		}
		_, _ = io.WriteString(w, "zip bytes")
	}))
	defer storage.Close()
	for name, elsewhere := range map[string]string{
		"another host":                 strings.Replace(storage.URL, "127.0.0.1", "localhost", 1),
		"another port of the same one": storage.URL,
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := standIn(t, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/repos/own/rep/actions/artifacts/3/zip" {
					t.Errorf("asked for %s", r.URL.Path)
				}
				http.Redirect(w, r, elsewhere+"/x", http.StatusFound)
			})
			var got bytes.Buffer
			if err := c.Download(context.Background(), Artifact{ID: 3, Name: "a"}, &got, 100); err != nil ||
				got.String() != "zip bytes" {
				t.Errorf("got %q, %v", got.String(), err)
			}
			if err := c.Download(context.Background(), Artifact{ID: 3, Name: "a"}, &got, 4); err == nil {
				t.Error("a download beyond its limit was accepted")
			}
		})
	}
}

// archive makes a zip file.
func archive(t *testing.T, add func(*zip.Writer)) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a.zip")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w := zip.NewWriter(file)
	add(w)
	if err := errors.Join(w.Close(), file.Close()); err != nil {
		t.Fatal(err)
	}
	return path
}

func addFile(t *testing.T, w *zip.Writer, name, content string, mode os.FileMode) {
	t.Helper()
	header := &zip.FileHeader{Name: name, Method: zip.Deflate}
	header.SetMode(mode)
	out, err := w.CreateHeader(header)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(out, content); err != nil {
		t.Fatal(err)
	}
}

func TestUnzipWritesInsideTheDirectory(t *testing.T) {
	dir := t.TempDir()
	outside := filepath.Join(t.TempDir(), "victim")
	if err := os.WriteFile(outside, []byte("safe"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(dir, "b.txt")); err != nil {
		t.Fatal(err)
	}
	path := archive(t, func(w *zip.Writer) {
		addFile(t, w, "a/x.ndjson", "one", 0o644)
		addFile(t, w, "b.txt", "two", 0o755)
	})
	names, err := Unzip(path, dir, DefaultLimits)
	if err != nil || fmt.Sprint(names) != "[a/x.ndjson b.txt]" {
		t.Fatalf("names %v, %v", names, err)
	}
	if got, _ := os.ReadFile(filepath.Join(dir, "a", "x.ndjson")); string(got) != "one" {
		t.Errorf("content %q", got)
	}
	if got, _ := os.ReadFile(outside); string(got) != "safe" {
		t.Errorf("a link that lay in the directory was written through: %q", got)
	}
}

func TestUnsafeArchivesAreRefusedAsAWhole(t *testing.T) {
	for name, member := range map[string]func(*zip.Writer){
		"traversal":        func(w *zip.Writer) { addFile(t, w, "../evil", "x", 0o644) },
		"deep traversal":   func(w *zip.Writer) { addFile(t, w, "a/../../evil", "x", 0o644) },
		"an absolute name": func(w *zip.Writer) { addFile(t, w, "/etc/evil", "x", 0o644) },
		"a backslash":      func(w *zip.Writer) { addFile(t, w, `..\evil`, "x", 0o644) },
		"a link":           func(w *zip.Writer) { addFile(t, w, "link", "/etc/passwd", 0o777|os.ModeSymlink) },
		"a device":         func(w *zip.Writer) { addFile(t, w, "dev", "", 0o644|os.ModeDevice) },
		"too large":        func(w *zip.Writer) { addFile(t, w, "big", strings.Repeat("x", 2000), 0o644) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "out")
			path := archive(t, func(w *zip.Writer) {
				addFile(t, w, "good.txt", "fine", 0o644)
				member(w)
			})
			if _, err := Unzip(path, dir, Limits{Files: 5, Bytes: 1000}); !errors.Is(err, errUnsafe) {
				t.Errorf("%s: %v", name, err)
			}
			if _, err := os.Stat(filepath.Join(dir, "good.txt")); err == nil {
				t.Errorf("%s: part of the archive was unpacked", name)
			}
		})
	}
	many := archive(t, func(w *zip.Writer) {
		for i := range 6 {
			addFile(t, w, fmt.Sprint(i), "", 0o644)
		}
	})
	if _, err := Members(many, Limits{Files: 5, Bytes: 1000}); !errors.Is(err, errUnsafe) {
		t.Errorf("too many files: %v", err)
	}
}

func FuzzUnzip(f *testing.F) {
	var seed bytes.Buffer
	w := zip.NewWriter(&seed)
	out, _ := w.Create("a/b.txt")
	_, _ = io.WriteString(out, "hello")
	_ = w.Close()
	f.Add(seed.Bytes())
	f.Fuzz(func(t *testing.T, content []byte) {
		root := t.TempDir()
		path := filepath.Join(root, "a.zip")
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		_, _ = Unzip(path, filepath.Join(root, "out"), Limits{Files: 10, Bytes: 1 << 16})
		entries, err := os.ReadDir(root)
		if err != nil || len(entries) > 2 {
			t.Errorf("the archive left its directory: %v, %v", entries, err)
		}
	})
}
