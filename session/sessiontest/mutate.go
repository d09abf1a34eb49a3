package sessiontest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fit-eval/fit/internal/jsonenc"
	"github.com/fit-eval/fit/internal/testenv"
	"github.com/fit-eval/fit/session"
)

// Mutations changes the meaning of every recording and checks that the enricher notices exactly
// what it should.
func Mutations(t *testing.T, pattern string, dialects session.Dialects) {
	t.Helper()
	seen := map[string]bool{}
	for _, file := range Recordings(t, pattern) {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		lines := bytes.Split(bytes.TrimSpace(data), []byte("\n"))
		original := enrich(t, lines, dialects)
		if len(original) != 1 || original[0].ParseErrors > 0 {
			continue // a recording that was broken on purpose
		}
		m := mutation{
			lines:    lines,
			dialects: dialects,
			original: original[0],
			fields:   newFields(t, lines, seen),
		}
		t.Run(strings.TrimSuffix(filepath.Base(file), ".jsonl"), func(t *testing.T) {
			t.Parallel()
			t.Run("unknown types", m.unknownTypes)
			t.Run("garbage between", m.garbage)
			t.Run("unknown fields", m.unknownFields)
			t.Run("other ids", m.otherIDs)
			t.Run("missing fields", m.missingFields)
			t.Run("fields of another kind", m.otherKinds)
			t.Run("other order", m.otherOrder)
			t.Run("cut off", m.cutOff)
		})
	}
}

type mutation struct {
	lines    [][]byte
	dialects session.Dialects
	original *session.EnrichedSession
	// fields are those that no recording before this one has.
	fields []field
}

// field is the position of one field of a kind of event.
type field struct {
	line int
	path []string
}

// contentOf returns the content of a session, without positions in the file and counts of what was
// not understood.
func contentOf(s *session.EnrichedSession) string {
	if s == nil {
		return "nothing"
	}
	own := *s
	own.Unknown, own.ParseErrors, own.Skipped, own.Dropped = 0, 0, 0, 0
	own.Events = slices.Clone(s.Events)
	for i := range own.Events {
		own.Events[i].RawLine = 0
	}
	data, err := json.MarshalIndent(own, "", " ")
	if err != nil {
		return err.Error()
	}
	return string(data)
}

func (m mutation) one(t *testing.T, lines [][]byte) *session.EnrichedSession {
	t.Helper()
	sessions := enrich(t, lines, m.dialects)
	if len(sessions) != 1 {
		t.Fatalf("%d sessions instead of one", len(sessions))
	}
	return sessions[0]
}

func (m mutation) same(t *testing.T, got *session.EnrichedSession) {
	t.Helper()
	if diff := cmp.Diff(contentOf(m.original), contentOf(got)); diff != "" {
		t.Errorf("the session changed (-before +after):\n%s", diff)
	}
}

// between puts a line after every line of the recording.
func (m mutation) between(line string) [][]byte {
	var mutated [][]byte
	for _, original := range m.lines {
		mutated = append(mutated, original, []byte(m.wrap(original, line)))
	}
	return mutated
}

// wrap gives a line the outer form of its neighbour, where recordings of both directions have one.
func (m mutation) wrap(neighbour []byte, line string) string {
	if bytes.HasPrefix(neighbour, []byte(`{"dir"`)) && json.Valid([]byte(line)) {
		return `{"dir":"in","ms":1,"msg":` + line + `}`
	}
	return line
}

func (m mutation) unknownTypes(t *testing.T) {
	got := m.one(t, m.between(`{"type":"from_the_future","method":"from/the/future","payload":{"type":"also_new","x":[1,2,3]},"params":{}}`))
	m.same(t, got)
	if got.Unknown <= m.original.Unknown {
		t.Errorf("%d unknown events were counted", got.Unknown)
	}
}

