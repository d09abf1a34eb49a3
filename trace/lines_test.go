package trace

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

// readLine is one answer of a Lines.
type readLine struct {
	Text   string
	Number int64
	Long   bool
}

func readLines(r io.Reader, limit int) ([]readLine, error) {
	lines := NewLines(r, limit)
	var all []readLine
	for {
		line, _, err := lines.Next()
		if err != nil && !errors.Is(err, ErrLongLine) {
			return all, err
		}
		all = append(all, readLine{string(line), lines.Number, err != nil})
	}
}

// splitLines is what a Lines does, for inputs that fit into memory.
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
			long[:usualBuffer-1], long[:usualBuffer], long,
		})
		text := strings.Join(rapid.SliceOfN(piece, 0, 8).Draw(t, "pieces"), "")
		limit := rapid.SampledFrom([]int{4, 1000, usualBuffer, 3 << 20}).Draw(t, "limit")
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
	lines := NewLines(bytes.NewReader(append(text, bytes.Repeat([]byte("more\n"), usualBuffer)...)), 8<<20)
	for {
		if _, _, err := lines.Next(); err != nil {
			break
		}
	}
	if cap(lines.long) > maxBuffer {
		t.Errorf("%d bytes are kept", cap(lines.long))
	}
}
