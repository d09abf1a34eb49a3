package query

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fit-eval/fit/internal/jsonenc"
	"github.com/fit-eval/fit/internal/lazyregexp"
	"github.com/fit-eval/fit/internal/query/internal/scan"
	"github.com/fit-eval/fit/trace"
)

// Split says how a combined trace is cut into one file per participant.
type Split struct {
	Mode string // run, supervise, facilitate or discuss
	Case string
	Dir  string
}

// SplitModes are the modes of sessions that write combined traces.
var SplitModes = []string{"run", "supervise", "facilitate", "discuss"}

var (
	splitLane = lazyregexp.New(`^[a-z][a-z0-9-]*$`)
	splitCase = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)
)

// ErrNothingToSplit is returned for a trace without any participant's lines.
var ErrNothingToSplit = errors.New("no line of this trace is an envelope of a participant; only combined traces can " +
	"be split")

// Split writes the events of every participant, without their envelopes, into
// trace--<case>--<participant>.<role>.ndjson and returns the files.
func (t *Trace) Split(ctx context.Context, s Split) ([]string, error) {
	if !splitCase.MatchString(s.Case) {
		return nil, fmt.Errorf("case %q: use letters, digits, dots, underscores and hyphens", s.Case)
	}
	if t.doc != nil {
		return nil, fmt.Errorf("%s: %w", t.Name(), ErrNothingToSplit)
	}
	if err := os.MkdirAll(s.Dir, 0o755); err != nil {
		return nil, err
	}
	out := &splitter{
		split:    s,
		wants:    t.opts.wants,
		redactor: t.opts.Redactor,
		files:    map[string]*splitFile{},
	}
	err := errors.Join(t.batches(ctx, plan{}, out.batch), out.close())
	if err == nil && len(out.order) == 0 {
		err = fmt.Errorf("%s: %w", t.Name(), ErrNothingToSplit)
	}
	return out.order, err
}

type splitter struct {
	split Split
	wants func(string) bool

	redactor Redactor

	files map[string]*splitFile
	order []string
}

type splitFile struct {
	file *os.File
	out  *bufio.Writer
}

func (s *splitter) batch(b *scan.Batch) error {
	for i := range b.Events {
		ev := &b.Events[i]
		if ev.Bare || ev.Native == nil || ev.Lane == trace.Orchestrator || !splitLane.MatchString(ev.Lane) ||
			!s.wants(ev.Lane) {
			continue
		}
		file, err := s.file(ev.Lane)
		if err != nil {
			return err
		}
		// The writer remembers the error until it is flushed.
		_, _ = file.out.Write(s.redactor.JSON(jsonenc.Compact(ev.Native)))
		if err := file.out.WriteByte('\n'); err != nil {
			return err
		}
	}
	return nil
}

func (s *splitter) file(lane string) (*splitFile, error) {
	if file := s.files[lane]; file != nil {
		return file, nil
	}
	role := bareLane
	switch lane {
	case "agent", "supervisor", "facilitator":
		role = lane
	}
	path := filepath.Join(s.split.Dir, "trace--"+s.split.Case+"--"+lane+"."+role+".ndjson")
	created, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	file := &splitFile{created, bufio.NewWriterSize(created, 64<<10)}
	s.files[strings.Clone(lane)] = file
	s.order = append(s.order, path)
	return file, nil
}

func (s *splitter) close() error {
	var all error
	for _, lane := range slices.Sorted(maps.Keys(s.files)) {
		all = errors.Join(all, s.files[lane].out.Flush(), s.files[lane].file.Close())
	}
	return all
}
