package catalog_test

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"

	"github.com/fit-eval/fit/internal/agent/acp"
	"github.com/fit-eval/fit/internal/agent/catalog"
	"github.com/fit-eval/fit/internal/agent/command"
	"github.com/fit-eval/fit/internal/agent/http"
)

// load reads one file of agents in a fresh directory.
func load(t *testing.T, content string) (file string, added []string, err error) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "agents.yaml")
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	registry, err := catalog.Load(file)
	known := len(catalog.Default().All())
	return file, registry.IDs()[known:], err
}

func TestAgentsOfAFile(t *testing.T) {
	_, added, err := load(t, `
agents:
  - id: fifth
    kind: acp
    command: my-agent
    args: [--stdio]
  - id: mine
    kind: command
    command: python3 ./agent.py --prompt-file {prompt}
    events: ndjson
    resume: python3 ./agent.py --prompt-file {prompt} --resume {session}
  - id: deployed
    kind: http
    url: https://example.com/chat
    headers: {Authorization: "Bearer ${TOKEN}"}
    body: {messages: [{role: user, content: "{prompt}"}]}
    answer: choices[0].message.content
`)
	if err != nil || strings.Join(added, " ") != "fifth mine deployed" {
		t.Errorf("%v, %v", added, err)
	}
	if _, added, err := load(t, "# nothing yet\n"); err != nil || len(added) > 0 {
		t.Errorf("an empty file: %v, %v", added, err)
	}
}

// Mistakes are reported with the line they are on and with what is allowed there. The agents
// without a mistake are there all the same.
func TestMistakesInAFile(t *testing.T) {
	for name, tt := range map[string]struct{ content, want string }{
		"no list":        {"crew:\n  - x\n", ":1:1: crew: there is no such setting; there are agents"},
		"another form":   {"agents: {a: b}\n", ":1:9: agents:"},
		"no kind":        {"agents:\n  - id: a\n    command: x\n", `:2:5: kind: "" is not a kind of agent; there are acp, command, http`},
		"another kind":   {"agents:\n  - id: a\n    kind: grpc\n", `:3:11: kind: "grpc" is not a kind of agent; there are acp, command, http`},
		"no id":          {"agents:\n  - kind: command\n    command: x\n", ":2:5: the setting id is missing"},
		"another id":     {"agents:\n  - {kind: command, id: 'a b', command: x}\n", ":2:25: id"},
		"taken":          {"agents:\n  - {kind: command, id: builtin, command: x}\n", `:2:25: id: there is an agent "builtin" already`},
		"twice":          {"agents:\n  - {kind: command, id: a, command: x}\n  - {kind: command, id: a, command: y}\n", `:3:25: id: there is an agent "a" already`},
		"misspelt":       {"agents:\n  - id: a\n    kind: command\n    comand: x\n", ":4:5: comand: there is no such setting; did you mean command?; there are command, cost, env, events, id, install, keys, kind,"},
		"no command":     {"agents:\n  - id: a\n    kind: command\n", ":2:5: the setting command is missing"},
		"another output": {"agents:\n  - {kind: command, id: a, command: x, events: xml}\n", ":2:48: events"},
		"unknown word":   {"agents:\n  - kind: command\n    id: a\n    command: x {promt}\n", ":4:14: command: {promt} is not a known placeholder; use one of {prompt},"},
		"resume": {
			"agents:\n  - kind: command\n    id: a\n    command: x\n    resume: x --go-on\n",
			":5:13: resume: it has no {session}",
		},
		"address":    {"agents:\n  - {kind: http, id: a, url: example.com}\n", `:2:30: url: "example.com" is not an http or https address`},
		"expression": {"agents:\n  - {kind: http, id: a, url: 'http://a/', answer: 'a['}\n", `:2:51: answer: "a[" is not a JMESPath expression`},
		"method":     {"agents:\n  - {kind: http, id: a, url: 'http://a/', method: SEND}\n", ":2:51: method"},
		"password":   {"agents:\n  - {kind: http, id: a, url: 'http://u:p@a/'}\n", "it has a password"},
		"no prompt":  {"agents:\n  - {kind: http, id: a, url: 'http://a/', body: {x: y}}\n", ":2:49: body: it has no {prompt}"},
		"variable":   {"agents:\n  - {kind: http, id: a, url: 'http://a/', headers: {X: '${'}}\n", "headers.X"},
		"no YAML":    {"agents: [\n", ":2"},
		"a value that there is not": {
			"agents:\n  - id: d\n    kind: acp\n    command: x\n    args: ['{{.Nope}}']\n",
			`:5:11: args: "{{.Nope}}" cannot be filled in; use {{.URL}}, {{.Key}},`,
		},
		"a word of other kinds": {
			"agents:\n  - {id: d, kind: acp, command: x, env: {A: '{nope}'}}\n",
			":2:45: env.A: {nope} is not a known placeholder; use one of {{.URL}},",
		},
		"a value of other kinds": {
			"agents:\n  - {id: d, kind: command, command: x, env: {A: '{{.Secret}}'}}\n",
			":2:49: env.A: {{ is not filled in here; there are {prompt},",
		},
		"a word in an address": {
			"agents:\n  - {kind: http, id: a, url: 'http://a/{nope}'}\n", ":2:30: url: {nope} is not a known placeholder; use one of",
		},
		"two documents": {
			"agents: []\n---\nagents:\n  - {kind: command, id: a, command: x}\n", ":2:1: a second document begins here",
		},
		"no UTF-8": {"agents:\n  - {kind: command, id: a, command: \xff}\n", ":2:37: the file is not valid UTF-8"},
	} {
		t.Run(name, func(t *testing.T) {
			file, added, err := load(t, tt.content)
			if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.HasPrefix(err.Error(), file) {
				t.Errorf("got %v, want %s", err, tt.want)
			}
			if len(added) > 0 && name != "twice" {
				t.Errorf("it was added: %v", added)
			}
		})
	}
	_, added, err := load(t, "agents:\n  - {kind: x, id: a}\n  - {kind: command, id: good, command: x}\n")
	if err == nil || len(added) != 1 {
		t.Errorf("%v, %v", added, err)
	}
}

