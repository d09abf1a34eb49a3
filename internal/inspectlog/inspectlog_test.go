package inspectlog_test

import (
	"archive/zip"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/inspectlog"
	"github.com/fit-eval/fit/session"
)

const sample = `{"id": "a", "epoch": 1, "input": "x", "uuid": "U", "messages": [
	{"role": "system", "content": "be brief"},
	{"role": "user", "content": "attachment://h1"},
	{"role": "assistant", "id": "m1", "model": "m-1", "content": [{"type": "reasoning", "reasoning": "hmm"},
		{"type": "text", "text": "I look"}, {"type": "text", "text": "attachment://h2"}, {"type": "image"}],
		"tool_calls": [{"id": "c1", "function": "bash", "arguments": {"cmd": "attachment://h2", "n": NaN}}]},
	{"role": "tool", "tool_call_id": "c1", "content": "nothing", "error": {"type": "timeout", "message": "late"}},
	{"role": "assistant", "id": "m2", "content": "done"}],
	"events": [{"event": "model", "timestamp": "2026-01-01T00:00:01Z", "output": {"choices": [{"message": {"id": "m1"}}]}},
		{"event": "tool", "id": "c1", "timestamp": "2026-01-01T00:00:02Z", "completed": "2026-01-01T00:00:05Z"}],
	"attachments": {"h1": "a long question", "h2": "a long command"},
	"model_usage": {"p/m": {"input_tokens": 100, "output_tokens": 5, "input_tokens_cache_read": 60, "total_tokens": 105},
		"p/n": {"input_tokens": 7, "output_tokens": 1, "input_tokens_cache_read": 2, "total_tokens": 10, "total_cost": 0.5}},
	"scores": {"match": {"value": "C", "explanation": "as it should be"}}, "limit": {"type": "token", "limit": 100}}`

// What an agent did in a sample is read like any other trace.
func TestASampleIsATrace(t *testing.T) {
	t.Parallel()
	log := filepath.Join(t.TempDir(), "x.json")
	write(t, log, `{"version": 2, "status": "success", "samples": [`+sample+`]}`)
	line, err := inspectlog.Sample(log, "")
	if err != nil {
		t.Fatal(err)
	}
	dialect := inspectlog.Dialect()
	if !dialect.Recognise(line) || dialect.Recognise([]byte(`{"id": "a", "type": "x"}`)) {
		t.Error("a sample is not recognised, or something else is")
	}
	fold := session.NewFold(session.Options{})
	dialect.New().Decode(line, session.Stamp{Line: 1}, fold)
	s := fold.Session()
	var events []string
	for _, e := range s.Events {
		text := string(e.Kind) + " " + e.Role + " " + e.Text
		if e.Tool != nil {
			text += e.Tool.NativeName + string(e.Tool.Args)
		}
		if e.Result != nil {
			text += e.Result.Preview
		}
		events = append(events, strings.TrimSpace(text))
	}
	all := strings.Join(events, "\n")
	for _, want := range []string{
		"be brief", "user a long question", "thinking assistant hmm", "assistant I look\na long command\n[image]",
		`bash{"cmd":"a long command","n":null}`, "nothing\ntimeout: late", "assistant done",
		"system ended by a limit: token", "system score of match: \"C\"\nas it should be",
	} {
		if !strings.Contains(all, want) {
			t.Errorf("%q is missing in\n%s", want, all)
		}
	}
	usage := s.Usage
	if usage.InputTokens != 100-60+7 || usage.CacheReadTokens != 62 || usage.OutputTokens != 6 || s.Turns != 2 ||
		s.Model != "m-1" || s.SessionID != "U" || s.WallClockMs != 4000 {
		t.Errorf("%+v, %d turns, %s %s %d", usage, s.Turns, s.Model, s.SessionID, s.WallClockMs)
	}
}

func TestASampleIsChosen(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	document := filepath.Join(dir, "x.json")
	write(t, document, `{"version": 2, "status": "success", "samples": [{"id": 1, "epoch": 1}, {"id": 2, "epoch": 1}]}`)
	archive := filepath.Join(dir, "y.eval")
	file, err := os.Create(archive)
	if err != nil {
		t.Fatal(err)
	}
	members := zip.NewWriter(file)
	for _, name := range []string{"header.json", "samples/1_epoch_1.json", "samples/a:b_epoch_1.json"} {
		w, err := members.Create(name)
		if err == nil {
			_, err = w.Write([]byte(`{"id": "` + name + `", "epoch": 1}`))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := members.Close(); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		document + ":sample 2":                 `{"id":2,"epoch":1}`,
		archive + ":samples/a:b_epoch_1.json":  `{"id":"samples/a:b_epoch_1.json","epoch":1}`,
		document:                               "is a log of 2 samples; choose one, e.g. '" + document + ":sample 1'",
		archive:                                "is a log of 2 samples; choose one, e.g. '" + archive + ":samples/1_epoch_1.json'",
		document + ":sample 3":                 `there is no sample "sample 3" in the log; it has sample 1, sample 2`,
		archive + ":header.json":               `there is no sample "header.json" in the log`,
		archive + ":../x":                      `there is no sample "../x" in the log`,
		filepath.Join(dir, "nothing:sample 1"): "",
	} {
		t.Run(name, func(t *testing.T) {
			log, sample := inspectlog.Split(name)
			if (log == "") != (want == "") {
				t.Errorf("%s is split into %q and %q", name, log, sample)
			}
			if log == "" {
				return
			}
			line, err := inspectlog.Sample(log, sample)
			if got := string(line); err == nil && got != want || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %s, %v; want %s", name, got, err, want)
			}
		})
	}
}

// FuzzSample decodes any sample: whatever it says, it ends.
func FuzzSample(f *testing.F) {
	f.Add([]byte(strings.Replace(sample, "NaN", "1", 1)))
	f.Add([]byte(`{"id": 1, "epoch": 1, "messages": [{"role": 7}], "scores": [], "error": "x"}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		fold := session.NewFold(session.Options{})
		inspectlog.Dialect().New().Decode(line, session.Stamp{}, fold)
		if _, err := json.Marshal(fold.Session()); err != nil {
			t.Error(err)
		}
	})
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
