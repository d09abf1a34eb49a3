package view

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fit-eval/fit/internal/agent/builtin"
	"github.com/fit-eval/fit/internal/query"
	"github.com/fit-eval/fit/internal/report"
	"github.com/fit-eval/fit/internal/report/results"
	"github.com/fit-eval/fit/internal/report/versus/versustest"
	"github.com/fit-eval/fit/ledger"
	"github.com/fit-eval/fit/price"
	"github.com/fit-eval/fit/session"
	"github.com/fit-eval/fit/stats"
)

// runDirectory makes a run directory of two arms on twelve tasks.
func runDirectory(t *testing.T, dir string) string {
	t.Helper()
	directory := versustest.Directory{
		Arms: []versustest.Arm{
			{Name: "before", Agent: "claude-code", Model: "claude-sonnet-4-5", Does: "gives-up"},
			{Name: "after", Agent: "claude-code", Model: "claude-sonnet-4-5", Does: versustest.Solves},
		},
		Tasks:     12,
		Runs:      2,
		Workspace: "export",
	}
	if err := directory.Write(dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

// page is a browser that has the cookie of a server.
type page struct {
	t      *testing.T
	base   string
	client *http.Client
	server *Server
}

func open(t *testing.T, paths ...string) *page { return openAs(t, nil, paths...) }

// openAs opens paths for a user who has a key.
func openAs(t *testing.T, key *ledger.SigningKey, paths ...string) *page {
	t.Helper()
	given := []Path{}
	for _, path := range paths {
		given = append(given, Path{Shown: filepath.Base(path), Real: path})
	}
	server, err := New(Config{
		Paths:    given,
		Dialects: builtin.New().Dialects(),
		Prices:   session.ListPrices(price.Table{}),
		Key:      key,
	})
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	ctx := t.Context()
	serving.Go(func() {
		if err := server.Serve(ctx, listener); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(serving.Wait)
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	p := &page{t: t, base: "http://" + listener.Addr().String(), client: &http.Client{Jar: jar}, server: server}
	if status, _ := p.get(strings.TrimPrefix(server.URL(listener.Addr()), p.base)); status != http.StatusOK {
		t.Fatalf("the opened address: %d", status)
	}
	return p
}

func (p *page) get(address string) (int, []byte) {
	p.t.Helper()
	response, err := p.client.Get(p.base + address)
	if err != nil {
		p.t.Fatal(err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	return response.StatusCode, content
}

// read gets an answer and decodes it.
func (p *page) read(address string, into any) {
	p.t.Helper()
	status, content := p.get(address)
	if status != http.StatusOK {
		p.t.Fatalf("%s: %d %s", address, status, content)
	}
	if err := json.Unmarshal(content, into); err != nil {
		p.t.Fatalf("%s: %v", address, err)
	}
}

func (p *page) list() []listEntry {
	p.t.Helper()
	var answer experimentsAnswer
	p.read("/api/experiments", &answer)
	return answer.Experiments
}

// same compares JSON by its value.
func same(t *testing.T, what string, got json.RawMessage, want any) {
	t.Helper()
	content, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var a, b any
	if err := json.Unmarshal(got, &a); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(content, &b); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(b, a); diff != "" {
		t.Errorf("%s differs from what the command prints (-want +got):\n%s", what, diff)
	}
}

// TestNumbersAreThoseOfTheCommands: what the endpoints say is what report, compare and fit-trace
// print with --format json.
func TestNumbersAreThoseOfTheCommands(t *testing.T) {
	dir := runDirectory(t, filepath.Join(t.TempDir(), "run"))
	p := open(t, dir)
	entry := p.list()[0]
	found, err := results.Load([]string{dir}, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	built, err := found.Build(t.Context(), results.Auditor{}, []int{1, 3, 5}, false)
	if err != nil {
		t.Fatal(err)
	}
	comparison, err := report.Compare(&built.Groups[0], &built.Groups[1],
		report.CompareConfig{Measure: report.MeasurePass, Alpha: stats.DefaultAlpha, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	var answer struct {
		Report     json.RawMessage `json:"report"`
		Comparison json.RawMessage `json:"comparison"`
	}
	p.read("/api/experiments/"+entry.ID, &answer)
	same(t, "report", answer.Report, built)
	same(t, "comparison", answer.Comparison, comparison)
	if entry.Claim != "improved" || entry.Sentence != comparison.Decision.Sentence || entry.Done != 48 ||
		entry.Passed != 24 || entry.State != runComplete {
		t.Errorf("the list says %+v", entry)
	}

	var one cellAnswer
	p.read("/api/experiments/"+entry.ID+"/cells/fix-add-03/after/1", &one)
	if one.Cell.State != statePass || one.Diff == nil || one.Diff.Files == 0 || len(one.Traces) == 0 ||
		one.Previous == nil || one.Next == nil {
		t.Fatalf("cell: %+v", one)
	}
	opened, err := query.Open(filepath.Join(dir, strings.TrimPrefix(one.Traces[0].Trace, entry.ID+"/")),
		query.Options{Dialects: builtin.New().Dialects(), Prices: session.ListPrices(price.Table{})})
	if err != nil {
		t.Fatal(err)
	}
	overview, _, err := opened.Overview(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var shown struct {
		Overview json.RawMessage `json:"overview"`
		Entries  int             `json:"entries"`
	}
	escaped := component(one.Traces[0].Trace)
	p.read("/api/trace/overview?trace="+escaped, &shown)
	same(t, "overview", shown.Overview, overview)
	var first pageAnswer
	p.read("/api/trace/page?trace="+escaped+"&page=0", &first)
	if len(first.Items) != shown.Entries || shown.Entries != overview.TurnCount {
		t.Errorf("%d entries on the page, %d in the overview, want %d", len(first.Items), shown.Entries,
			overview.TurnCount)
	}
}

// TestOnlyTheOpenedPageIsLetIn: wrong tokens, foreign hosts and origins, and pages of others get
// nothing.
func TestOnlyTheOpenedPageIsLetIn(t *testing.T) {
	p := open(t, runDirectory(t, filepath.Join(t.TempDir(), "run")))
	id := p.list()[0].ID
	post := "/api/experiments/" + id + "/ctl"
	own := map[string]string{"Origin": p.base, "Content-Type": "application/json"}
	type header = map[string]string
	for name, c := range map[string]struct {
		method, path string
		header       map[string]string
		stranger     bool
		want         int
	}{
		"no cookie":           {path: "/api/experiments", stranger: true, want: 401},
		"no cookie, page":     {path: "/", stranger: true, want: 401},
		"no cookie, script":   {path: "/app.js", stranger: true, want: 401},
		"wrong token":         {path: "/?token=guess", stranger: true, want: 401},
		"empty token":         {path: "/?token=", stranger: true, want: 401},
		"foreign host":        {path: "/api/experiments", header: header{"Host": "evil.example"}, want: 403},
		"host without a port": {path: "/api/experiments", header: header{"Host": "127.0.0.1"}, want: 403},
		"foreign origin":      {path: "/api/experiments", header: header{"Origin": "http://evil.example"}, want: 403},
		"origin null":         {path: "/api/experiments", header: header{"Origin": "null"}, want: 403},
		"wrong cookie": {
			path:     "/",
			stranger: true,
			header:   header{"Cookie": cookieName(p) + "=x"},
			want:     401,
		},
		"other site": {
			path:   "/api/experiments",
			header: header{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"},
			want:   403,
		},
		"own origin": {path: "/api/experiments", header: header{"Origin": p.base}, want: 200},
		"post without origin": {
			method: "POST",
			path:   post,
			header: header{"Content-Type": "application/json"},
			want:   403,
		},
		"post of a form": {
			method: "POST",
			path:   post,
			header: header{"Origin": p.base, "Content-Type": "text/plain"},
			want:   403,
		},
		"post, nobody runs":     {method: "POST", path: post, header: own, want: 409},
		"unknown endpoint":      {path: "/api/nothing", want: 404},
		"unknown experiment":    {path: "/api/experiments/0123456789", want: 404},
		"another method":        {method: "DELETE", path: "/api/experiments", header: own, want: 404},
		"a regular expression":  {path: "/api/trace/find?trace=" + id + "&q=(&regex=1", want: 400},
		"a page that is no one": {path: "/api/trace/page?trace=" + id + "&page=-1", want: 400},
	} {
		t.Run(name, func(t *testing.T) {
			request, err := http.NewRequestWithContext(t.Context(), c.method, p.base+c.path,
				strings.NewReader(`{"action":"pause"}`))
			if err != nil {
				t.Fatal(err)
			}
			for key, value := range c.header {
				request.Header.Set(key, value)
			}
			request.Host = c.header["Host"]
			client := p.client
			if c.stranger {
				client = &http.Client{}
			}
			response, err := client.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			content, _ := io.ReadAll(response.Body)
			if response.StatusCode != c.want {
				t.Errorf("%d %s, want %d", response.StatusCode, content, c.want)
			}
			policy := response.Header.Get("Content-Security-Policy")
			if !strings.Contains(policy, "script-src 'self';") || strings.Contains(policy, "unsafe") {
				t.Errorf("policy %q", policy)
			}
			if c.want >= 400 && bytes.Contains(content, []byte("fix-add")) {
				t.Errorf("it leaks: %s", content)
			}
		})
	}
}

func cookieName(p *page) string {
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(p.base, "http://"))
	return "fit-view-" + port
}

// TestNothingOutsideIsRead: dots, links out of the directory, files of agents and pipes are not
// served.
func TestNothingOutsideIsRead(t *testing.T) {
	top := t.TempDir()
	dir := runDirectory(t, filepath.Join(top, "shown", "run"))
	secret := filepath.Join(top, "secret.ndjson")
	write(t, secret, `{"type":"assistant","message":{"content":[{"type":"text","text":"TOPSECRET"}]}}`+"\n")
	attempt := filepath.Join(dir, "runs", "fix-add-00", "after", "0", "1")
	if err := os.Symlink(secret, filepath.Join(attempt, "link.ndjson")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(top, filepath.Join(dir, "runs", "out")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(secret, filepath.Join(top, "shown", "also.ndjson")); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(attempt, "cwd", "own.ndjson"), "{}\n")
	p := open(t, filepath.Join(top, "shown"))
	entry := p.list()[0]
	for _, name := range []string{
		"../secret.ndjson", "runs/../../secret.ndjson", "runs/fix-add-00/after/0/1/link.ndjson",
		"runs/fix-add-00/after/0/1/../../../../../../secret.ndjson", "runs/out/secret.ndjson",
		"runs/out/a/b/c/secret.ndjson",
		"runs/fix-add-00/after/0/1/cwd/own.ndjson", "results.jsonl", "/etc/passwd",
		"runs/fix-add-00/after/0/1/diff.patch",
		"runs/fix-add-00/after/0/1/\x00.ndjson", "",
	} {
		for _, endpoint := range []string{"page?page=0&trace=", "overview?trace=", "prompts?trace="} {
			status, content := p.get("/api/trace/" + endpoint + component(entry.ID+"/"+name))
			if status != http.StatusNotFound || bytes.Contains(content, []byte("TOPSECRET")) {
				t.Errorf("%s of %q: %d %s", endpoint, name, status, content)
			}
		}
	}
	var answer experimentsAnswer
	p.read("/api/experiments", &answer)
	if len(answer.Traces) != 0 {
		t.Errorf("a link is listed as a trace: %+v", answer.Traces)
	}
	status, _ := p.get("/api/experiments/" + entry.ID + "/cells/..%2F..%2Fetc/after/0")
	if status != http.StatusNotFound {
		t.Errorf("a cell with dots: %d", status)
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestDirectoriesInEveryState: damaged, empty and half written directories are shown as what they
// are.
func TestDirectoriesInEveryState(t *testing.T) {
	top := t.TempDir()
	altered := runDirectory(t, filepath.Join(top, "altered"))
	ledgerPath := filepath.Join(altered, "results.jsonl")
	content, err := os.ReadFile(ledgerPath)
	if err != nil {
		t.Fatal(err)
	}
	write(t, ledgerPath, strings.Replace(string(content), `"verdict":"pass"`, `"verdict":"fail"`, 1))
	torn := runDirectory(t, filepath.Join(top, "torn"))
	write(t, filepath.Join(torn, "results.jsonl"), string(content[:len(content)*2/3]))
	nonsense := runDirectory(t, filepath.Join(top, "nonsense"))
	write(t, filepath.Join(nonsense, "plan.json"), "{")
	planned := runDirectory(t, filepath.Join(top, "planned"))
	if err := os.Remove(filepath.Join(planned, "results.jsonl")); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(top, "empty", "results.jsonl"), "")
	p := open(t, top)
	want := map[string]string{
		"altered": runDamaged, "torn": runIncomplete, "nonsense": runDamaged, "planned": runEmpty, "empty": runEmpty,
	}
	for _, entry := range p.list() {
		if entry.State != want[entry.Name] {
			t.Errorf("%s is %s (%s), want %s", entry.Name, entry.State, entry.Problem, want[entry.Name])
		}
		delete(want, entry.Name)
		for _, part := range []string{"", "/cells"} {
			if status, content := p.get("/api/experiments/" + entry.ID + part); status != http.StatusOK {
				t.Errorf("%s%s: %d %s", entry.Name, part, status, content)
			}
		}
		if strings.Contains(entry.Problem, top) {
			t.Errorf("%s: the problem names the whole path: %s", entry.Name, entry.Problem)
		}
	}
	if len(want) > 0 {
		t.Errorf("not listed: %v", want)
	}
}

// TestAThousandConnections are served or refused, and the server answers afterwards.
func TestAThousandConnections(t *testing.T) {
	p := open(t, runDirectory(t, filepath.Join(t.TempDir(), "run")))
	id := p.list()[0].ID
	idle := make([]net.Conn, 0, 700)
	for range cap(idle) {
		conn, err := net.Dial("tcp", strings.TrimPrefix(p.base, "http://"))
		if err != nil {
			break
		}
		idle = append(idle, conn)
	}
	var asking sync.WaitGroup
	for i := range 300 {
		asking.Go(func() {
			address := "/api/experiments/" + id + "/cells"
			if i%3 == 0 {
				address = "/api/experiments/" + id
			}
			if status, _ := p.get(address); status != http.StatusOK && status != http.StatusServiceUnavailable {
				t.Errorf("%s: %d", address, status)
			}
		})
	}
	asking.Wait()
	for _, conn := range idle {
		_ = conn.Close()
	}
	if len(p.list()) != 1 {
		t.Error("the list is gone")
	}
}

// TestETags: what has not changed is not sent again.
func TestETags(t *testing.T) {
	p := open(t, runDirectory(t, filepath.Join(t.TempDir(), "run")))
	cells := "/api/experiments/" + p.list()[0].ID + "/cells"
	for _, address := range []string{"/", "/app.js", "/api/experiments", cells} {
		response, err := p.client.Get(p.base + address)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.base+address, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("If-None-Match", response.Header.Get("ETag"))
		again, err := p.client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = again.Body.Close()
		if again.StatusCode != http.StatusNotModified {
			t.Errorf("%s: %d", address, again.StatusCode)
		}
	}
}

// What tools generated is shown, and is no part of what the agent wrote, as in reports.
func TestGeneratedFilesAreNoPartOfTheTotals(t *testing.T) {
	t.Parallel()
	dir := runDirectory(t, filepath.Join(t.TempDir(), "run"))
	var patch strings.Builder
	for _, name := range []string{"sum.py", "__pycache__/sum.pyc", "node_modules/x/index.js", "go.sum"} {
		fmt.Fprintf(&patch, "diff --git a/%[1]s b/%[1]s\n--- a/%[1]s\n+++ b/%[1]s\n@@ -1 +1,2 @@\n-a\n+b\n+c\n", name)
	}
	write(t, filepath.Join(dir, "runs", "fix-add-00", "after", "0", "1", "diff.patch"), patch.String())
	p := open(t, dir)
	var cell cellAnswer
	p.read("/api/experiments/"+p.list()[0].ID+"/cells/fix-add-00/after/0", &cell)
	d := cell.Diff
	if d == nil || d.Files != 1 || d.Added != 2 || d.Removed != 1 || d.Generated != 3 || len(d.Changes) != 4 {
		t.Errorf("%+v", d)
	}
}

// TestOneFile: the exported page holds the answers under the addresses that pages ask for, cannot
// be left by what agents wrote, and keeps its size.
func TestOneFile(t *testing.T) {
	dir := runDirectory(t, filepath.Join(t.TempDir(), "run"))
	patch := filepath.Join(dir, "runs", "fix-add-00", "after", "0", "1", "diff.patch")
	write(t, patch, "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -0,0 +1 @@\n+</script><script>alert(1)</script>\n")
	server, err := New(Config{Paths: []Path{{Shown: "run", Real: dir}}, Dialects: builtin.New().Dialects()})
	if err != nil {
		t.Fatal(err)
	}
	var whole, small bytes.Buffer
	if err := server.Export(t.Context(), &whole, ExportConfig{Command: "</script>"}); err != nil {
		t.Fatal(err)
	}
	if whole.Len() > DefaultMaxBytes {
		t.Errorf("the page has %d bytes", whole.Len())
	}
	_, rest, _ := strings.Cut(whole.String(), `id="fit-data">`)
	block, _, _ := strings.Cut(rest, "</script>")
	var data struct {
		Start     string                     `json:"start"`
		LeftOut   int                        `json:"leftOut"`
		Responses map[string]json.RawMessage `json:"responses"`
	}
	if err := json.Unmarshal([]byte(block), &data); err != nil {
		t.Fatal(err)
	}
	id := strings.TrimPrefix(data.Start, "#/x/")
	for _, address := range []string{
		"/api/experiments", "/api/experiments/" + id, "/api/experiments/" + id + "/cells",
		"/api/experiments/" + id + "/forest", "/api/experiments/" + id + "/cells/fix-add-00/after/0",
	} {
		if data.Responses[address] == nil {
			t.Errorf("the file has no %s", address)
		}
	}
	if data.LeftOut != 0 {
		t.Errorf("%d parts are left out", data.LeftOut)
	}
	if strings.Contains(whole.String(), "<script>alert(1)") {
		t.Error("what an agent wrote became a script")
	}
	page := len(server.assets["app.js"].content) + len(server.assets["app.css"].content)
	limit := page + 20<<10
	if err := server.Export(t.Context(), &small, ExportConfig{MaxBytes: limit}); err != nil {
		t.Fatal(err)
	}
	if small.Len() > limit || strings.Contains(small.String(), `"leftOut":0,`) {
		t.Errorf("%d bytes, want at most %d, with parts left out", small.Len(), limit)
	}
	if err := server.Export(t.Context(), io.Discard, ExportConfig{MaxBytes: 1000}); err == nil {
		t.Error("a page that cannot be so small was written")
	}
}
