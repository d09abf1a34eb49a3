package tracecli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/agent/catalog"
	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/query"
	"github.com/fit-eval/fit/internal/render"
	"github.com/fit-eval/fit/session"
	"github.com/fit-eval/fit/trace"
)

// figures are what a verb says about a trace, as it prints them. An empty one is not printed.
type figures struct{ Cost, Tokens, Turns string }

func printed(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(raw)
}

// inJSON asks a verb and picks the figures out of its answer.
func inJSON[T any](t *testing.T, pick func(T) figures, args ...string) figures {
	t.Helper()
	var answer T
	if err := json.Unmarshal(ask(t, args...), &answer); err != nil {
		t.Fatalf("fit-trace %s: %v", strings.Join(args, " "), err)
	}
	return pick(answer)
}

// fixtures are all traces among the test data that an agent or a team wrote.
func fixtures(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, pattern := range []string{
		"testdata/recordings/*.jsonl", "../../../examples/traces/*.ndjson",
		"../../query/testdata/*.ndjson", "../../query/testdata/transcripts/*/*.jsonl",
	} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: no files (%v)", pattern, err)
		}
		all = append(all, files...)
	}
	return append(all,
		wrapped(t, [2]string{"lead", "stream-b-tool-failure"}, [2]string{"worker", "codex-a-happy"},
			[2]string{"pi", "pi-a-happy"}))
}

// TestEveryVerbCountsTheSame compares all that is printed about cost, tokens and turns with the
// sessions that package session reads from the same file.
func TestEveryVerbCountsTheSame(t *testing.T) {
	for _, path := range fixtures(t) {
		t.Run(filepath.Base(path), func(t *testing.T) { countsTheSame(t, path) })
	}
}

func countsTheSame(t *testing.T, path string) {
	want := bySession(t, path)
	type totals struct {
		query.UsageJSON
		Cost *float64 `json:"totalCostUsd"`
	}
	ofTotals := func(s struct{ Totals totals }) figures {
		return figures{Cost: printed(s.Totals.Cost), Tokens: printed(s.Totals.UsageJSON)}
	}
	document := filepath.Join(t.TempDir(), "document.json")
	if err := os.WriteFile(document, ask(t, "export", path, "--to", "document"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, got := range map[string]figures{
		"stats":                 inJSON(t, ofTotals, "stats", "--format", "json", path),
		"stats --summary":       inJSON(t, ofTotals, "stats", "--summary", "--format", "json", path),
		"stats --by-tool":       inJSON(t, ofTotals, "stats", "--by-tool", "--format", "json", path),
		"stats of the document": inJSON(t, ofTotals, "stats", "--format", "json", document),
		"cost": inJSON(t, func(c struct {
			Total *float64 `json:"totalCostUsd"`
		},
		) figures {
			return figures{Cost: printed(c.Total)}
		}, "cost", path),
		"overview": inJSON(t, func(o struct {
			Summary struct {
				Cost *float64 `json:"totalCostUsd"`
			}
			Turns int
		},
		) figures {
			return figures{Cost: printed(o.Summary.Cost), Turns: fmt.Sprint(o.Turns)}
		}, "overview", "--format", "json", path),
		"compare": inJSON(t, func(c struct{ A, B struct{ Cost *float64 } }) figures {
			if printed(c.A) != printed(c.B) {
				t.Errorf("compare: %s and %s", printed(c.A), printed(c.B))
			}
			return figures{Cost: printed(c.A.Cost)}
		}, "compare", "--format", "json", path, path),
		"sql": inJSON(t, func(rows []struct {
			Known, Lanes int
			Cost         *float64
		},
		) figures {
			if rows[0].Known < rows[0].Lanes {
				return figures{}
			}
			return figures{Cost: printed(rows[0].Cost)}
		}, "sql", "--format", "json", path,
			"select count(cost_usd) known, count(*) lanes, sum(cost_usd) cost from lanes"),
	} {
		for _, figure := range []struct{ name, got, want string }{
			{"cost", got.Cost, want.Cost}, {"tokens", got.Tokens, want.Tokens}, {"turns", got.Turns, want.Turns},
		} {
			if figure.got != "" && figure.got != figure.want {
				t.Errorf("%s: %s %s, want %s", name, figure.name, figure.got, figure.want)
			}
		}
	}
	if footer := replayed(t, path); footer != "" && !strings.Contains(footer, "| Turns: "+want.Turns+" |") {
		t.Errorf("replay: %s, want %s turns", footer, want.Turns)
	}
	toolTurns(t, path)
}

// bySession reads the figures without package query.
func bySession(t *testing.T, path string) figures {
	t.Helper()
	con := &console.Console{}
	sessions, err := session.Load(path, catalog.Default().Dialects(), session.Options{Prices: con.Prices()})
	if err != nil {
		t.Fatal(err)
	}
	var used session.TokenUsage
	turns := 0
	for _, s := range sessions {
		if s.Usage.TotalTokens > 0 || s.Usage.CostUSD != nil {
			used = used.Plus(s.Usage)
		}
		turns += s.Turns
	}
	return figures{Cost: printed(used.CostUSD), Turns: fmt.Sprint(turns), Tokens: printed(query.UsageJSON(used))}
}

// replayed is the last line of a trace that is shown again.
func replayed(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	show := render.New(render.Config{Out: &out, Dialects: catalog.Default().Dialects()})
	for line := range bytes.Lines(raw) {
		if env, err := trace.ParseLine(bytes.TrimSpace(line)); err == nil {
			show.Line(env)
		}
	}
	if err := show.Close(); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if last := lines[len(lines)-1]; strings.HasPrefix(last, "--- Result:") {
		return last
	}
	return ""
}

// toolTurns checks that no tool has more turns than calls.
func toolTurns(t *testing.T, path string) {
	t.Helper()
	var calls []query.ToolCount
	var shares struct{ PerTool []query.ToolShare }
	for verb, into := range map[string]any{"tools": &calls, "stats": &shares} {
		args := []string{verb, "--format", "json", path}
		if verb == "stats" {
			args = append(args, "--by-tool")
		}
		if err := json.Unmarshal(ask(t, args...), into); err != nil {
			t.Fatal(err)
		}
	}
	for _, share := range shares.PerTool {
		at := slices.IndexFunc(calls, func(c query.ToolCount) bool { return c.Tool == share.Tool })
		if share.Tool != "(no-tool)" && (at < 0 || share.Turns > calls[at].Count) {
			t.Errorf("%s has %d turns, but the calls are %+v", share.Tool, share.Turns, calls)
		}
	}
}
