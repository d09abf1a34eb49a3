package treatment_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/fit-eval/fit/internal/gateway/calls"
	"github.com/fit-eval/fit/redact"
)

// project has what the real agents of testdata/requests.txtar worked in.
var project = map[string]string{
	"CLAUDE.md": "# House rules\n\nAlways use tabs in the zebra module.\n\n" +
		"<!-- for maintainers: remove the next rule in May -->\n\n" +
		"See @docs/style.md too.\n\nNever call quux() without a guard.\n",
	"docs/style.md": "Comments in the giraffe package are full sentences.\n",
	"AGENTS.md":     rules("okapi"),
	"GEMINI.md":     rules("tapir"),
	"QWEN.md":       rules("quokka"),
	".claude/agents/reviewer.md": "---\nname: reviewer\n" +
		"description: Reviews changes of the zebra module for missing guards.\n---\nYou review zebras.\n",
	".claude/commands/ship.md": "---\ndescription: Ships the zebra release to the partners.\n---\n" +
		"Ship it now, $ARGUMENTS.\n",
	".claude/skills/csv-tools/SKILL.md": csvTools,
	".claude/skills/pdf-tools/SKILL.md": pdfTools,
	".agents/skills/csv-tools/SKILL.md": csvTools,
	".agents/skills/pdf-tools/SKILL.md": pdfTools,
}

const (
	csvTools = "---\nname: csv-tools\n" +
		"description: Converts tables to CSV & \"friends\". Use it for plumbus files.\n---\n\n# CSV tools\n\n" +
		"Read the header of the plumbus first.\nKeep the columns in their order.\nCount the rows at the end.\n"
	pdfTools = "---\nname: pdf-tools\ndescription: Fills in forms of the fleeb department.\n---\n\n# PDF tools\n\n" +
		"Look for the fleeb field.\nNever flatten a form twice.\n"
)

func rules(animal string) string {
	return "# Rules for the " + animal + "\n\nKeep the " + animal + " tests under one second & never skip them.\n\n" +
		"- Run them with `make " + animal + "`.\n"
}

// write lays out files below a new directory.
func write(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// exchange is one call of a record.
type exchange struct {
	Protocol, Path, Model string
	Body                  json.RawMessage
	// Adds are the messages that the conversation has more than that of the call before.
	Adds []json.RawMessage

	reply   string
	outcome string
}

// recorded returns the calls of a real agent.
func recorded(t testing.TB, name string) []exchange {
	t.Helper()
	archive, err := txtar.ParseFile("testdata/requests.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range archive.Files {
		if file.Name != name {
			continue
		}
		var all []exchange
		for line := range strings.Lines(string(file.Data)) {
			var x exchange
			if err := json.Unmarshal([]byte(line), &x); err != nil {
				t.Fatal(err)
			}
			if x.Adds != nil {
				x.Body = longer(t, all[len(all)-1].Body, x.Adds)
			}
			all = append(all, x)
		}
		return all
	}
	t.Fatalf("no recording of %s", name)
	return nil
}

// longer returns a request with more messages.
func longer(t testing.TB, body json.RawMessage, adds []json.RawMessage) json.RawMessage {
	t.Helper()
	var request map[string]json.RawMessage
	if err := json.Unmarshal(body, &request); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"messages", "input", "contents"} {
		var messages []json.RawMessage
		if json.Unmarshal(request[key], &messages) == nil && messages != nil {
			request[key] = encode(t, append(messages, adds...))
		}
	}
	return encode(t, request)
}

func encode(t testing.TB, value any) json.RawMessage {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// record writes calls to a file.
func record(t testing.TB, redactor *redact.Redactor, exchanges ...exchange) string {
	t.Helper()
	return recordAs(t, calls.Config{Redactor: redactor}, exchanges...)
}

func recordAs(t testing.TB, cfg calls.Config, exchanges ...exchange) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "agent.calls")
	writer, err := calls.Create(path, cfg)
	if err != nil {
		t.Fatal(err)
	}
	for i, x := range exchanges {
		call := calls.Call{
			Seq:      int64(i + 1),
			Protocol: x.Protocol,
			Path:     x.Path,
			Model:    x.Model,
			Outcome:  calls.OK,
			Messages: 1,
		}
		if call.Path == "" {
			call.Protocol, call.Path = "anthropic", "/v1/messages"
		}
		if x.outcome != "" {
			call.Outcome = x.outcome
		}
		if err := writer.Append(call, x.Body, []byte(x.reply)); err != nil {
			t.Fatal(err)
		}
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}
