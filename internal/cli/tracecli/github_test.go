package tracecli

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/cli/console"
)

// github is a local stand-in of the API: run 1 has an artifact of alice's own, run 2 one that
// several share, run 3 has none yet, run 4 has two.
func githubStandIn(t *testing.T) string {
	t.Helper()
	zipped := func(names ...string) []byte {
		var buf bytes.Buffer
		w := zip.NewWriter(&buf)
		for _, name := range names {
			out, err := w.Create(name)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.WriteString(out, `{"source":"alice","seq":0,"event":{"type":"user","message":{"content":"`+name+
				`"}}}`+"\n")
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return buf.Bytes()
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /repos/o/r/actions/runs", func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Query().Get("created"), ">=") {
			t.Errorf("no date in %s", r.URL)
		}
		run := func(id int, name string) string {
			return fmt.Sprintf(`{"id":%d,"name":%q,"status":"completed","conclusion":null,"created_at":"2030-01-01T00:00:00Z","head_branch":"main","html_url":"u%d"}`, id, name, id)
		}
		if r.URL.Query().Get("page") == "2" {
			_, _ = fmt.Fprintf(w, `{"workflow_runs":[%s]}`, run(3, "agent three"))
			return
		}
		w.Header().Set("Link", fmt.Sprintf(`<http://%s%s&page=2>; rel="next"`, r.Host, r.URL.RequestURI()))
		_, _ = fmt.Fprintf(w, `{"workflow_runs":[%s,%s,%s]}`, run(1, "Agent one"), run(2, "kata two"), run(9, "lint"))
	})
	artifacts := map[string]string{
		"1": `{"id":11,"name":"trace--alice"},{"id":12,"name":"logs"}`, "2": `{"id":21,"name":"trace--case"}`, "3": ``,
		"4": `{"id":21,"name":"trace--x"},{"id":22,"name":"trace--y"}`,
	}
	mux.HandleFunc("GET /repos/o/r/actions/runs/{run}/artifacts", func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintf(w, `{"artifacts":[%s]}`, artifacts[r.PathValue("run")])
	})
	mux.HandleFunc("GET /repos/o/r/actions/artifacts/{id}/zip", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(zipped("trace--case--alice.agent.ndjson", "trace--case--bob.agent.ndjson",
			"trace--case.raw.ndjson"))
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}

func askGitHub(t *testing.T, environ []string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	con := &console.Console{
		Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs, Environ: environ,
		Dir: t.TempDir(),
	}
	code = run(con, args)
	return out.String(), errs.String(), code
}

func TestGitHubVerbs(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir()) // find keeps what it downloads
	environ := []string{"GITHUB_API_URL=" + githubStandIn(t), "GH_TOKEN=tok", "GITHUB_REPOSITORY=o/r"}
	dir := t.TempDir()
	for _, test := range []struct {
		args []string
		code int
		want []string // parts of what is printed
	}{
		{[]string{"runs"}, 0, []string{`"runId": 1`, `"runId": 2`, `"runId": 3`, `"conclusion": null`}},
		{
			[]string{"runs", "^agent", "--participant", "alice"},
			0,
			[]string{`"match": "confirmed"`, `"match": "unconfirmed-pending-artifacts"`},
		},
		{
			[]string{"runs", "--participant", "bob", "--format", "ndjson", "kata"},
			0,
			[]string{`{"workflow":"kata two","runId":2,"status":"completed","conclusion":null,"createdAt":"2030-01-01T00:00:00Z","branch":"main","url":"u2","match":"confirmed"}`},
		},
		{[]string{"runs", "--lookback", "soon"}, 2, []string{"--lookback must be"}},
		{[]string{"runs", "--repo", "nonsense"}, 2, []string{"not a repository"}},
		{[]string{"find", "1", "alice"}, 0, []string{`"runId": "1"`, `"host": "matrix"`, `"path": "trace--alice"`}},
		{
			[]string{"find", "2", "bob", "--dir", dir},
			0,
			[]string{`"host": "dispatch"`, `"path": "` + filepath.Join(dir, "trace--case--bob.agent.ndjson")},
		},
		{[]string{"find", "2", "bo"}, 1, []string{`no trace of "bo"`}},
		{[]string{"find", "3", "bob"}, 1, []string{"no trace artifacts"}},
		{[]string{"find", "x", "bob"}, 2, []string{"RUN-ID must be"}},
		{[]string{"download", "4"}, 2, []string{"choose one with --artifact: trace--x, trace--y"}},
		{
			[]string{"download", "1", "--artifact", "nope"},
			2,
			[]string{`no artifact "nope"; available: trace--alice, logs`},
		},
		{[]string{"download", "3"}, 1, []string{"available: none"}},
		{[]string{"download"}, 2, []string{"accepts 1 arg"}},
	} {
		out, errs, code := askGitHub(t, environ, test.args...)
		if code != test.code {
			t.Errorf("%v: exit code %d, want %d: %s", test.args, code, test.code, errs)
		}
		for _, want := range test.want {
			if !strings.Contains(out+errs, want) {
				t.Errorf("%v: no %q in:\n%s%s", test.args, want, out, errs)
			}
		}
	}
}

