package harnesscli

import (
	"archive/zip"
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/cli/console"
)

const leaked = "s3cr3t-value-0001"

// archive writes a zip file of logs.
func archive(t *testing.T, files map[string]string) string {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for name, content := range files {
		f, err := w.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write([]byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "logs.zip")
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func scan(t *testing.T, opts scanOptions, environ ...string) (code int, said string) {
	t.Helper()
	var stderr bytes.Buffer
	err := runScanLogs(t.Context(), &console.Console{Stdout: &stderr, Stderr: &stderr, Environ: environ}, opts)
	if err != nil {
		stderr.WriteString(err.Error())
	}
	return console.Code(err), stderr.String()
}

func TestSecretsInLogsAreFound(t *testing.T) {
	env := "DEPLOY_KEY=" + leaked
	for name, c := range map[string]struct {
		content string
		code    int
	}{
		"as it is":          {"the key is " + leaked + ".", 1},
		"in base64":         {base64.StdEncoding.EncodeToString([]byte("user:" + leaked + "@host")), 1},
		"across two chunks": {strings.Repeat("x", 32<<10-5) + leaked, 1},
		"nowhere":           {"nothing to see", 0},
		"another secret":    {"ghp_" + strings.Repeat("a", 36), 0},
		"only a mark of it": {"[REDACTED:env:DEPLOY_KEY]", 0},
	} {
		t.Run(name, func(t *testing.T) {
			code, said := scan(t, scanOptions{
				archive: archive(t,
					map[string]string{"0_job.txt": "fine", "job/1_step.txt": c.content}),
				secretEnvs: []string{"DEPLOY_KEY"},
			}, env)
			if code != c.code || (code == 1) != strings.Contains(said, `FAIL: DEPLOY_KEY is in "job/1_step.txt"`) {
				t.Errorf("exit code %d: %s", code, said)
			}
			if strings.Contains(said, leaked) {
				t.Errorf("the secret is told: %s", said)
			}
		})
	}
}

func TestSecretsOnTheCommandLine(t *testing.T) {
	path := archive(t, map[string]string{"a.txt": "abc=x " + leaked})
	if code, said := scan(t, scanOptions{
		archive: path,
		secrets: []string{"key=" + leaked, "empty=", "short=abc"},
	}); code != 1 ||
		!strings.Contains(said, "FAIL: key") ||
		!strings.Contains(said, "FAIL: short") || !strings.Contains(said, "empty is empty; skipped") {
		t.Errorf("exit code %d: %s", code, said)
	}
	for name, opts := range map[string]scanOptions{
		"nothing to look for": {archive: path}, "no form": {archive: path, secrets: []string{leaked}},
		"no logs":           {secrets: []string{"a=b"}},
		"two kinds of logs": {archive: path, runID: "1", secrets: []string{"a=b"}},
		"no number":         {runID: "1;x", repo: "a/b", secrets: []string{"a=b"}},
		"no repository":     {runID: "1", repo: "../x y", secrets: []string{"a=b"}},
	} {
		t.Run(name, func(t *testing.T) {
			if code, said := scan(t, opts); code != console.ExitUsage {
				t.Errorf("exit code %d: %s", code, said)
			}
		})
	}
}

// What cannot be read may hold anything.
func TestAFileThatCannotBeReadIsAFailure(t *testing.T) {
	path := archive(t, map[string]string{"a.txt": strings.Repeat("harmless text ", 100)})
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(data, []byte("PK\x07\x08")) // the descriptor after the content holds its checksum
	binary.LittleEndian.PutUint32(data[at+4:], 0)
	central := bytes.Index(data, []byte("PK\x01\x02"))
	binary.LittleEndian.PutUint32(data[central+16:], 0xdeadbeef)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if code, said := scan(t, scanOptions{archive: path, secrets: []string{"key=" + leaked}}); code != 1 ||
		!strings.Contains(said, `FAIL: "a.txt" cannot be read`) {
		t.Errorf("exit code %d: %s", code, said)
	}
	if err := os.WriteFile(path, []byte("no zip"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, said := scan(t, scanOptions{archive: path, secrets: []string{"key=" + leaked}}); code != 1 {
		t.Errorf("exit code %d: %s", code, said)
	}
}

func TestLogsOfARunAreFetchedAndNotLeftBehind(t *testing.T) {
	logs, err := os.ReadFile(archive(t, map[string]string{"a.txt": leaked}))
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/repos/owner/name/actions/runs/42/logs" ||
			r.Header.Get("Authorization") != "Bearer gh-token" {
			http.Error(w, `{"message":"Not Found"}`, http.StatusNotFound)
			return
		}
		_, _ = w.Write(logs)
	}))
	defer server.Close()
	temp := t.TempDir()
	opts := scanOptions{runID: "42", repo: "owner/name", secrets: []string{"key=" + leaked}}
	environ := []string{"GITHUB_API_URL=" + server.URL, "GH_TOKEN=gh-token", "RUNNER_TEMP=" + temp}
	if code, said := scan(t, opts, environ...); code != 1 || !strings.Contains(said, "FAIL: key") {
		t.Errorf("exit code %d: %s", code, said)
	}
	opts.runID = "43"
	if code, said := scan(t, opts, environ...); code != console.ExitIncomplete ||
		!strings.Contains(said, "fetch the logs") {
		t.Errorf("a run that is not there: exit code %d: %s", code, said)
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