func (m mutation) garbage(t *testing.T) {
	got := m.one(t, m.between("\x1b[31m{not json\x00"))
	m.same(t, got)
	if got.ParseErrors < len(m.lines)-1 {
		t.Errorf("%d broken lines were counted of %d", got.ParseErrors, len(m.lines))
	}
}

// rewrite changes every line as a JSON object.
func (m mutation) rewrite(t *testing.T, change func(object map[string]any)) [][]byte {
	t.Helper()
	var mutated [][]byte
	for _, line := range m.lines {
		object := decode(t, line)
		change(object)
		mutated = append(mutated, encode(t, object))
	}
	return mutated
}

func decode(t *testing.T, line []byte) map[string]any {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.UseNumber()
	var object map[string]any
	if err := decoder.Decode(&object); err != nil {
		t.Fatal(err)
	}
	return object
}

func encode(t *testing.T, object map[string]any) []byte {
	t.Helper()
	line, err := jsonenc.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return line
}

func (m mutation) unknownFields(t *testing.T) {
	lines := m.rewrite(t, func(object map[string]any) {
		inner := object
		if wrapped, ok := object["msg"].(map[string]any); ok {
			inner = wrapped
		}
		inner["zz_new_field"] = map[string]any{"type": "text", "text": "not for you", "id": "zz"}
	})
	// Encoding sorts the keys of arguments, which the session shows as they came; so the comparison
	// is with a recording that was rewritten too.
	m.original = m.one(t, m.rewrite(t, func(map[string]any) {}))
	m.same(t, m.one(t, lines))
}

// otherIDs renames every id, the same one always to the same new one; the session must be the same
// except for the names.
func (m mutation) otherIDs(t *testing.T) {
	names := map[string]bool{m.original.SessionID: true}
	for _, event := range m.original.Events {
		names[event.MessageID], names[event.Parent] = true, true
		if event.Tool != nil {
			names[event.Tool.CallID] = true
		}
		if event.Result != nil {
			names[event.Result.CallID] = true
		}
	}
	var pairs []string
	for name := range names {
		if len(name) >= 5 { // shorter ones occur in ordinary text
			pairs = append(pairs, name)
		}
	}
	slices.SortFunc(pairs, func(a, b string) int { return len(b) - len(a) })
	var replacements []string
	for i, name := range pairs {
		// as long as before: results tell their size
		replacements = append(replacements, name, fmt.Sprintf("%0*d", len(name), 7000+i))
	}
	renamer := strings.NewReplacer(replacements...)
	var lines [][]byte
	for _, line := range m.lines {
		lines = append(lines, []byte(renamer.Replace(string(line))))
	}
	if diff := cmp.Diff(renamer.Replace(contentOf(m.original)), contentOf(m.one(t, lines))); diff != "" {
		t.Errorf("other ids, another session (-want +got):\n%s", diff)
	}
}

// missingFields removes every field of every kind of event, one at a time. The rest of the
// recording must still be understood.
func (m mutation) missingFields(t *testing.T) {
	m.eachField(t, func(object map[string]any, key string) { delete(object, key) })
}

// otherKinds makes every field something else.
func (m mutation) otherKinds(t *testing.T) {
	values := []any{
		nil, json.Number("17"), "text",
		[]any{},
		map[string]any{},
		true,
		[]any{map[string]any{"type": "text"}},
	}
	turn := 0
	m.eachField(t, func(object map[string]any, key string) {
		if reflect.TypeOf(object[key]) == reflect.TypeOf(values[turn%len(values)]) {
			turn++ // it would be of the same kind
		}
		object[key] = values[turn%len(values)]
		turn++
	})
}

func (m mutation) eachField(t *testing.T, change func(object map[string]any, key string)) {
	t.Helper()
	for _, f := range m.fields {
		object := decode(t, m.lines[f.line])
		holder := object
		for _, key := range f.path[:len(f.path)-1] {
			holder = holder[key].(map[string]any)
		}
		change(holder, f.path[len(f.path)-1])
		lines := slices.Clone(m.lines)
		lines[f.line] = encode(t, object)
		number, kept := int64(f.line+1), 0
		for _, s := range enrich(t, lines, m.dialects) {
			kept += messagesBut(s, number)
		}
		if want := messagesBut(m.original, number); kept < want {
			t.Errorf("line %d with another %s: %d messages of the other lines are left of %d", number,
				strings.Join(f.path, "."), kept, want)
		}
	}
}