func TestDownloadStructuresTheWholeSession(t *testing.T) {
	environ := []string{"GITHUB_API_URL=" + githubStandIn(t), "GITHUB_TOKEN=tok"}
	dir := t.TempDir()
	out, errs, code := askGitHub(t, environ, "download", "2", "--repo", "https://github.com/o/r.git", "--dir", dir)
	if code != 0 {
		t.Fatal(errs)
	}
	var answer struct {
		Dir, Artifact, Structured string
		Files                     []string
	}
	if err := json.Unmarshal([]byte(out), &answer); err != nil {
		t.Fatal(err)
	}
	if answer.Dir != dir || answer.Artifact != "trace--case" || len(answer.Files) != 3 {
		t.Errorf("answer %+v", answer)
	}
	doc, err := os.ReadFile(filepath.Join(dir, "structured.json"))
	if err != nil || !strings.Contains(string(doc), "trace--case.raw.ndjson") {
		t.Errorf("the document was not made of the combined trace: %s, %v", doc, err)
	}
	if matches, _ := filepath.Glob(filepath.Join(dir, "*.zip")); len(matches) != 0 {
		t.Errorf("the archive was left behind: %v", matches)
	}
}

func TestWithoutATokenTheWayOutIsNamed(t *testing.T) {
	_, errs, code := askGitHub(t, []string{"PATH=/nowhere", "GITHUB_REPOSITORY=o/r"}, "runs")
	if code != console.ExitIncomplete || !strings.Contains(errs, "set GH_TOKEN") {
		t.Errorf("exit code %d: %s", code, errs)
	}
}

func TestDotenv(t *testing.T) {
	const file = "# comment\nOTHER=x\nexport GH_TOKEN=\"abc\"\nGITHUB_TOKEN = 'def'\n"
	if a, b := dotenv(file, "GH_TOKEN"), dotenv(file, "GITHUB_TOKEN"); a != "abc" || b != "def" {
		t.Errorf("%q %q", a, b)
	}
}

// TestADownloadFollowsNoPlantedLink: others can write to the directory for temporary files, and to
// a directory that a download shares.
func TestADownloadFollowsNoPlantedLink(t *testing.T) {
	environ := []string{"GITHUB_API_URL=" + githubStandIn(t), "GITHUB_TOKEN=tok", "GITHUB_REPOSITORY=o/r"}
	shared, victim := t.TempDir(), t.TempDir()
	t.Setenv("TMPDIR", shared)
	if err := os.Symlink(victim, filepath.Join(shared, "trace-2")); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"download", "2"}, {"find", "2", "bob"}} {
		out, errs, code := askGitHub(t, environ, args...)
		if code != 0 {
			t.Fatalf("%v: exit code %d: %s", args, code, errs)
		}
		var answer struct{ Dir, Path string }
		if err := json.Unmarshal([]byte(out), &answer); err != nil {
			t.Fatal(err)
		}
		if answer.Dir == "" {
			answer.Dir = filepath.Dir(answer.Path)
		}
		info, err := os.Stat(answer.Dir)
		if err != nil || info.Mode().Perm() != 0o700 || filepath.Base(answer.Dir) == "trace-2" {
			t.Errorf("%v: unpacked to %s, %v, %v", args, answer.Dir, info, err)
		}
	}
	if entries, err := os.ReadDir(victim); err != nil || len(entries) > 0 {
		t.Errorf("a planted link was followed: %v, %v", entries, err)
	}
	dir := t.TempDir()
	secret := filepath.Join(victim, "secret")
	if err := os.WriteFile(secret, []byte("safe"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(secret, filepath.Join(dir, "structured.json")); err != nil {
		t.Fatal(err)
	}
	if _, errs, code := askGitHub(t, environ, "download", "2", "--dir", dir); code != 0 {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	if got, err := os.ReadFile(secret); err != nil || string(got) != "safe" {
		t.Errorf("the document was written through a planted link: %q, %v", got, err)
	}
	if info, err := os.Stat(filepath.Join(dir, "structured.json")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the document: %v, %v", info, err)
	}
}
