package bench

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/fit-eval/fit/internal/agent/catalog"
	"github.com/fit-eval/fit/internal/testenv"
	"github.com/fit-eval/fit/session"
)

const (
	// leastRatio is to the speed at which the standard library checks that the same lines are JSON.
	// It is about 300 MB/s on the machine of docs/performance.md.
	leastRatio = 0.9
	// shortest is the one kind that is below it: its recordings are of errors, retries and one-word
	// outputs, 148 bytes a line, and what a line costs beside its length, half a microsecond, is
	// most of it. The same with outputs of real length is more than twice as fast as the rest has
	// to be.
	shortest        = "codex-exec 0.166.0"
	leastOfShortest = 0.7
	corpusBytes     = 8 << 20 // of one kind of stream, every copy of a recording with ids of its own
	streamBytes     = 200 << 20
	// of the heap while a stream is read; the corpus counts as live, so that garbage may come to as
	// much
	mostGrowth = 32 << 20
	mostLeft   = 2 << 20 // of what lives, between the first part of a stream and its end
)

// TestEnrichment reads 200 MB of every kind of stream that the recordings hold, bare, as a trace,
// and with texts as long as those of real work, on one core: about as fast as the standard library
// checks them (with one exception), in flat memory.
func TestEnrichment(t *testing.T) {
	testenv.Measurement(t, "bench")
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	dialects := catalog.Default().Dialects()
	kinds := streams(t, dialects)
	only := os.Getenv("FIT_BENCH_ONLY") // a part of the name of the kinds to look at
	for _, name := range slices.Sorted(maps.Keys(kinds)) {
		if !strings.Contains(name, only) {
			continue
		}
		corpus := kinds[name].repeated(corpusBytes)
		kept := kinds[name].repeated(4 << 20)
		lines := bytes.Count(corpus, []byte("\n"))
		best, yardstick, peak := read(t, corpus, dialects)
		ratio := best / yardstick
		t.Logf("%-42s %5d bytes a line %6.0f MB/s, %.2f times json.Valid · heap grows by %4.1f MB · kept whole %4.0f MB/s",
			name, len(corpus)/lines, best, ratio, float64(peak)/(1<<20), whole(t, kept, dialects))
		least := leastRatio
		if name == shortest {
			least = leastOfShortest
		}
		if ratio < least {
			t.Errorf("%s: %.2f times as fast as json.Valid; the least is %.2f", name, ratio, least)
		}
		if peak > mostGrowth {
			t.Errorf("%s: the heap grows by %d bytes", name, peak)
		}
	}
}

// read enriches one long stream, part by part, and returns the speed of the part that was disturbed
// least, that of the yardstick in between, and by how much the heap grew.
func read(t *testing.T, corpus []byte, dialects session.Dialects) (best, yardstick float64, growth uint64) {
	t.Helper()
	debug.FreeOSMemory()
	before := heap()
	enricher := &session.Enricher{Dialects: dialects, Options: session.Options{Flat: true}}
	var lives uint64
	for size := 0; size < streamBytes; size += len(corpus) {
		began := cpuSeconds(t)
		if err := enricher.Read(onlyReader{bytes.NewReader(corpus)}); err != nil {
			t.Fatal(err)
		}
		best = max(best, float64(len(corpus))/1e6/(cpuSeconds(t)-began))
		yardstick = max(yardstick, checked(t, corpus[:bytes.LastIndexByte(corpus[:len(corpus)/2], '\n')+1]))
		if now := heap(); now > before {
			growth = max(growth, now-before)
		}
		if size == 0 {
			lives = live()
		}
	}
	if now := live(); now > lives+mostLeft {
		t.Errorf("%d bytes live on after a long stream", now-lives)
	}
	if sessions := enricher.Sessions(); len(sessions) != 1 || sessions[0].Turns == 0 {
		t.Fatalf("%d sessions were read", len(sessions))
	}
	return best, yardstick, growth
}

// heap is the memory that the heap takes from the system.
func heap() uint64 {
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapSys - stats.HeapReleased
}

// live is what is left on the heap when all garbage is gone.
func live() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// whole is the speed at which a session is read and kept with all its events.
func whole(t *testing.T, corpus []byte, dialects session.Dialects) float64 {
	t.Helper()
	best := 0.0
	for range 3 {
		runtime.GC()
		began := cpuSeconds(t)
		if _, err := session.Read(bytes.NewReader(corpus), dialects, session.Options{}); err != nil {
			t.Fatal(err)
		}
		best = max(best, float64(len(corpus))/1e6/(cpuSeconds(t)-began))
	}
	return best
}