// newFields finds the fields of every kind of event that were not seen before.
func newFields(t *testing.T, lines [][]byte, seen map[string]bool) []field {
	t.Helper()
	var found []field
	for i, line := range lines {
		whole := decode(t, line)
		kind := sortOf(whole)
		for _, path := range fields(whole, 4) {
			sort := kind + strings.Join(path, ".")
			if seen[sort] {
				continue
			}
			seen[sort] = true
			if len(seen)%testenv.Size(1, 5) == 0 {
				found = append(found, field{i, path})
			}
		}
	}
	return found
}

// messagesBut counts what was said in all lines but one: a broken line does not affect the others.
func messagesBut(s *session.EnrichedSession, line int64) int {
	count := 0
	for _, event := range s.Events {
		if event.Kind == session.KindMessage && event.RawLine != line {
			count++
		}
	}
	return count
}

// sortOf distinguishes the sorts of events.
func sortOf(object map[string]any) string {
	var parts []string
	for _, key := range []string{"type", "subtype", "method", "dir"} {
		parts = append(parts, fmt.Sprint(object[key]))
	}
	for _, key := range []string{"msg", "item", "message", "payload", "params"} {
		if inner, ok := object[key].(map[string]any); ok {
			parts = append(parts, sortOf(inner))
		}
	}
	return strings.Join(parts, " ")
}

// fields lists the paths of an object's fields, sorted, so that runs are alike.
func fields(object map[string]any, depth int) [][]string {
	var paths [][]string
	for _, key := range slices.Sorted(maps.Keys(object)) {
		paths = append(paths, []string{key})
		if inner, ok := object[key].(map[string]any); ok && depth > 1 {
			for _, path := range fields(inner, depth-1) {
				paths = append(paths, append([]string{key}, path...))
			}
		}
	}
	return paths
}

// otherOrder swaps neighbours. What was called does not depend on the order.
func (m mutation) otherOrder(t *testing.T) {
	for i := 1; i < len(m.lines); i++ {
		lines := slices.Clone(m.lines)
		lines[i-1], lines[i] = lines[i], lines[i-1]
		sessions := enrich(t, lines, m.dialects)
		if len(sessions) != 1 {
			t.Fatalf("lines %d and %d swapped: %d sessions", i, i+1, len(sessions))
		}
		if got, want := toolCalls(sessions[0]), toolCalls(m.original); got != want {
			t.Errorf("lines %d and %d swapped: %d tool calls instead of %d", i, i+1, got, want)
		}
	}
}

func toolCalls(s *session.EnrichedSession) int {
	count := 0
	for _, event := range s.Events {
		if event.Tool != nil {
			count++
		}
	}
	return count
}

// cutOff ends the recording after every line and in the middle of the next: what was reported
// before stays as it was.
func (m mutation) cutOff(t *testing.T) {
	for i := 1; i < len(m.lines); i++ {
		lines := append(slices.Clone(m.lines[:i]), m.lines[i][:len(m.lines[i])/2])
		for _, s := range enrich(t, lines, m.dialects) {
			for j, event := range s.Events {
				if event.Milestone != nil && event.Milestone.Kind == session.TaskCompletion {
					break // the end of the task moves with the end of the recording
				}
				if event.Kind != m.original.Events[j].Kind || event.RawLine != m.original.Events[j].RawLine {
					t.Fatalf("cut after line %d: event %d is %s of line %d instead of %s of line %d", i, j, event.Kind,
						event.RawLine,
						m.original.Events[j].Kind, m.original.Events[j].RawLine)
				}
			}
		}
	}
}
