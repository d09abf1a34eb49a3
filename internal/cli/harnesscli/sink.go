package harnesscli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/render"
	"github.com/fit-eval/fit/redact"
	"github.com/fit-eval/fit/trace"
)

// sink is where a session's trace goes: with a path to the file, and as text to standard output;
// without one to standard output as it is.
type sink struct {
	con      *console.Console
	registry *agent.Registry
	path     string

	writer *trace.Writer // nil until the session is about to start
	text   *render.Renderer
	opened os.FileInfo
}

// open opens the trace before any agent starts, so that a path that cannot be written costs
// nothing.
func (s *sink) open(redactor *redact.Redactor) (*trace.Writer, error) {
	if s.path == "" {
		s.writer = trace.NewWriter(surviving(s.con, "the session continues, and the rest of its trace is lost; "+
			"--output FILE keeps it"), trace.Config{Redactor: redactor})
		return s.writer, nil
	}
	s.path = s.con.Path(s.path)
	s.text = newRenderer(s.con, s.registry)
	var err error
	if s.writer, err = trace.Open(s.path, trace.Config{Redactor: redactor, OnLine: s.text.Line}); err != nil {
		code := console.ExitUsage
		if errors.Is(err, trace.ErrLocked) {
			code = console.ExitIncomplete
		}
		return nil, console.Exit(code, err)
	}
	if s.writer.NextSeq() > 0 {
		fmt.Fprintf(s.con.Stderr, "%s holds an earlier session; this one is appended\n", s.path)
	}
	if s.opened, err = os.Stat(s.path); err != nil {
		return nil, fmt.Errorf("open trace: %w", err)
	}
	return s.writer, nil
}

// Close ends the trace and prints the footer.
func (s *sink) Close() error {
	if s.writer == nil {
		return nil
	}
	err := errors.Join(s.writer.Close(), s.checkPlace())
	if s.text != nil {
		err = errors.Join(err, s.text.Close())
	}
	return err
}

// survivingWriter is standard output as long as somebody reads it; what is written after that is
// dropped.
type survivingWriter struct {
	con    *console.Console
	notice string
	closed bool
}

// surviving is a standard output that a session can write to when its reader has gone away, which
// must not end the session under its agents.
func surviving(con *console.Console, notice string) io.Writer {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) // the write fails instead
	return &survivingWriter{con: con, notice: notice}
}

func (w *survivingWriter) Write(p []byte) (int, error) {
	if w.closed {
		return len(p), nil
	}
	n, err := w.con.Stdout.Write(p)
	if errors.Is(err, syscall.EPIPE) {
		w.closed = true
		if w.notice != "" {
			fmt.Fprintf(w.con.Stderr, "standard output was closed; %s\n", w.notice)
		}
		return len(p), nil
	}
	return n, err
}

func newRenderer(con *console.Console, registry *agent.Registry) *render.Renderer {
	return render.New(render.Config{
		Out:      surviving(con, ""), // the trace has everything, whoever stopped reading the text
		Colour:   con.Colour(),
		Dialects: registry.Dialects(),
		Prices:   con.Prices(),
	})
}

// checkPlace finds out whether the trace is still where it was put: an agent may remove or replace
// what lies in its reach.
func (s *sink) checkPlace() error {
	if s.opened == nil || !s.opened.Mode().IsRegular() {
		return nil
	}
	if now, err := os.Stat(s.path); err != nil || !os.SameFile(s.opened, now) {
		return fmt.Errorf("the trace %s was removed or replaced during the session; keep it where the agent cannot "+
			"reach it", s.path)
	}
	return nil
}
