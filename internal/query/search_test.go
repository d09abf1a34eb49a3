package query

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func search(t testing.TB, trace *Trace, q Search) []*Hit {
	t.Helper()
	var hits []*Hit
	if err := trace.Search(context.Background(), q,
		func(h *Hit) error { hits = append(hits, h); return nil }); err != nil {
		t.Fatal(err)
	}
	return hits
}

func matchesOf(hits []*Hit) []string {
	var all []string
	for _, h := range hits {
		all = append(all, h.Matches...)
	}
	return all
}

func TestSearchLooksEverywhere(t *testing.T) {
	trace := traceOf(t,
		`{"type":"system","subtype":"note","text":"a needle here"}`,
		`{"type":"user","message":{"content":"find the NEEDLE"}}`,
		`{"type":"assistant","message":{"content":[{"type":"text","text":"needle one"},{"type":"text","text":"needle two"},{"type":"thinking","thinking":"where is the needle?"}]}}`,
		`{"type":"assistant","message":{"content":[{"type":"tool_use","id":"a","name":"NeedleTool","input":{"q":"needle"}},{"type":"tool_use","id":"b","name":"Read"}]}}`,
		`{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"a","content":"needle found"}]}}`,
		`{"type":"user","message":{"content":"n\u0065edle in disguise"}}`)
	want := []string{
		`system: {"subtype":"note","text":"a needle here"}`, "user_text: find the NEEDLE", "text: needle one",
		"text: needle two",
		"thinking: where is the needle?", "tool_name: NeedleTool", `tool_input(NeedleTool): {"q":"needle"}`,
		"result: needle found", "user_text: needle in disguise",
	}
	for _, pattern := range []string{"needle", "n[e]edl.", "(needle|haystack)", "ne+dle"} {
		if diff := cmp.Diff(want, matchesOf(search(t, trace, Search{Pattern: pattern}))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", pattern, diff)
		}
	}
	if got := matchesOf(search(t, trace, Search{Pattern: "^needletool$"})); len(got) != 1 {
		t.Errorf("anchored: %v", got)
	}
	if got := search(t, trace, Search{Pattern: "undefined"}); len(got) != 0 {
		t.Errorf("a call without input has nothing to find: %v", matchesOf(got))
	}
}

func TestExcerptsShowTheSurroundings(t *testing.T) {
	long := strings.Repeat("é", 100) + "needle" + strings.Repeat("ü", 100)
	trace := traceOf(t, `{"type":"user","message":{"content":"`+long+`"}}`)
	want := "user_text: ..." + strings.Repeat("é", 40) + "needle" + strings.Repeat("ü", 40) + "..."
	if got := matchesOf(search(t, trace, Search{Pattern: "needle"})); len(got) != 1 || got[0] != want {
		t.Errorf("excerpt %q, want %q", got, want)
	}
	if got := matchesOf(search(t, trace, Search{Pattern: "needle", Full: true})); got[0] != "user_text: "+long {
		t.Errorf("full %q", got)
	}
}

func TestSearchStopsAtItsLimit(t *testing.T) {
	trace := traceOf(t, prompt, prompt, prompt, prompt)
	if got := search(t, trace, Search{Pattern: "fix", Limit: 2}); len(got) != 2 || got[1].Turn.Index != 1 {
		t.Errorf("%d hits", len(got))
	}
}

func TestContextIsTheTurnsAround(t *testing.T) {
	trace := traceOf(t, sample...)
	hits := search(t, trace, Search{Pattern: "package a", Context: 1})
	if len(hits) != 1 || len(hits[0].Context) != 2 || hits[0].Context[0].Index != 2 || hits[0].Context[1].Index != 4 {
		t.Errorf("hits %s", asJSON(t, hits))
	}
	last := search(t, trace, Search{Pattern: "Done", Context: 2, Limit: 1})
	if len(last) != 1 || len(last[0].Context) != 2 {
		t.Errorf("hits %s", asJSON(t, last))
	}
	if got := asJSON(t, search(t, traceOf(t, prompt), Search{Pattern: "fix", Context: 1})); !strings.Contains(got,
		`"context":[]`) {
		t.Errorf("an empty context is left out: %s", got)
	}
}