// TestEveryFieldIsChecked: a value of another form is reported in its line, and one that is not
// among those that there are with all of them.
func TestEveryFieldIsChecked(t *testing.T) {
	for kind, form := range map[string]any{"acp": acp.Entry{}, "command": command.Entry{}, "http": http.Entry{}} {
		t.Run(kind, func(t *testing.T) {
			for _, field := range reflect.VisibleFields(reflect.TypeOf(form)) {
				name, allowed := field.Tag.Get("yaml"), field.Tag.Get("enum")
				wrong := "wrong"
				if field.Type.Kind() == reflect.String && allowed == "" {
					wrong = "[[1]]"
				}
				if name == "-" || name == "kind" || field.Type.Kind() == reflect.Interface {
					continue // kinds and bodies are among the mistakes above
				}
				if field.Type.Kind() == reflect.Slice && allowed != "" {
					wrong = "[wrong]"
				}
				content := "agents:\n  - kind: " + kind + "\n    " + name + ": " + wrong + "\n"
				for other, value := range map[string]string{"id": "a", "command": "x", "url": "http://a/"} {
					if other != name && (other == "id" || (other == "url") == (kind == "http")) {
						content += "    " + other + ": " + value + "\n"
					}
				}
				file, added, err := load(t, content)
				if err == nil || !strings.HasPrefix(err.Error(), file+":3:") || !strings.Contains(err.Error(), name) ||
					len(added) > 0 {
					t.Errorf("%s %s: %v", kind, name, err)
					continue
				}
				for value := range strings.SplitSeq(allowed, ",") {
					if !strings.Contains(err.Error(), value) {
						t.Errorf("%s %s: %v does not say that %s is allowed", kind, name, err, value)
					}
				}
			}
		})
	}
}

func TestWhereFilesAreLookedFor(t *testing.T) {
	project, home := t.TempDir(), t.TempDir()
	for _, file := range []string{
		filepath.Join(project, "agents.yaml"), filepath.Join(home, ".config", "fit", "agents.yaml"),
	} {
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		environ []string
		want    string
	}{
		{[]string{"HOME=" + home}, project + "/agents.yaml " + home + "/.config/fit/agents.yaml"},
		{[]string{"HOME=" + home, "XDG_CONFIG_HOME=/nowhere"}, project + "/agents.yaml"},
		{[]string{"HOME=" + home, "FIT_AGENTS=/a.yaml:/b.yaml"}, "/a.yaml /b.yaml"},
		{[]string{"HOME=" + home, "FIT_AGENTS="}, ""},
	} {
		if got := strings.Join(catalog.Files(project, tt.environ), " "); got != tt.want {
			t.Errorf("%v: %s", tt.environ, got)
		}
	}
	pipe := filepath.Join(t.TempDir(), "agents.yaml")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := catalog.Load(pipe); err == nil || !strings.Contains(err.Error(), "not a file") {
		t.Errorf("a pipe: %v", err)
	}
	_, err := catalog.Load("/nowhere/agents.yaml")
	if err == nil || !strings.Contains(err.Error(), "/nowhere/agents.yaml") {
		t.Errorf("a file that was named and is not there: %v", err)
	}
}
