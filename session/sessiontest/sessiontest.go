// Package sessiontest holds the tests that every agent's dialects must pass on real recordings:
// golden pages, and mutations of the recordings. An agent's own tests call them with its dialects
// and its testdata.
package sessiontest

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fit-eval/fit/price"
	"github.com/fit-eval/fit/session"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// Recordings returns the .jsonl files that match a pattern; there must be some.
func Recordings(t testing.TB, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("no recordings at %s (%v)", pattern, err)
	}
	return files
}

// Golden compares the page of every recording with the file beside it that ends in .show.txt.
func Golden(t *testing.T, pattern string, dialects session.Dialects) {
	t.Helper()
	for _, file := range Recordings(t, pattern) {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".jsonl"), func(t *testing.T) {
			got := Page(t, file, dialects)
			keepsNoViews(t, file, dialects)
			golden := strings.TrimSuffix(file, ".jsonl") + ".show.txt"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatalf("%v (run the test with -update to make it)", err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("the page of %s changed (-want +got):\n%s", file, diff)
			}
		})
	}
}

// keepsNoViews reads a recording from a buffer that is overwritten after every line. Decoders look
// at events in place, so everything they keep must be a copy.
func keepsNoViews(t *testing.T, file string, dialects session.Dialects) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want, err := session.Read(bytes.NewReader(data), dialects, session.Options{})
	if err != nil {
		return // nobody spoke in it
	}
	enricher := &session.Enricher{Dialects: dialects}
	var buffer []byte
	for i, line := range bytes.Split(bytes.TrimSuffix(data, []byte("\n")), []byte("\n")) {
		buffer = append(buffer[:0], line...)
		enricher.Line(buffer, int64(i+1))
		for at := range buffer {
			buffer[at] = '#'
		}
	}
	got := enricher.Sessions()
	if len(got) != len(want) {
		t.Fatalf("%s: %d sessions instead of %d", file, len(got), len(want))
	}
	for i := range want {
		if diff := cmp.Diff(stored(t, want[i]), stored(t, got[i])); diff != "" {
			t.Errorf("%s: something was kept that was not copied (-want +got):\n%s", file, diff)
		}
	}
}

// RoundTrip exports every recording's session to ATIF and imports it again: it must be the same
// session, and the same document.
func RoundTrip(t *testing.T, pattern string, dialects session.Dialects) {
	t.Helper()
	for _, file := range Recordings(t, pattern) {
		sessions, err := session.ReadFile(file, dialects, session.Options{Prices: session.ListPrices(price.Default())})
		if err != nil {
			continue // nobody spoke in it
		}
		for _, s := range sessions {
			document, err := session.ExportATIF(s)
			if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			back, err := session.ImportATIF(document, session.Options{})
			if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			if diff := cmp.Diff(stored(t, s), stored(t, back)); diff != "" {
				t.Errorf("%s: export and import changed the session (-before +after):\n%s", file, diff)
			}
			again, err := session.ExportATIF(back)
			if err != nil || !bytes.Equal(document, again) {
				t.Errorf("%s: exporting again gives another document (%v)", file, err)
			}
		}
	}
}

// stored returns a session as it is kept.
func stored(t testing.TB, s *session.EnrichedSession) string {
	t.Helper()
	data, err := json.MarshalIndent(s, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// Page returns what `session show` prints for a file. A recording that no agent spoke in gives an
// empty page.
func Page(t testing.TB, file string, dialects session.Dialects) string {
	t.Helper()
	sessions, err := session.ReadFile(file, dialects, session.Options{Prices: session.ListPrices(price.Default())})
	if err != nil {
		return "error: " + err.Error() + "\n"
	}
	var page strings.Builder
	for _, s := range sessions {
		Sound(t, s)
		stored(t, s)
		if err := session.Show(&page, s); err != nil {
			t.Fatal(err)
		}
	}
	return page.String()
}

// Sound checks the invariants of every session.
func Sound(t testing.TB, s *session.EnrichedSession) {
	t.Helper()
	seen := map[string]bool{}
	for _, m := range s.Milestones {
		if seen[m.Kind] {
			t.Errorf("milestone %s twice", m.Kind)
		}
		seen[m.Kind] = true
	}
	for i, event := range s.Events {
		if event.Seq != i {
			t.Fatalf("event %d has seq %d", i, event.Seq)
		}
		if event.TsSource != session.TsNative && event.TsSource != session.TsArrival {
			t.Errorf("event %d has the time source %q", i, event.TsSource)
		}
		if event.ElapsedMs < 0 || event.TurnIndex < 0 || event.TurnIndex > s.Turns {
			t.Errorf("event %d: elapsed %d, turn %d of %d", i, event.ElapsedMs, event.TurnIndex, s.Turns)
		}
	}
	if u := s.Usage; u.CostUSD == nil && u.CostSource != session.CostUnknown {
		t.Errorf("no cost, but its source is %q", u.CostSource)
	}
	for _, event := range s.Events {
		if event.Tool != nil && !json.Valid(event.Tool.Args) {
			t.Errorf("the arguments of a call cannot be stored: %s", event.Tool.Args)
		}
	}
}

// enrich reads lines that are held in memory.
func enrich(t testing.TB, lines [][]byte, dialects session.Dialects) []*session.EnrichedSession {
	t.Helper()
	data := bytes.Join(lines, []byte("\n"))
	sessions, err := session.Read(bytes.NewReader(data), dialects, session.Options{})
	if err != nil {
		return nil
	}
	for _, s := range sessions {
		Sound(t, s)
	}
	sameInFlatMemory(t, data, dialects, sessions)
	return sessions
}

// sameInFlatMemory checks that Flat gives the same totals.
func sameInFlatMemory(t testing.TB, data []byte, dialects session.Dialects, whole []*session.EnrichedSession) {
	t.Helper()
	flat, err := session.Read(bytes.NewReader(data), dialects, session.Options{Flat: true})
	if err != nil || len(flat) != len(whole) {
		t.Fatalf("%d sessions in flat memory, %d kept whole (%v)", len(flat), len(whole), err)
	}
	for i := range flat {
		want := *whole[i]
		want.Events, want.Messages, want.SystemPrompts = flat[i].Events, flat[i].Messages, flat[i].SystemPrompts
		if diff := cmp.Diff(&want, flat[i]); diff != "" {
			t.Errorf("flat memory changes what is reported:\n%s", diff)
		}
	}
}
