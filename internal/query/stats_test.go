package query

import (
	"context"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/testenv"
)

func statsOf(t testing.TB, trace *Trace) *Stats {
	t.Helper()
	stats, _, err := trace.Stats(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return stats
}

// withoutResult is the sample with other lines in the place of its result.
func withoutResult(lines ...string) []string {
	return append(slices.Clone(sample[:len(sample)-1]), lines...)
}

func TestStatsPreferWhatResultsSay(t *testing.T) {
	s := statsOf(t, traceOf(t, withoutResult(strings.Replace(askRead, `"output_tokens":2`, `"output_tokens":9`, 1),
		goodResult)...))
	want := `{"inputTokens":60,"outputTokens":40,"cacheReadInputTokens":5,"cacheCreationInputTokens":1,"totalCostUsd":0.25,"durationMs":1500,"durationLabel":"cumulative invocation time","resultEventTurns":3,"population":"result-event-sum","resultEventsPresent":true}`
	if got := asJSON(t, s.Totals); got != want {
		t.Errorf("totals %s, want %s", got, want)
	}
	if len(s.PerTurn) != 3 || s.PerTurn[0].OutputTokens != 9 {
		t.Errorf("rows %+v: want one for each message with the largest counters", s.PerTurn)
	}
	if s.Divergence != nil {
		t.Errorf("divergence %+v", s.Divergence)
	}
	row := `{"messageId":"m1","inputTokens":10,"outputTokens":9,"cacheReadInputTokens":5,"cacheCreationInputTokens":1,"outputIsStreamingSnapshot":true,"population":"api-message","source":null}`
	if got := asJSON(t, s.PerTurn[0]); got != row {
		t.Errorf("row %s, want %s", got, row)
	}
}

func TestStatsFallBackToMessages(t *testing.T) {
	s := statsOf(t, traceOf(t, sample[:7]...))
	want := `{"inputTokens":60,"outputTokens":9,"cacheReadInputTokens":5,"cacheCreationInputTokens":1,"outputIsStreamingSnapshot":true,"totalCostUsd":null,"durationMs":null,"resultEventTurns":null,"population":"per-message-fallback","resultEventsPresent":false}`
	if got := asJSON(t, s.Totals); got != want {
		t.Errorf("totals %s, want %s", got, want)
	}
}

func TestResultsWithoutUsageStillKnowTheCost(t *testing.T) {
	s := statsOf(t, traceOf(t, askRead,
		`{"type":"result","subtype":"success","total_cost_usd":1.5,"duration_ms":7,"num_turns":2}`))
	if s.Totals.TotalCostUSD == nil || *s.Totals.TotalCostUSD != 1.5 || s.Totals.InputTokens != 10 ||
		s.Totals.Population != fromMessages {
		t.Errorf("totals %s", asJSON(t, s.Totals))
	}
}

func TestADivergenceIsShownAndChangesNothing(t *testing.T) {
	s := statsOf(t, traceOf(t, askRead, goodResult))
	if s.Divergence == nil || *s.Divergence != (Divergence{"inputTokens", 10, 60}) || s.Totals.InputTokens != 60 {
		t.Errorf("divergence %+v, totals %+v", s.Divergence, s.Totals)
	}
}

func TestSharesOfToolsAddUpExactly(t *testing.T) {
	both := `{"type":"assistant","message":{"id":"m9","content":[{"type":"tool_use","id":"x","name":"Read"},{"type":"tool_use","id":"y","name":"Bash"},{"type":"tool_use","id":"z","name":"Grep"}],"usage":{"input_tokens":7,"output_tokens":1}}}`
	b, err := traceOf(t, withoutResult(both, both, goodResult)...).ByTool(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	var in, out, share float64
	for _, row := range b.PerTool {
		in, out, share = in+row.InputTokens, out+row.OutputTokens, share+row.CostShare
	}
	if in != 60 || out != 40 || share != 1 {
		t.Errorf("sums %v %v %v, want 60 40 1", in, out, share)
	}
	turns := map[string]int{}
	for _, row := range b.PerTool {
		turns[row.Tool] = row.Turns
	}
	if turns["Bash"] != 2 || turns[noTool] != 1 || turns["Grep"] != 1 {
		t.Errorf("turns by tool %v: a message that is streamed in pieces is one turn", turns)
	}
}

func TestOldDocumentsKeepTheirOwnFigures(t *testing.T) {
	doc := `{"version":"1.1.0","metadata":{},"turns":[{"index":0,"role":"assistant","content":[],"usage":{"inputTokens":4,"outputTokens":5}},{"index":1,"role":"assistant","content":[],"messageId":"m","usage":{"inputTokens":4}}],"summary":{"totalCostUsd":2,"durationMs":3,"tokenUsage":{"inputTokens":9}}}`
	s := statsOf(t, open(t, write(t, doc), Options{}))
	if got, want := asJSON(t, s.Totals), `{"inputTokens":9,"outputTokens":0,"cacheReadInputTokens":0,"cacheCreationInputTokens":0,"totalCostUsd":2,"durationMs":3,"population":"carried-document-summary"}`; got != want {
		t.Errorf("totals %s, want %s", got, want)
	}
	if len(s.PerTurn) != 2 || s.PerTurn[1].Population != populationTurn {
		t.Errorf("rows %+v", s.PerTurn)
	}
	for version, old := range map[string]bool{
		"": true, "0.9": true, "1.1.9": true, "1.2.0": false, "2": false,
		"1.x": true,
	} {
		t.Run(version, func(t *testing.T) {
			if got := preChange(&version); got != old {
				t.Errorf("version %q is old: %v, want %v", version, got, old)
			}
		})
	}
}

// jqTotals computes the totals of a trace from what is known about the processes that wrote it,
// with nothing of ours: usage is per result, and in the newer version by model, which includes the
// last reply at a limit; cost is cumulative per process in the older version and per conversation
// in the newer one.
func jqTotals(t *testing.T, files []string, conversation bool) (tokens [4]int64, cost float64) {
	t.Helper()
	jq := testenv.NeedTool(t, "jq")
	program := `
		[inputs | {file: input_filename, line: (try fromjson catch null)} | select((.line | type) == "object" and .line.type == "result")] as $all
		| ($all | map(.line | if .model_usage_since_last_result then .model_usage_since_last_result[]
			| {input_tokens: .inputTokens, output_tokens: .outputTokens,
			   cache_read_input_tokens: .cacheReadInputTokens, cache_creation_input_tokens: .cacheCreationInputTokens}
			else .usage end)) as $usage
		| ($all | group_by(.file) | map({first: .[0].file, cost: .[-1].line.total_cost_usd})) as $processes
		| [($usage | map(.input_tokens) | add), ($usage | map(.output_tokens) | add),
		   ($usage | map(.cache_read_input_tokens) | add), ($usage | map(.cache_creation_input_tokens) | add),
		   (if $conversation then ($processes | map(.cost) | max) else ($processes | map(.cost) | add) end)]
		| map(. // 0) | @tsv`
	args := append([]string{"-n", "-R", "-r", "--argjson", "conversation", strconv.FormatBool(conversation), program},
		files...)
	out, err := exec.Command(jq, args...).Output()
	if err != nil {
		t.Fatalf("jq: %v", err)
	}
	fields := strings.Fields(string(out))
	for i := range tokens {
		tokens[i], _ = strconv.ParseInt(fields[i], 10, 64)
	}
	cost, _ = strconv.ParseFloat(fields[4], 64)
	return tokens, cost
}

func TestTheNumbersAgree(t *testing.T) {
	recordings := func(folder string, names ...string) []string {
		var files []string
		for _, name := range names {
			files = append(files, filepath.Join("testdata", "transcripts", folder, name+".jsonl"))
		}
		return files
	}
	for _, test := range []struct {
		name         string
		files        []string
		conversation bool
	}{
		{"one process", recordings("stream-a", "a-happy"), false},
		{"a failure", recordings("stream-a", "b-tool-failure"), false},
		{"a limit", recordings("stream-a", "d-max-turns"), false},
		{"nothing but errors", recordings("stream-a", "c-529-always"), false},
		{"killed", recordings("stream-a", "e-killed"), false},
		{"several prompts, two models, one process", recordings("stream-a", "control-basic"), false},
		{"interrupted and continued", recordings("stream-a", "control-interrupt"), false},
		{"resumed, counted by process", recordings("stream-a", "g-resume-1", "g-resume-fork"), false},
		{
			"several processes of several prompts",
			recordings("stream-a", "control-interrupt", "control-basic", "a-happy"), false,
		},
		{
			"resumed and forked, counted by conversation",
			recordings("stream-b", "g-resume-1", "g-resume-2", "g-resume-fork"), true,
		},
		{"several prompts, newer version", recordings("stream-b", "control-basic"), true},
		{"budget", recordings("stream-b", "d-max-budget"), true},
		{"refused", recordings("stream-b", "c-refusal"), true},
	} {
		for _, wrapped := range []bool{false, true} {
			name := test.name + map[bool]string{true: ", in envelopes", false: ", bare"}[wrapped]
			t.Run(name, func(t *testing.T) {
				tokens, cost := jqTotals(t, test.files, test.conversation)
				trace := traceOf(t, combine(t, "agent", wrapped, test.files...)...)
				s := statsOf(t, trace)
				used := s.Totals.TokenUsage
				got := [4]int64{used.InputTokens, used.OutputTokens, used.CacheReadTokens, used.CacheWriteTokens}
				if s.Totals.Population == fromResults && got != tokens {
					t.Errorf("tokens %v, jq says %v", got, tokens)
				}
				if s.Totals.Population != fromResults && tokens != [4]int64{} {
					t.Errorf("no result was seen, but jq says %v", tokens)
				}
				c, err := trace.Cost(context.Background())
				if err != nil {
					t.Fatal(err)
				}
				total := 0.0
				if c.TotalUSD != nil {
					total = *c.TotalUSD
				}
				if math.Abs(total-cost) > 1e-12 || s.Totals.TotalCostUSD != nil &&
					math.Abs(*s.Totals.TotalCostUSD-cost) > 1e-12 {
					t.Errorf("cost %v and stats %v, jq says %v", total, s.Totals.TotalCostUSD, cost)
				}
			})
		}
	}
}

// combine reads recordings one after the other, in envelopes if wanted.
func combine(t testing.TB, lane string, wrapped bool, files ...string) []string {
	t.Helper()
	var lines []string
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(raw)) {
			if line = strings.TrimSpace(line); wrapped {
				line = enveloped(lane, len(lines), line)
			}
			lines = append(lines, line)
		}
	}
	return lines
}

func TestCostIsUnknownWithoutResults(t *testing.T) {
	c, err := traceOf(t, sample[:5]...).Cost(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if got := asJSON(t, c); got != `{"totalCostUsd":null,"bySource":{},"from":{},"unknown":["agent"]}` {
		t.Errorf("cost %s", got)
	}
	c, _ = traceOf(t, goodResult, enveloped("b", 1, goodResult),
		`{"type":"result","total_cost_usd":"7"}`).Cost(context.Background())
	if got := asJSON(t, c); got != `{"totalCostUsd":0.5,"bySource":{"agent":0.25,"b":0.25},"from":{"agent":"agent","b":"agent"}}` {
		t.Errorf("cost %s", got)
	}
}
