package network

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/cli"
	"github.com/fit-eval/fit/internal/model/scripted"
	"github.com/fit-eval/fit/internal/model/scripted/scriptedtest"
)

// fetch is a package manager.
const fetch = `import ssl, sys, urllib.request
print(urllib.request.urlopen(sys.argv[1], context=ssl._create_unverified_context()).read().decode())
`

// An agent whose task says network: registries gets a package from a registry of the task, and
// reaches no other host. The trace says what it asked for, and the report what it had.
func TestAnAgentReachesTheRegistriesOfItsTask(t *testing.T) {
	b := newBench(t, outside{})
	registry := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "a package")
	}))
	t.Cleanup(registry.Close)
	_, port, err := net.SplitHostPort(registry.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	// The registry is on a loopback here, which programs would not ask the proxy for.
	get := "export no_proxy= NO_PROXY=; /usr/bin/python3 fetch.py https://"
	url := scriptedtest.ServeAll(t, map[string]string{"": `{"turns":[
		{"calls":[{"bash":"` + get + `localhost:` + port + ` >package.txt"}]},
		{"calls":[{"bash":"` + get + `fit.invalid; true"}]},
		{"text":"Done."}]}`}, scripted.Options{})
	for name, content := range map[string]string{
		"base/fetch.py": fetch,
		"task.yaml": "id: fetch\nprompt: Fetch the package.\nrepo: { path: base }\n" +
			"verifyCommand: grep -q 'a package' package.txt\nnetwork: registries\nregistries: ['localhost:" + port + "']\n",
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(b.dir, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		})
	}
	out := &bytes.Buffer{}
	b.con.Stdout = out
	if code := cli.Run(t.Context(), []string{
		"fit", "versus", "run", "task.yaml", "--runs", "1", "--arm", "one=agent:builtin,model:claude-sonnet-4-5", "--model-url", url,
		"--no-probe", "--judge", "off", "--output", "R", "--robot",
	}, b.con); code != 0 {
		t.Fatalf("exit code %d\n%s", code, b.errs.String())
	}
	var report struct {
		Network string
		Cells   []struct{ Resolved *bool }
	}
	if err := json.Unmarshal(out.Bytes(), &report); err != nil {
		t.Fatal(err)
	}
	if report.Network != "registries" || len(report.Cells) != 1 || report.Cells[0].Resolved == nil ||
		!*report.Cells[0].Resolved {
		t.Errorf("the report says %+v", report)
	}
	packed, err := os.ReadFile(filepath.Join(b.dir, "R", "runs", "fetch", "one", "0", "1", "agent.ndjson.zst"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`{"type":"host_reached","host":"localhost:` + port + `"}`, `{"type":"host_refused","host":"fit.invalid:443"}`,
	} {
		if text := string(unpacked(t, packed)); !strings.Contains(text, want) {
			t.Errorf("the trace lacks %s:\n%s", want, text)
		}
	}
}