// checked is the speed at which the standard library checks lines: the yardstick of this machine.
func checked(t *testing.T, lines []byte) float64 {
	t.Helper()
	began := cpuSeconds(t)
	for line := range bytes.Lines(lines) {
		if !json.Valid(line) {
			t.Fatalf("not JSON: %.200s", line)
		}
	}
	return float64(len(lines)) / 1e6 / (cpuSeconds(t) - began)
}

// onlyReader hides that the stream lies in memory.
type onlyReader struct{ io.Reader }

// cpuSeconds is the CPU time used so far, which a busy machine changes least.
func cpuSeconds(t *testing.T) float64 {
	t.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		t.Fatal(err)
	}
	return float64(usage.Utime.Sec+usage.Stime.Sec) + float64(usage.Utime.Usec+usage.Stime.Usec)/1e6
}

// stream is all recordings of one kind.
type stream struct {
	recordings [][]byte
	ids        [][]string // the ids that occur in each
	envelope   bool
}

// streams finds the agents' recordings and sorts them by what they are.
func streams(t *testing.T, dialects session.Dialects) map[string]*stream {
	t.Helper()
	files, err := filepath.Glob("../../internal/agent/*/testdata/*/*.jsonl")
	if err != nil || len(files) == 0 {
		t.Fatalf("no recordings (%v)", err)
	}
	kinds := map[string]*stream{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		sessions, err := session.Read(bytes.NewReader(data), dialects, session.Options{})
		if err != nil || len(sessions) != 1 || sessions[0].Turns == 0 {
			continue // broken off before anything was said
		}
		data = append(bytes.TrimRight(data, "\n"), '\n')
		name := sessions[0].Dialect + " " + filepath.Base(filepath.Dir(file))
		add := func(name string, data []byte, envelope bool) {
			if kinds[name] == nil {
				kinds[name] = &stream{envelope: envelope}
			}
			kinds[name].recordings = append(kinds[name].recordings, data)
			kinds[name].ids = append(kinds[name].ids, ids(sessions[0]))
		}
		if bytes.HasPrefix(data, []byte(`{"dir"`)) {
			add(name+", both directions", data, false)
			continue
		}
		add(name, data, false)
		add(name+", trace", data, true)
		add(name+", long lines", lengthen(data), false)
	}
	return kinds
}

// ids are the names in a session that another one would not share with it.
func ids(s *session.EnrichedSession) []string {
	names := map[string]bool{s.SessionID: true}
	for _, event := range s.Events {
		names[event.MessageID], names[event.Parent] = true, true
		if event.Tool != nil {
			names[event.Tool.CallID] = true
		}
	}
	// shorter ones occur in ordinary text
	maps.DeleteFunc(names, func(name string, _ bool) bool { return len(name) < 7 })
	sorted := slices.Sorted(maps.Keys(names))
	slices.SortStableFunc(sorted, func(a, b string) int { return len(b) - len(a) })
	return sorted
}

// textWithLines is a string with an escaped newline in it: an answer, a file, what a command
// printed.
var textWithLines = regexp.MustCompile(`"(?:[^"\\]|\\.)*?\\n(?:[^"\\]|\\.)*"`)

// longText is how long such a text is in real work.
const longText = 4096

// lengthen makes the texts of several lines in a recording as long as those of real work are.
func lengthen(data []byte) []byte {
	return textWithLines.ReplaceAllFunc(data, func(text []byte) []byte {
		inner := text[1 : len(text)-1]
		return slices.Concat([]byte(`"`), bytes.Repeat(inner, max(1, longText/len(inner))), []byte(`"`))
	})
}

// repeated is a stream of about a size, in which every copy of a recording has ids of its own.
func (s *stream) repeated(size int) []byte {
	var out bytes.Buffer
	for copies := 0; out.Len() < size; copies++ {
		for i, recording := range s.recordings {
			var pairs []string
			for _, id := range s.ids[i] {
				pairs = append(pairs, id, fmt.Sprintf("%s%06d", id[:len(id)-6], copies)) // as long as before
			}
			s.write(&out, strings.NewReplacer(pairs...).Replace(string(recording)))
		}
	}
	return bytes.Clone(out.Bytes()) // without the room that the buffer has left
}

func (s *stream) write(out *bytes.Buffer, recording string) {
	if !s.envelope {
		out.WriteString(recording)
		return
	}
	seq := 0
	for line := range strings.Lines(recording) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "{") && strings.HasSuffix(line, "}") {
			fmt.Fprintf(out, `{"source":"worker","seq":%d,"ts":1767323045678,"event":%s}`+"\n", seq, line)
			seq++
		}
	}
}
