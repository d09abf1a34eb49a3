package calls

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/fit-eval/fit/internal/jsonlines"
	"github.com/fit-eval/fit/internal/testenv"
	"github.com/fit-eval/fit/price"
	"github.com/fit-eval/fit/redact"
)

// words is text that packs as prose does, and not better.
func words(r *rand.Rand, n int) string {
	var b strings.Builder
	for range n {
		for range 3 + r.IntN(6) {
			b.WriteByte(byte('a' + r.IntN(26)))
		}
		b.WriteByte(' ')
	}
	return b.String()
}

func message(t testing.TB, role string, marked bool, text string) json.RawMessage {
	t.Helper()
	block := map[string]any{"type": "text", "text": text}
	if marked {
		block["cache_control"] = map[string]string{"type": "ephemeral"}
	}
	raw, err := json.Marshal(map[string]any{"role": role, "content": []any{block}})
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// conversation makes the requests of a conversation that grows, as Claude Code sends them: the mark
// for the cache moves along, so that the last message of a request is another one in the next.
func conversation(t testing.TB, turns int) (requests, responses [][]byte) {
	t.Helper()
	r := rand.New(rand.NewPCG(1, 2))
	system := words(r, 2000)
	var tools []json.RawMessage
	for i := range 15 {
		tools = append(tools, json.RawMessage(fmt.Sprintf(
			`{"name":"Tool%d","description":%q,"input_schema":{"type":"object"}}`, i, words(r, 100))))
	}
	var history []json.RawMessage
	for range turns {
		question, answer := words(r, 60), words(r, 30)
		body, err := json.Marshal(map[string]any{
			"model": "m", "max_tokens": 32000, "stream": true, "tools": tools,
			"system":   []any{map[string]any{"type": "text", "text": system}},
			"messages": append(slices.Clone(history), message(t, "user", true, question)),
		})
		if err != nil {
			t.Fatal(err)
		}
		requests = append(requests, body)
		history = append(history, message(t, "user", false, question), message(t, "assistant", false, answer))
		var events strings.Builder
		for word := range strings.SplitSeq(answer, " ") {
			fmt.Fprintf(&events, "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,"+
				"\"delta\":{\"type\":\"text_delta\",\"text\":\"%s \"}}\n\n", word)
		}
		responses = append(responses, []byte(events.String()))
	}
	return requests, responses
}

func write(t testing.TB, path string, cfg Config, requests, responses [][]byte) {
	t.Helper()
	w, err := Create(path, cfg)
	if err != nil {
		t.Fatal(err)
	}
	for i := range requests {
		call := Call{
			Seq:         int64(i + 1),
			Participant: "agent",
			Protocol:    "anthropic",
			Path:        "/v1/messages",
			Outcome:     OK,
			Status:      200,
			Usage:       &UsageJSON{TokenUsage: price.TokenUsage{InputTokens: 10, OutputTokens: 5}},
		}
		if err := w.Append(call, requests[i], responses[i]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

func open(t testing.TB, path string) *Reader {
	t.Helper()
	r, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

// check compares the bodies of the first calls with what was written.
func check(t *testing.T, r *Reader, requests, responses [][]byte) {
	t.Helper()
	for i := range requests {
		call := r.Calls()[i]
		request, err := r.Body(call.Request)
		if err != nil || !bytes.Equal(request, requests[i]) {
			t.Fatalf("request %d is not what was written: %v", i, err)
		}
		response, err := r.Body(call.Response)
		if err != nil || !bytes.Equal(response, responses[i]) {
			t.Fatalf("response %d is not what was written: %v", i, err)
		}
	}
}

func TestAGrowingConversationIsStoredOnce(t *testing.T) {
	requests, responses := conversation(t, 200)
	path := filepath.Join(t.TempDir(), "agent.calls")
	write(t, path, Config{}, requests, responses)
	sum := 0
	for _, request := range requests {
		sum += len(request)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if 10*info.Size() > int64(sum) {
		t.Errorf("%d bytes for requests of %d bytes: more than a tenth", info.Size(), sum)
	}
	t.Logf("%d bytes for requests of %d bytes (1/%.0f)", info.Size(), sum, float64(sum)/float64(info.Size()))
	r := open(t, path)
	if len(r.Calls()) != 200 || len(r.Problems()) != 0 {
		t.Fatalf("%d calls, problems %v", len(r.Calls()), r.Problems())
	}
	check(t, r, requests, responses)
}

// thousandCalls records as many, in twenty conversations.
func thousandCalls(t *testing.T) (path string) {
	requests, responses := conversation(t, 50)
	path = filepath.Join(t.TempDir(), "agent.calls")
	for range 20 {
		write(t, path, Config{}, requests, responses)
	}
	return path
}

func TestAThousandCallsAreListedWithoutTheirBodies(t *testing.T) {
	r := open(t, thousandCalls(t))
	if len(r.Calls()) != 1000 || len(r.texts) != 0 {
		t.Errorf("%d calls, %d bodies were read", len(r.Calls()), len(r.texts))
	}
}

func TestAThousandCallsAreListedQuickly(t *testing.T) {
	testenv.Measurement(t, "bench-gateway")
	path := thousandCalls(t)
	best := time.Hour
	for range 5 { // of which the garbage of the others is a part
		start := processorTime(t)
		open(t, path)
		best = min(best, processorTime(t)-start)
	}
	t.Logf("%s of CPU time", best)
	if best > 50*time.Millisecond {
		t.Error("at most 50 ms")
	}
}

// processorTime is what the process has used: other processes may be busy too.
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var used unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &used); err != nil {
		t.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

func TestBodiesThatAreNoRequestsOfAModel(t *testing.T) {
	bodies := [][]byte{
		[]byte(`{}`), []byte(`{"messages":[]}`), []byte(`not JSON`), []byte(`{"messages":"x","input":"hello","tools":{}}`),
		[]byte(" {\n \"input\" : [ 1 , \"two\" ,{}] , \"instructions\" : \"be\\\"\\u00e9 brief\" }\n"), []byte(`[1,2]`),
		[]byte(`{"messages":[{"a":1}],"messages":[{"a":2}]}`), []byte("\x00\xff"), []byte(`{"messages":[`), nil,
	}
	path := filepath.Join(t.TempDir(), "agent.calls")
	write(t, path, Config{}, bodies, bodies)
	r := open(t, path)
	for i, body := range bodies {
		got, err := r.Body(r.Calls()[i].Request)
		if err != nil || !bytes.Equal(got, body) {
			t.Errorf("%q came back as %q, %v", body, got, err)
		}
	}
}

func TestSecretsAreNotWritten(t *testing.T) {
	const secret = "s3cr3t-value-0123456789"
	redactor := redact.New(redact.Config{Extra: map[string]string{"KEY": secret}})
	requests := [][]byte{
		[]byte(`{"model":"m","messages":[{"role":"user","content":"` + secret + `"}]}`),
		[]byte(`{"metadata":{"user":"` + secret + `"},"messages":[{"role":"user","content":"a"}]}`),
		[]byte(`{"metadata":{"` + secret + `":1},"messages":[{"role":"user","content":"` + secret + `"}]}`),
	}
	half := len(secret) / 2
	responses := [][]byte{
		[]byte(`{"content":"` + secret + `"}`),
		fmt.Appendf(nil, "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\","+
			"\"text\":\"x %s\"}}\n\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":"+
			"\"text_delta\",\"text\":\"%s y\"}}\n\n", secret[:half], secret[half:]),
		[]byte("<html>" + secret),
	}
	path := filepath.Join(t.TempDir(), "agent.calls")
	write(t, path, Config{Redactor: redactor}, requests, responses)
	r := open(t, path)
	for i, call := range r.Calls() {
		for _, where := range []*Body{call.Request, call.Response} {
			body, err := r.Body(where)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(body), secret[half:]) {
				t.Errorf("call %d: %s", i, body)
			}
		}
		request, _ := r.Body(call.Request)
		if !json.Valid(request) || !strings.Contains(string(request), "[REDACTED:env:KEY]") {
			t.Errorf("request %d: %s", i, request)
		}
	}
}

func TestMetaOnly(t *testing.T) {
	requests, responses := conversation(t, 2)
	path := filepath.Join(t.TempDir(), "agent.calls")
	write(t, path, Config{MetaOnly: true}, requests, responses)
	r := open(t, path)
	call := r.Calls()[1]
	if call.Request.Bytes != int64(len(requests[1])) || call.Usage.OutputTokens != 5 || !call.Response.Stream {
		t.Errorf("%+v", call)
	}
	if _, err := r.Body(call.Request); !errors.Is(err, ErrNoBody) {
		t.Errorf("body: %v", err)
	}
}

// TestEveryTornEnd cuts a record after each of its bytes, as kill -9 may, reads it, and sometimes
// continues it.
func TestEveryTornEnd(t *testing.T) {
	requests, responses := conversation(t, 4)
	dir := t.TempDir()
	path := filepath.Join(dir, "whole.calls")
	write(t, path, Config{}, requests[:3], responses[:3])
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	last := int(open(t, path).blocks[2].offset - headLength) // the last call begins with what is new in it
	for size := last + 1; size < len(whole); size++ {
		r, err := newReader(bytes.NewReader(whole[:size]), int64(size))
		if err != nil {
			t.Fatalf("%d bytes: %v", size, err)
		}
		problems := r.Problems()
		if whole := int64(size) == r.end; len(r.Calls()) != 2 || !whole && (len(problems) != 1 || !problems[0].Torn) {
			t.Fatalf("%d bytes: %d calls, %v", size, len(r.Calls()), problems)
		}
		r.Close()
		if (size-last)%499 != 1 && size != len(whole)-1 {
			continue
		}
		torn := filepath.Join(dir, fmt.Sprint(size))
		if err := os.WriteFile(torn, whole[:size], 0o600); err != nil {
			t.Fatal(err)
		}
		write(t, torn, Config{}, requests[3:], responses[3:])
		again := open(t, torn)
		if len(again.Calls()) != 3 || len(again.Problems()) != 0 {
			t.Fatalf("continued after %d bytes: %d calls, %v", size, len(again.Calls()), again.Problems())
		}
		check(t, again, requests[:2], responses[:2])
		got, err := again.Body(again.Calls()[2].Request)
		if err != nil || !bytes.Equal(got, requests[3]) {
			t.Fatalf("continued after %d bytes: %v", size, err)
		}
	}
}

// TestDamageIsNamed flips bytes of a record. What is not damaged can still be read.
func TestDamageIsNamed(t *testing.T) {
	requests, responses := conversation(t, 3)
	path := filepath.Join(t.TempDir(), "agent.calls")
	write(t, path, Config{}, requests, responses)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for at := len(fileHead); at < len(whole); at += 7 {
		damaged := bytes.Clone(whole)
		damaged[at] ^= 0x55
		r, err := newReader(bytes.NewReader(damaged), int64(len(damaged)))
		if err != nil {
			t.Fatalf("byte %d: %v", at, err)
		}
		wrong := len(r.Problems()) > 0
		if len(r.Calls()) < 2 {
			t.Errorf("byte %d: %d calls, %v", at, len(r.Calls()), r.Problems())
		}
		for _, call := range r.Calls() {
			request, err := r.Body(call.Request)
			wrong = wrong || err != nil
			same := func(want []byte) bool { return bytes.Equal(want, request) }
			if err == nil && !slices.ContainsFunc(requests, same) {
				t.Errorf("byte %d: a wrong request without an error", at)
			}
			_, err = r.Body(call.Response)
			wrong = wrong || err != nil
		}
		if !wrong {
			t.Errorf("byte %d: nobody noticed", at)
		}
		r.Close()
	}
}

func TestOtherFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	for _, content := range []string{"hello", "fit calls 2\n", "\x00"} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(path); !errors.Is(err, errNotRecord) {
			t.Errorf("%q: %v", content, err)
		}
		if _, err := Create(path, Config{}); !errors.Is(err, errNotRecord) {
			t.Errorf("%q was continued: %v", content, err)
		}
	}
	if _, err := Open(path + ".gone"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
}

func TestOneWriterAtATime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "agent.calls")
	w, err := Create(path, Config{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Create(path, Config{}); !errors.Is(err, jsonlines.ErrLocked) {
		t.Errorf("the second writer got %v", err)
	}
	if err := w.Place(Place{Participant: "agent", Dirs: map[string]string{"cwd": "/w"}}); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Close(), w.Close()); err != nil {
		t.Fatal(err)
	}
	if err := w.Append(Call{}, nil, nil); err == nil {
		t.Error("a call was appended to a closed record")
	}
	want := []Place{{Participant: "agent", Dirs: map[string]string{"cwd": "/w"}}}
	if diff := cmp.Diff(want, open(t, path).Places()); diff != "" {
		t.Error(diff)
	}
}

func TestPath(t *testing.T) {
	for trace, want := range map[string]string{
		"a/agent.ndjson": "a/agent.calls", "agent.ndjson.zst": "agent.calls", "trace.jsonl": "trace.calls",
		"x": "x.calls", ".ndjson": ".ndjson.calls",
	} {
		t.Run(trace, func(t *testing.T) {
			if got := Path(trace); got != want {
				t.Errorf("%s: %s, want %s", trace, got, want)
			}
		})
	}
}

func TestRanges(t *testing.T) {
	for _, r := range []Ranges{nil, {0}, {5, 5}, {0, 1, 2, 9}, {3, 2, 1}, {7, 8, 1, 2}} {
		text, err := r.MarshalText()
		if err != nil {
			t.Fatal(err)
		}
		var back Ranges
		if err := back.UnmarshalText(text); err != nil || !slices.Equal(back, r) {
			t.Errorf("%v became %s and %v, %v", r, text, back, err)
		}
	}
	for _, text := range []string{"x", "1-", "2-1", "0-4294967295", "-1", "1,,2"} {
		if err := new(Ranges).UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q was accepted", text)
		}
	}
}

func FuzzReader(f *testing.F) {
	requests, responses := conversation(f, 2)
	path := filepath.Join(f.TempDir(), "agent.calls")
	write(f, path, Config{}, requests, responses)
	whole, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add([]byte(fileHead))
	f.Add(appendFrame([]byte(fileHead), kindCall, []byte(`{"request":{"bytes":1,"chunks":"0-9"}}`)))
	f.Add(appendFrame([]byte(fileHead), kindChunks, []byte("\x00\x02\x05")))
	f.Fuzz(func(_ *testing.T, data []byte) {
		r, err := newReader(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			return
		}
		defer r.Close()
		for i := range r.Calls() {
			_, _ = r.Request(&r.Calls()[i])
			_, _ = r.Body(r.Calls()[i].Response)
		}
		_ = r.Problems()
	})
}

// FuzzCut: whatever a request is, its pieces joined are the request.
func FuzzCut(f *testing.F) {
	f.Add([]byte(`{"system":"s","messages":[{"role":"user"},2],"tools":[{}],"input":[[]],"x":1}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		var joined []byte
		for _, chunk := range NewCleaner(nil).Request(body) {
			joined = append(joined, chunk.text...)
		}
		if !bytes.Equal(joined, body) {
			t.Errorf("%q became %q", body, joined)
		}
	})
}
