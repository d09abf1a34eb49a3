package session_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"

	"github.com/fit-eval/fit/session"
	"github.com/fit-eval/fit/trace"
)

func TestLinesThatAreTooLongAreSkippedAndCounted(t *testing.T) {
	if testing.Short() {
		t.Skip("reads 160 MB")
	}
	monster := func(size int) io.Reader {
		head, tail := `{"type":"assistant","message":{"id":"big","content":[{"type":"text","text":"`, `"}]}}`
		return io.MultiReader(strings.NewReader(head), io.LimitReader(endless{}, int64(size-len(head)-len(tail))),
			strings.NewReader(tail+"\n"))
	}
	sessions, err := session.Read(io.MultiReader(
		strings.NewReader(initLine+"\n"), monster(100<<20), monster(trace.MaxLine),
		strings.NewReader(said("2", "still here")+"\n"),
	), streamOnly, session.Options{Flat: true})
	if err != nil {
		t.Fatal(err)
	}
	if s := sessions[0]; s.Skipped != 1 || s.Turns != 2 || s.FinalText != "still here" || s.ParseErrors != 0 {
		t.Errorf("skipped %d, turns %d, last words of %d bytes, %d broken", s.Skipped, s.Turns, len(s.FinalText),
			s.ParseErrors)
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

func TestLanesOfATraceAreSessionsOfTheirOwn(t *testing.T) {
	lines := []string{
		`{"source":"orchestrator","seq":0,"ts":1000,"event":{"type":"agent_start","agent":"alice","runtime":"other-agent","version":"9","protocol":"stream-json","model":"m"}}`,
		`{"source":"orchestrator","seq":1,"ts":1001,"event":{"type":"system_prompt","agent":"alice","source":"profile","label":"lead","content":"You lead."}}`,
		`{"source":"orchestrator","seq":2,"ts":1002,"event":{"type":"prompt","agent":"alice","text":"Do it"}}`,
		`{"source":"alice","seq":3,"ts":1100,"event":` + said("1", "Doing it.") + `}`,
		`{"source":"alice","seq":4,"ts":1100,"event":{"type":"raw","text":"what?"}}`,
		`{"source":"alice","seq":5,"ts":1100,"event":{"type":"stderr","text":"warning"}}`,
		`{"source":"alice","seq":6,"ts":1100,"event":{"type":"dropped","count":12,"of":"delta"}}`,
		`{"source":"alice","seq":7,"ts":1100,"event":{"type":"skipped","bytes":99}}`,
		`{"source":"bob","seq":8,"ts":1200,"event":` + said("1", "Me too.") + `}`,
		`{"source":"orchestrator","seq":9,"ts":1300,"event":{"type":"summary","success":true}}`,
	}
	sessions, err := session.Read(strings.NewReader(strings.Join(lines, "\n")), streamOnly, session.Options{})
	if err != nil || len(sessions) != 2 {
		t.Fatalf("%d sessions, %v", len(sessions), err)
	}
	alice := sessions[0]
	if alice.Agent != "other-agent" || alice.AgentVersion != "9" || alice.ParseErrors != 1 || alice.Dropped != 12 ||
		alice.Skipped != 1 {
		t.Errorf("alice: %+v", alice)
	}
	if len(alice.SystemPrompts) != 1 || alice.SystemPrompts[0].Source != "profile" ||
		alice.Messages[0].Text != "Do it" {
		t.Errorf("what alice was told: %+v, %+v", alice.SystemPrompts, alice.Messages)
	}
	if event := alice.Events[len(alice.Events)-1]; event.TimestampMs != 1100 || event.TsSource != session.TsArrival ||
		event.ElapsedMs != 99 || event.Lane != "alice" {
		t.Errorf("the last event: %+v", event)
	}
}

func TestAFileOfNobodyIsNotRecognised(t *testing.T) {
	for _, content := range []string{"", "\n\n", "hello", `{"type":"something"}`, `[1,2,3]`, "{", "\x00\xff"} {
		if _, err := session.Read(strings.NewReader(content), streamOnly, session.Options{}); !errors.Is(err,
			session.ErrUnrecognised) {
			t.Errorf("%q: %v", content, err)
		}
	}
}

// FuzzEnrich reads anything; whatever it is, no good line around it may be lost.
func FuzzEnrich(f *testing.F) {
	for _, seed := range []string{
		initLine, said("1", "x"), result("success", false, 1, 1, ""),
		`{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":1}]}}`,
		`{"dir":"in","msg":{"type":"result"}}`, `{"source":"a","event":{"type":"raw"}}`,
		`{"type":"assistant","message":{"content":{}}}`, "{", "\xff", `{"type":"system"}`,
		`{"source":"orchestrator","seq":1,"ts":1,"event":{"type":"agent_start","agent":""}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 1<<16 || bytes.Contains(data, []byte("source")) && bytes.Contains(data, []byte("event")) {
			_, _ = session.Read(bytes.NewReader(data), streamOnly, session.Options{})
			return
		}
		whole := fmt.Sprintf("%s\n%s\n%s\n%s\n", initLine, said("good-1", "first"), data, said("good-2", "last"))
		sessions, err := session.Read(strings.NewReader(whole), streamOnly, session.Options{})
		if err != nil || len(sessions) != 1 {
			t.Fatalf("%d sessions, %v", len(sessions), err)
		}
		s := sessions[0]
		found := 0
		for _, m := range s.Messages {
			if m.Text == "first" || m.Text == "last" {
				found++
			}
		}
		if found < 2 {
			t.Errorf("good lines were lost: %+v", s.Messages)
		}
		document, err := session.ExportATIF(s)
		if err != nil {
			t.Fatalf("export: %v", err)
		}
		if _, err := session.ImportATIF(document, session.Options{}); err != nil {
			t.Fatalf("import: %v", err)
		}
	})
}

// generate writes a trace like those of long sessions: results of 200 B to 50 KB, several blocks to
// a message.
func generate(size int) []byte {
	random := rand.New(rand.NewPCG(1, 2))
	var out bytes.Buffer
	words := strings.Repeat("the config module returns an error\n\tat line \"17\" of file.go: build failed \\ retry\n",
		800)
	for i := 0; out.Len() < size; i++ {
		length := int(math.Exp(math.Log(200) + random.Float64()*math.Log(250)))
		events := []string{
			fmt.Sprintf(`{"type":"assistant","message":{"id":"msg_%d","model":"m","content":[{"type":"thinking","thinking":%q,"signature":"%0300d"}],"usage":{"input_tokens":1000,"output_tokens":1}},"session_id":"s","uuid":"u"}`, i, words[:200+length/20], i),
			fmt.Sprintf(`{"type":"assistant","message":{"id":"msg_%d","model":"m","content":[{"type":"tool_use","id":"call_%d","name":"Bash","input":{"command":"rg -n TODO src","description":"look"}}],"usage":{"input_tokens":1000,"output_tokens":1}},"session_id":"s","uuid":"u"}`, i, i),
			fmt.Sprintf(`{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"call_%d","content":%q}]},"session_id":"s","uuid":"u","timestamp":"2026-01-02T03:04:05.678Z"}`, i, words[:length]),
		}
		for j, event := range events {
			fmt.Fprintf(&out, `{"source":"worker","seq":%d,"ts":1767323045678,"event":%s}`+"\n", 3*i+j, event)
		}
	}
	return out.Bytes()
}

// BenchmarkEnrich reports MB/s of wall time and of CPU time; the latter is what holds on a
// busy machine.
func BenchmarkEnrich(b *testing.B) {
	data := generate(32 << 20)
	b.SetBytes(int64(len(data)))
	before := cpuSeconds(b)
	for b.Loop() {
		enricher := &session.Enricher{Dialects: streamOnly, Options: session.Options{Flat: true}}
		if err := enricher.Read(bytes.NewReader(data)); err != nil {
			b.Fatal(err)
		}
		if s := enricher.Sessions(); len(s) != 1 || s[0].Turns == 0 || s[0].ParseErrors > 0 {
			b.Fatalf("nothing was read: %+v", s)
		}
	}
	b.ReportMetric(float64(len(data))*float64(b.N)/1e6/(cpuSeconds(b)-before), "MB/cpu-s")
}

func cpuSeconds(b *testing.B) float64 {
	b.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return float64(usage.Utime.Sec+usage.Stime.Sec) + float64(usage.Utime.Usec+usage.Stime.Usec)/1e6
}
