package modelcli_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/cli/modelcli"
)

func writeFile(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// start runs the command until the test ends and returns its first line of output.
func start(t *testing.T, dir string, args ...string) string {
	t.Helper()
	reader, writer := io.Pipe()
	con := &console.Console{Stdout: writer, Stderr: io.Discard, Dir: dir}
	command := modelcli.New(con)
	command.SetArgs(append([]string{"serve"}, args...))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		err := command.ExecuteContext(ctx)
		_ = writer.CloseWithError(err)
		ended <- err
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("an interrupted server is no failure: %v", err)
		}
	})
	line, err := bufio.NewReader(reader).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(line)
}

func ask(t *testing.T, url string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/v1/messages",
		strings.NewReader(`{"model":"m","messages":[{"role":"user","content":"hi"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	reply, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = reply.Body.Close() }()
	data, err := io.ReadAll(reply.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestServePrintsItsAddressAndAnswers(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, dir, "hi.json", `{"turns": [{"text": "hello ${who}"}]}`)
	url := start(t, dir, "--script", "hi.json", "--var", "who=world", "--log", "requests.jsonl")
	if got := ask(t, url); !strings.Contains(got, "hello world") {
		t.Errorf("answered %s", got)
	}
	log, err := os.ReadFile(filepath.Join(dir, "requests.jsonl"))
	if err != nil || !strings.Contains(string(log), `"protocol":"anthropic"`) ||
		strings.Contains(string(log), `"body"`) {
		t.Errorf("log %s, %v", log, err)
	}
}

// A page in a browser reaches the server under a name of its own, which it has pointed here.
func TestServeAnswersRequestsToThisMachineOnly(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, dir, "hi.json", `{"turns": [{"text": "hello"}]}`)
	url := start(t, dir, "--script", "hi.json")
	port := url[strings.LastIndex(url, ":"):]
	for host, want := range map[string]int{
		"localhost" + port: 200, "127.0.0.1" + port: 200, "[::1]" + port: 200,
		"evil.example" + port: 403, "evil.example": 403, "10.0.0.1" + port: 403,
	} {
		t.Run(host, func(t *testing.T) {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/v1/models", nil)
			if err != nil {
				t.Fatal(err)
			}
			request.Host = host
			reply, err := http.DefaultClient.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			_ = reply.Body.Close()
			if reply.StatusCode != want {
				t.Errorf("Host %s: %d, want %d", host, reply.StatusCode, want)
			}
		})
	}
}

func TestServeSeveralScriptsAsJSON(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, dir, "a.json", `{"turns": [{"text": "I am a"}]}`)
	writeFile(t, dir, "b.json", `{"turns": [{"text": "I am b"}]}`)
	var printed struct {
		URL     string            `json:"url"`
		Scripts map[string]string `json:"scripts"`
	}
	if err := json.Unmarshal([]byte(start(t, dir, "--script", "a=a.json", "--script", "b=b.json", "--format", "json")),
		&printed); err != nil {
		t.Fatal(err)
	}
	for name, url := range printed.Scripts {
		if got := ask(t, url); !strings.Contains(got, "I am "+name) {
			t.Errorf("%s answered %s", name, got)
		}
	}
	if len(printed.Scripts) != 2 || !strings.HasPrefix(printed.Scripts["a"], printed.URL) {
		t.Errorf("printed %+v", printed)
	}
}

func TestServeNamesTheMistake(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, dir, "good.json", `{"turns": [{"text": "x"}]}`)
	writeFile(t, dir, "bad.json", "{\"turns\": [\n{\"txet\": \"x\"}]}")
	for want, args := range map[string][]string{
		"--script FILE is required":           {},
		`bad.json: line 2: there is no field`: {"--script", "bad.json"},
		"no such file":                        {"--script", "absent.json"},
		`two scripts are called ""`:           {"--script", "good.json", "--script", "good.json"},
		`--var must be NAME=VALUE, not "x"`:   {"--script", "good.json", "--var", "x"},
		"not on the loopback interface":       {"--script", "good.json", "--addr", "0.0.0.0:0"},
		"--log: open":                         {"--script", "good.json", "--log", "absent/log"},
	} {
		t.Run(want, func(t *testing.T) {
			command := modelcli.New(&console.Console{Stdout: io.Discard, Stderr: io.Discard, Dir: dir})
			command.SetArgs(append([]string{"serve"}, args...))
			command.SilenceErrors, command.SilenceUsage = true, true
			err := command.ExecuteContext(t.Context())
			if err == nil || !strings.Contains(err.Error(), want) || console.Code(err) != console.ExitUsage {
				t.Errorf("%q: %v, want %q and exit code 2", args, err, want)
			}
		})
	}
}
