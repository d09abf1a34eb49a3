package experimentcli

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/internal/experiment/local"
	"github.com/fit-eval/fit/internal/render"
	"github.com/fit-eval/fit/ledger"
	"github.com/fit-eval/fit/trace"
)

const (
	lastLines   = 12  // of the agent's, and of a grader's output
	maxLastLine = 160 // runes
	maxLogs     = 3
)

// showFailure shows why a run did not pass: the error and its way out, or the checks it failed.
func (s *shownCell) showFailure(p *page) {
	if s.Cause != nil {
		for _, line := range append([]string{""}, s.Cause.Lines()...) {
			p.line(strings.ReplaceAll(line, "%", "%%"))
		}
	}
	if s.AgentError != "" {
		p.line("\nthe agent failed: %s", s.AgentError)
	}
	if s.Verdict != ledger.Fail {
		return
	}
	p.line("\nfailed checks:")
	explained := false
	for _, row := range s.FailedChecks {
		p.line("  %s (%s): %s", row.Check, row.Source, row.Message)
		explained = explained || row.Message != "" && row.Source != "verify"
	}
	if len(s.FailedChecks) == 0 {
		p.line("  no check says that it failed; see the output of the graders")
	}
	if !explained {
		s.showLogs(p)
	}
}

// showLogs shows the end of what the graders printed.
func (s *shownCell) showLogs(p *page) {
	root, err := os.OpenRoot(filepath.Join(s.con.Path(s.dir), filepath.FromSlash(s.Directory), local.GradingDir))
	if err != nil {
		return
	}
	defer root.Close()
	shown := 0
	_ = fs.WalkDir(root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() || shown == maxLogs {
			return err
		}
		file, err := root.Open(name)
		if err != nil {
			return err
		}
		defer file.Close()
		last := tail{}
		if _, err := io.Copy(&last, file); err != nil || last.empty() {
			return err
		}
		shown++
		p.line("  the end of %s:", path.Join(local.GradingDir, name))
		last.show(p, "    ")
		return nil
	})
}

// showEnd shows the last lines of what the agent said and did.
func (s *shownCell) showEnd(p *page) {
	if s.TracePath == "" {
		return
	}
	last := tail{}
	if err := s.render(&last); err != nil {
		p.line("\nthe trace cannot be read: %s", err.Error())
		return
	}
	p.line("\nthe last turns:")
	last.show(p, "  ")
}

// render writes the trace as text.
func (s *shownCell) render(w io.Writer) error {
	root, err := os.OpenRoot(s.con.Path(s.dir))
	if err != nil {
		return err
	}
	defer root.Close()
	file, err := root.Open(filepath.FromSlash(s.TracePath))
	if err != nil {
		return err
	}
	defer file.Close()
	plain, end, err := trace.Unpack(bufio.NewReader(file))
	if err != nil {
		return err
	}
	defer end()
	text := render.New(render.Config{Out: w, Dialects: s.registry.Dialects(), Prices: s.con.Prices()})
	for line, err := range trace.NewReader(plain).All() {
		if err != nil {
			return errors.Join(err, text.Close())
		}
		text.Line(line.Envelope)
	}
	return text.Close()
}

// showFiles says where the files are, and how to look further.
func (s *shownCell) showFiles(p *page) {
	if s.Directory == "" {
		return
	}
	dir := filepath.Join(s.dir, filepath.FromSlash(s.Directory))
	p.line("\nfiles: %s", dir)
	if s.TracePath != "" {
		p.line("read the trace: fit-trace timeline %s", quoted(filepath.Join(s.dir, filepath.FromSlash(s.TracePath))))
	}
	final := filepath.Join(s.con.Path(s.dir), filepath.FromSlash(s.Directory), local.FinalDir)
	if info, err := os.Stat(final); err == nil && info.IsDir() && s.family != "" {
		p.line("grade it again: fit-benchmark grade --family %s --task %s %s", quoted(s.family), quoted(s.Task),
			quoted(dir))
	}
}

// quoted is a word as a shell takes it.
func quoted(word string) string {
	text, err := syntax.Quote(word, syntax.LangPOSIX)
	if err != nil { // it has a character that no shell takes
		return word
	}
	return text
}

// tail keeps the last lines of what is written.
type tail struct {
	lines []string
	rest  []byte
}

func (t *tail) Write(content []byte) (int, error) {
	n := len(content)
	for {
		line, after, found := bytes.Cut(content, []byte("\n"))
		if t.rest = append(t.rest, line[:min(len(line), max(0, 4*maxLastLine-len(t.rest)))]...); !found {
			return n, nil
		}
		if text := strings.TrimRight(string(t.rest), " \t\r"); text != "" {
			t.lines = append(t.lines, text)
			t.lines = slices.Delete(t.lines, 0, max(0, len(t.lines)-lastLines))
		}
		t.rest, content = t.rest[:0], after
	}
}

// empty reports whether nothing was written but white space.
func (t *tail) empty() bool { return len(t.lines) == 0 && len(bytes.TrimSpace(t.rest)) == 0 }

func (t *tail) show(p *page, indent string) {
	_, _ = fmt.Fprintln(t)
	for _, line := range t.lines {
		p.line(indent+"%s", display.CutRunes(line, maxLastLine))
	}
}
