package gateway_test

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/gateway"
	"github.com/fit-eval/fit/internal/gateway/calls"
)

// said is a streamed reply whose text is cut into pieces of a few characters.
func said(text string) string {
	var b strings.Builder
	for len(text) > 0 {
		n := min(5, len(text))
		fmt.Fprintf(&b, "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":1,\"delta\":"+
			"{\"type\":\"input_json_delta\",\"partial_json\":%q}}\n\n", text[:n])
		text = text[n:]
	}
	return b.String()
}

// record writes a record of requests and their replies.
func record(t *testing.T, dirs map[string]string, pairs ...[2]string) string {
	t.Helper()
	return recordTo(t, filepath.Join(t.TempDir(), "agent.calls"), dirs, pairs...)
}

// recordTo adds a session to a record.
func recordTo(t *testing.T, path string, dirs map[string]string, pairs ...[2]string) string {
	t.Helper()
	w, err := calls.Create(path, calls.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Place(calls.Place{Participant: "agent", Dirs: dirs}); err != nil {
		t.Fatal(err)
	}
	usd := 0.5
	for i, pair := range pairs {
		call := calls.Call{
			Seq:         int64(i + 1),
			Participant: "agent",
			Protocol:    gateway.Anthropic,
			Path:        "/v1/messages",
			Model:       "m",
			Status:      200,
			Outcome:     calls.OK,
			CostUSD:     &usd,
		}
		if strings.HasPrefix(pair[1], `{"error`) {
			call.Status, call.Outcome = 529, calls.Failed
		}
		if err := w.Append(call, []byte(pair[0]), []byte(pair[1])); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

type answerer func(request string) (gateway.Recorded, bool, error)

func replay(t *testing.T, path, mode string, dirs map[string]string) answerer {
	t.Helper()
	recording, err := gateway.OpenReplay(path, gateway.ReplayConfig{Mode: mode})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { recording.Close() })
	member := recording.For("agent", dirs)
	return func(request string) (gateway.Recorded, bool, error) {
		return member.Answer(gateway.Request{
			Protocol: gateway.Anthropic,
			Path:     "/v1/messages",
			Model:    "m",
			Body:     []byte(request),
		})
	}
}

func ask(system string, messages ...string) string {
	return fmt.Sprintf(`{"model":"m","system":%q,"tools":[{"name":"Bash"}],"messages":[%s]}`, system,
		strings.Join(messages, ","))
}

const (
	hello = `{"role":"user","content":"hello"}`
	used  = `{"role":"assistant","content":[{"type":"tool_use","id":"toolu_01AbC","name":"Bash","input":{}}]}`
)

func TestStrictReplayShowsTheFirstDifference(t *testing.T) {
	path := record(t, nil, [2]string{ask("be kind", hello), said("one")},
		[2]string{ask("be kind", hello, used), said("two")})
	answer := replay(t, path, gateway.ReplayStrict, nil)
	got, found, err := answer(ask("be kind", hello))
	if err != nil || !found || string(got.Body) != said("one") || *got.CostUSD != 0.5 || got.Status != 200 ||
		got.Header.Get("Content-Type") != "text/event-stream" {
		t.Errorf("%+v, %v, %v", got, found, err)
	}
	_, _, err = answer(ask("be kind", hello, strings.Replace(used, "Bash", "Read", 1)))
	want := `request 2 of agent differs from recorded call 2: messages[1] was "se\",\"id\":\"{id}\",\"name\":\"Bash\",` +
		`\"input\":{}}]}" and is "se\",\"id\":\"{id}\",\"name\":\"Read\",\"input\":{}}]}"`
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Error(err)
	}
	// It has failed: an agent that asks again is shown the first difference, and gets no answer.
	if _, found, again := answer(ask("be kind", hello, used)); found || again == nil || again.Error() != err.Error() {
		t.Errorf("%v, %v", found, again)
	}
	answer = replay(t, path, gateway.ReplayStrict, nil)
	if _, _, err = answer(ask("be kind")); err == nil ||
		!strings.Contains(err.Error(), `the request was "],\"messages\":[" and is "],\"messages\":[]}"`) {
		t.Error(err)
	}
	answer = replay(t, path, gateway.ReplayStrict, nil)
	for _, messages := range [][]string{{hello}, {hello, used}} {
		if _, _, err := answer(ask("be kind", messages...)); err != nil {
			t.Error(err)
		}
	}
	_, _, err = answer(ask("something else"))
	if err == nil || !strings.Contains(err.Error(), "no recorded call left") {
		t.Error(err)
	}
}

// What no program chooses for its model, random directories, ids and dates, does not differ; what
// people write does, a duration too.
func TestStrictReplayMissesWhatAModelWouldRead(t *testing.T) {
	const before = "Wait 5 s in /tmp/fit-1/work. Today is 2026-11-15, session 6f1e0b5c-8c1d-4f52-9d5a-0d7c55f7c111."
	result := func(text string) string {
		return `{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_01AbC","content":"` + text + `"}]}`
	}
	path := record(t, map[string]string{"cwd": "/tmp/fit-1/work"}, [2]string{ask(before, hello), said("one")},
		[2]string{ask(before, hello, used, result("ok 0.003s")), said("two")})
	is := map[string]string{"cwd": "/home/ada/w"}
	const after = "Wait 5 s in /home/ada/w. Today is 2027-01-02, session 11111111-8c1d-4f52-9d5a-0d7c55f7c111."
	for _, test := range []struct{ system, result, missed string }{
		{after, "ok 0.7s", ""},
		{strings.Replace(after, "5 s", "9 s", 1), "ok 0.7s", `system[0] was "`},
		{after, "failed 0.7s", `messages[2] was "`},
	} {
		t.Run(test.system, func(t *testing.T) {
			for _, mode := range []string{gateway.ReplayStrict, gateway.ReplayNearest} {
				answer := replay(t, path, mode, is)
				first, _, err := answer(ask(test.system, hello))
				second := first
				if err == nil {
					second, _, err = answer(ask(test.system, hello, used, result(test.result)))
				}
				said := first.Differs + second.Differs
				if mode == gateway.ReplayStrict && err != nil {
					said = err.Error()
				}
				if (said != "") != (test.missed != "") || !strings.Contains(said, test.missed) ||
					(err != nil) != (mode == gateway.ReplayStrict && test.missed != "") {
					t.Errorf("%s, %q, %q: %q, %v", mode, test.system, test.result, said, err)
				}
			}
		})
	}
}

func TestNearestReplayLeavesOutWhatDiffersFromRunToRun(t *testing.T) {
	was := map[string]string{"cwd": "/tmp/fit-1/work", "home": "/tmp/fit-1/home"}
	is := map[string]string{"cwd": "/home/ada/w", "home": "/home/ada"}
	path := record(t, was,
		[2]string{`{"model":"m","messages":[{"role":"user","content":"find a title"}]}`, said("A title")},
		[2]string{
			ask("Today is 2026-11-15. cwd: /tmp/fit-1/work, id 6f1e0b5c-8c1d-4f52-9d5a-0d7c55f7c111", hello),
			said(`{"path":"/tmp/fit-1/work/a.go","other":"/tmp/fit-1/workshop"}`),
		},
		[2]string{ask("Today is 2026-11-15. cwd: /tmp/fit-1/work", hello, used,
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_01AbC","content":"ok 0.003s"}]}`), said("two")},
	)
	answer := replay(t, path, gateway.ReplayNearest, is)
	got, _, err := answer(ask("Today is 2027-01-02. cwd: /home/ada/w, id 11111111-8c1d-4f52-9d5a-0d7c55f7c111", hello))
	if want := `{"path":"/home/ada/w/a.go","other":"/tmp/fit-1/workshop"}`; err != nil || joined(t, got.Body) != want {
		t.Errorf("%s, %v", got.Body, err)
	}
	// a result that nothing explains: it is the third request of the conversation all the same
	got, _, err = answer(ask("Today is 2027-01-02. cwd: /home/ada/w", hello, used,
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_01AbC","content":"surprise"}]}`))
	if err != nil || joined(t, got.Body) != "two" {
		t.Errorf("%s, %v", got.Body, err)
	}
	if got, _, err = answer(`{"model":"m","messages":[{"role":"user","content":"find a title"}]}`); err != nil ||
		joined(t, got.Body) != "A title" {
		t.Errorf("%s, %v", got.Body, err)
	}
	if _, _, err = answer(ask("x", hello, hello, hello, hello, hello)); err == nil {
		t.Error("a conversation that is longer than the recorded one was answered")
	}
}

// joined is the text of a stream.
func joined(t *testing.T, body []byte) string {
	t.Helper()
	text := ""
	for line := range strings.Lines(string(body)) {
		if _, piece, ok := strings.Cut(line, `"partial_json":`); ok {
			var s string
			if _, err := fmt.Sscanf(piece, "%q", &s); err != nil {
				t.Fatalf("%q: %v", piece, err)
			}
			text += s
		}
	}
	return text
}

func TestLiveReplayIsACache(t *testing.T) {
	path := record(t, nil, [2]string{ask("at 2026-11-15", hello), said("one")})
	answer := replay(t, path, gateway.ReplayLive, nil)
	for range 3 {
		got, found, err := answer(ask("at 2026-12-24", hello))
		if err != nil || !found || joined(t, got.Body) != "one" {
			t.Errorf("%v, %v", found, err)
		}
	}
	other := ask("at 2026-12-24", strings.Replace(hello, "hello", "good morning", 1))
	if _, found, err := answer(other); found || err != nil {
		t.Errorf("%v, %v", found, err)
	}
}

// Measured with Claude Code and Codex: what the same prompt in another directory changes.
func TestLiveReplayKnowsTheSameRequestElsewhere(t *testing.T) {
	const codex = `{"model":"m","input":[%s],"client_metadata":{%s},"stream":true}`
	for name, test := range map[string]struct{ was, is string }{
		"a directory in the name of another": {
			ask("notes in /tmp/a/home/-tmp-a-work/memory", hello),
			ask("notes in /tmp/b/home/-tmp-b-work/memory", hello),
		},
		"metadata in another order": {
			fmt.Sprintf(codex, hello, `"turn":"{\"kind\":\"new\"}","id":"1"`),
			fmt.Sprintf(codex, hello, `"id":"1","turn":"{\"kind\":\"new\"}"`),
		},
		"ids of results and outputs": {
			fmt.Sprintf(codex, `{"type":"function_call_output","id":"fco_01a1e44a-b4d4-7243-8dba-6361c3cfe9b7","output":"Chunk ID: 208755\n"}`, ""),
			fmt.Sprintf(codex, `{"type":"function_call_output","id":"fco_01a1e44a-c913-7362-b854-18f2d2c77467","output":"Chunk ID: 67f950\n"}`, ""),
		},
	} {
		t.Run(name, func(t *testing.T) {
			was := map[string]string{"cwd": "/tmp/a/work", "home": "/tmp/a/home"}
			is := map[string]string{"cwd": "/tmp/b/work", "home": "/tmp/b/home"}
			answer := replay(t, record(t, was, [2]string{test.was, said("one")}), gateway.ReplayLive, is)
			if got, found, err := answer(test.is); err != nil || !found || joined(t, got.Body) != "one" {
				t.Errorf("%v, %v", found, err)
			}
		})
	}
}

func TestFailuresThatWereTriedAgainAreNotReplayed(t *testing.T) {
	const busy, tooLong = `{"error":{"type":"overloaded_error"}}`, `{"error":{"type":"invalid_request_error"}}`
	path := record(t, nil, [2]string{ask("a", hello), busy}, [2]string{ask("a", hello), said("one")},
		[2]string{ask("a", hello, used), tooLong})
	answer := replay(t, path, gateway.ReplayNearest, nil)
	if got, _, err := answer(ask("a", hello)); err != nil || got.Status != 200 {
		t.Errorf("%d, %v", got.Status, err)
	}
	if got, _, err := answer(ask("a", hello, used)); err != nil || got.Status != 529 || string(got.Body) != tooLong {
		t.Errorf("%d, %v", got.Status, err)
	}
}

// TestAReplayThroughTheGateway: the upstream is gone, and everything is as it was.
func TestAReplayThroughTheGateway(t *testing.T) {
	path := record(t, nil, [2]string{ask("a", hello), messageStart + messageDelta + messageEnd})
	recording, err := gateway.OpenReplay(path, gateway.ReplayConfig{})
	if err != nil {
		t.Fatal(err)
	}
	defer recording.Close()
	h := openAt(t, gateway.Config{}, "http://127.0.0.1:1")
	var seen calls.Call
	seat, err := h.Join(gateway.Member{
		Name: "agent", Replay: recording.For("agent", nil),
		OnCall: func(c calls.Call) { seen = c },
	})
	if err != nil {
		t.Fatal(err)
	}
	resp, text, err := post(t.Context(), seat.URL+"/v1/messages", seat.Token, ask("a", hello))
	if err != nil || resp.StatusCode != http.StatusOK || text != messageStart+messageDelta+messageEnd {
		t.Errorf("%v, %v: %s", resp, err, text)
	}
	_, text, err = post(t.Context(), seat.URL+"/v1/messages", seat.Token, ask("b", hello, hello))
	if err != nil || !strings.Contains(text, "invalid_request_error") || !strings.Contains(text, "replay ") {
		t.Errorf("%v: %s", err, text)
	}
	if err := h.Close(); err != nil { // waits for what is said about the calls
		t.Fatal(err)
	}
	if seen.Outcome == calls.Replayed || seen.Tools != 1 || seen.Messages != 2 {
		t.Errorf("%+v", seen)
	}
}

// A record that answers calls is not written at the same time.
func TestARecordDoesNotAnswerItself(t *testing.T) {
	t.Parallel()
	path := record(t, nil, [2]string{ask("hi", hello), hello})
	_, err := gateway.OpenRecord(gateway.RecordConfig{Path: path, Policy: gateway.Policy{Replay: path}})
	if err == nil || !strings.Contains(err.Error(), "another file") {
		t.Errorf("error %v", err)
	}
}

// TestTheLastSessionOfAFileAnswers: whoever writes a trace to the same file again means the new
// one.
func TestTheLastSessionOfAFileAnswers(t *testing.T) {
	question := [2]string{`{"model":"m","messages":[{"role":"user","content":"what?"}]}`, said("the first")}
	other := [2]string{`{"model":"m","messages":[{"role":"user","content":"why?"}]}`, said("because")}
	path := record(t, nil, question, other)
	question[1] = said("the second")
	recordTo(t, path, nil, question)
	for _, mode := range gateway.ReplayModes() {
		ask := replay(t, path, mode, nil)
		for _, want := range [][2]string{question, other} {
			if got, found, err := ask(want[0]); err != nil || !found || string(got.Body) != want[1] {
				t.Errorf("%s: answered %v with %q, %v", mode, found, got.Body, err)
			}
		}
	}
}

// TestFindRecord: a directory is a name, not a pattern.
func TestFindRecord(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run [1]*")
	record := filepath.Join(dir, "solo"+calls.Extension)
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(record, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if found, err := gateway.FindRecord(dir); err != nil || found != record {
		t.Errorf("found %q, %v; want %q", found, err, record)
	}
}

func TestAMissInADamagedRecordSaysSo(t *testing.T) {
	path := record(t, nil, [2]string{ask("one", hello), said("first")}, [2]string{ask("two", hello), said("second")})
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	data[bytes.Index(data, []byte("agent"))+1] ^= 0xff
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	_, _, err = replay(t, path, gateway.ReplayStrict, nil)(ask("three", hello))
	if err == nil || !strings.Contains(err.Error(), "the record is damaged") {
		t.Error(err)
	}
}
