package harness

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/render"
	"github.com/fit-eval/fit/redact"
	"github.com/fit-eval/fit/session"
	"github.com/fit-eval/fit/trace"
)

// floodAgent prints the same line over and over.
type floodAgent struct {
	line  []byte
	lines int
}

func (f *floodAgent) Info() agent.Info { return agent.Info{ID: "flood"} }
func (f *floodAgent) Probe(context.Context, agent.Host) (agent.Installation, error) {
	return agent.Installation{}, nil
}

func (f *floodAgent) Dialects() []session.Dialect {
	return []session.Dialect{session.StreamDialect("flood")}
}

func (f *floodAgent) Start(_ context.Context, cfg agent.Config) (agent.Session, error) {
	return &floodSession{f, cfg}, nil
}

type floodSession struct {
	agent *floodAgent
	cfg   agent.Config
}

func (s *floodSession) Prompt(context.Context, string) (agent.Result, error) {
	s.cfg.Started(agent.Started{Protocol: session.StreamDialectName})
	for range s.agent.lines {
		s.cfg.Events(s.agent.line)
	}
	return agent.Result{Success: true}, nil
}
func (s *floodSession) ID() string   { return "flood" }
func (s *floodSession) Close() error { return nil }

// BenchmarkRun is what a line costs between the agent and the disk, text for the terminal included.
func BenchmarkRun(b *testing.B) {
	line := []byte(`{"type":"assistant","message":{"content":[{"type":"text","text":"on and on and on and on and on and on and on"}]}}`)
	dir := b.TempDir()
	b.SetBytes(int64(len(line)))
	flood := &floodAgent{line: line, lines: b.N}
	text := render.New(render.Config{Out: io.Discard, Dialects: flood.Dialects()})
	writer, err := trace.Open(filepath.Join(dir, "trace"),
		trace.Config{Redactor: redact.New(redact.Config{Environ: os.Environ()}), OnLine: text.Line})
	if err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	if _, err := Run(b.Context(), RunConfig{Agent: flood, Trace: writer, Task: "x"}); err != nil {
		b.Fatal(err)
	}
	if err := writer.Close(); err != nil {
		b.Fatal(err)
	}
}
