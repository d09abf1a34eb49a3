package treatment

import (
	"encoding/json"
	"hash/maphash"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/fit-eval/fit/ledger"
)

// FuzzRead: whatever agents and models send, every piece has a grade, and a start does not differ
// from itself.
func FuzzRead(f *testing.F) {
	archive, err := txtar.ParseFile("testdata/requests.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range archive.Files {
		for line := range strings.Lines(string(file.Data)) {
			var call struct{ Body json.RawMessage }
			if json.Unmarshal([]byte(line), &call) == nil && call.Body != nil {
				f.Add([]byte(call.Body), []byte("data: {\"model\":\"m\"}\n"))
			}
		}
	}
	f.Add([]byte(`{"tools":[{"tools":[[]]}],"messages":[[],1,{"content":[{"functionResponse":null}]}]}`), []byte("{"))
	f.Fuzz(func(t *testing.T, body, reply []byte) {
		r := &reader{seed: maphash.MakeSeed()}
		r.answering(reply)
		q, ok := parseRequest(&r.parser, body)
		if !ok {
			return
		}
		pieces := []Piece{
			{Piece: ledger.Piece{Kind: ledger.PieceInstructions}, Text: "Keep the okapi tests & never skip one of them."},
			{
				Piece: ledger.Piece{Kind: ledger.PieceSkill, Name: "csv-tools"},
				Text:  "Converts tables.",
				Body:  "Count the rows.",
			},
			{Piece: ledger.Piece{Kind: ledger.PieceServer, Name: "db"}},
		}
		g := &grader{reader: r, request: q, parts: q.parts()}
		for i := range pieces {
			g.grade(&pieces[i], pieces[i].Text)
		}
		o := newOpener(r, pieces, []string{"", pieces[1].Body, ""}, q, nil)
		o.chunk(body)
		o.conclude()
		for _, p := range pieces {
			if p.Given == "" || p.Share < 0 || p.Share > 1 || (p.Given == ledger.GivenPart) != (p.Share > 0) {
				t.Errorf("%+v", p)
			}
		}
		start := newStart(q, nil)
		if again := Differences(start, start, nil, pieces); len(again) > 0 {
			t.Errorf("a start differs from itself: %+v", again)
		}
	})
}

// FuzzDefinition: whatever a repository holds, what it says about itself is one of its own words.
func FuzzDefinition(f *testing.F) {
	f.Add([]byte("---\nname: reviewer\ndescription: Reviews.\n---\nYou review."), "a.md")
	f.Add([]byte("---\nname: [\n---\n@docs/style.md @../x `@y` @/etc/passwd"), "a.md")
	f.Add([]byte("description = \"x\"\nprompt = '''y'''"), "a.toml")
	f.Fuzz(func(t *testing.T, text []byte, file string) {
		said := definition(file, text)
		if len(said.body) > len(text) || len(said.Description) > 4*len(text) {
			t.Errorf("%+v", said)
		}
		for _, name := range imports(string(text)) {
			if name == "" || !strings.Contains(string(text), "@"+name) {
				t.Errorf("imports %q", name)
			}
		}
	})
}
