package session

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"
)

// readLine is one answer of a lineReader.
type readLine struct {
	Text   string
	Number int64
	Long   bool
}

func readLines(r io.Reader, limit int) ([]readLine, error) {
	lines := newLineReader(r, limit)
	var all []readLine
	for {
		line, number, err := lines.next()
		if err != nil && !errors.Is(err, errLongLine) {
			return all, err
		}
		all = append(all, readLine{string(line), number, err != nil})
	}
}

// splitLines is what a lineReader does, for inputs that fit into memory.
func splitLines(text string, limit int) (all []readLine) {
	for line := range strings.Lines(text) {
		number := int64(len(all) + 1)
		if len(line) > limit+1 {
			all = append(all, readLine{Number: number, Long: true})
			continue
		}
		if number == 1 {
			line = strings.TrimPrefix(line, "\xef\xbb\xbf")
		}
		all = append(all, readLine{Text: strings.TrimRight(line, "\r\n"), Number: number})
	}
	return all
}

func TestLinesAreSplitHoweverTheyArrive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		long := strings.Repeat("long ", 60_000)
		piece := rapid.SampledFrom([]string{
			"", "a", "some words", "\n", "\r\n", "\r", "\n\n", "\xef\xbb\xbf",
			long[:readAtOnce-1], long[:usualBuffer], long,
		})
		text := strings.Join(rapid.SliceOfN(piece, 0, 8).Draw(t, "pieces"), "")
		limit := rapid.SampledFrom([]int{4, 1000, readAtOnce, usualBuffer, 3 << 20}).Draw(t, "limit")
		want := splitLines(text, limit)
		for name, r := range map[string]io.Reader{
			"at once": strings.NewReader(text), "in halves": iotest.HalfReader(strings.NewReader(text)),
			"with the end": iotest.DataErrReader(strings.NewReader(text)),
		} {
			got, err := readLines(r, limit)
			if !errors.Is(err, io.EOF) {
				t.Fatalf("%s: %v", name, err)
			}
			if !slices.Equal(want, got) {
				t.Fatalf("%s: %d lines, want %d", name, len(got), len(want))
			}
		}
	})
}

func TestAnInputThatBreaksOffOrGivesNothingIsAnError(t *testing.T) {
	broken := errors.New("broken")
	lines, err := readLines(io.MultiReader(strings.NewReader("one\ntwo"), iotest.ErrReader(broken)), 100)
	if !errors.Is(err, broken) || len(lines) != 1 {
		t.Errorf("%v after %d lines", err, len(lines))
	}
	if _, err := readLines(silent{}, 100); !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("nothing: %v", err)
	}
}

type silent struct{}

func (silent) Read([]byte) (int, error) { return 0, nil }

func TestTheMemoryOfAHugeLineIsNotKept(t *testing.T) {
	text := append(bytes.Repeat([]byte("x"), 4<<20), "\nshort\nlines\n"...)
	lines := newLineReader(bytes.NewReader(append(text, bytes.Repeat([]byte("more\n"), readAtOnce)...)), 8<<20)
	for {
		if _, _, err := lines.next(); err != nil {
			break
		}
	}
	if len(lines.buf) != usualBuffer {
		t.Errorf("%d bytes are kept", len(lines.buf))
	}
}
