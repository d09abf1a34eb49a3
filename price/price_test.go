package price_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/fit-eval/fit/price"
)

func day(t *testing.T, date string) int64 {
	t.Helper()
	at, err := time.Parse(time.DateOnly, date)
	if err != nil {
		t.Fatal(err)
	}
	return at.UnixMilli()
}

func load(t *testing.T, text string) price.Table {
	t.Helper()
	table, err := price.Load(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func wantCost(t *testing.T, got *float64, want float64) {
	t.Helper()
	if got == nil {
		t.Fatalf("cost is unknown, want %v", want)
	}
	if math.Abs(*got-want) > 1e-12 {
		t.Errorf("cost is %v, want %v", *got, want)
	}
}

func TestCostAddsUpEverySortOfToken(t *testing.T) {
	at := day(t, "2026-02-01")
	tokens := price.TokenUsage{
		InputTokens: 1_000_000, OutputTokens: 100_000, CacheReadTokens: 2_000_000, CacheWriteTokens: 300_000,
		CacheWriteLongTokens: 100_000,
	}
	// 3.00 + 1.50 + 0.60 + 200k × 3.75/M + 100k × 6/M
	wantCost(t, price.Default().Cost("claude-sonnet-4-5-20250929", at, tokens), 3+1.5+0.6+0.75+0.6)
}

func TestADocumentedAliasIsPricedLikeItsModel(t *testing.T) {
	at := day(t, "2026-02-01")
	tokens := price.TokenUsage{InputTokens: 1000, OutputTokens: 1000}
	wantCost(t, price.Default().Cost("claude-sonnet-4-5", at, tokens), 0.018)
}

func TestWhatIsNotInTheTableIsUnknownAndNotFree(t *testing.T) {
	table := price.Default()
	at := day(t, "2026-02-01")
	for name, cost := range map[string]*float64{
		"unknown model":               table.Cost("no-such-model", at, price.TokenUsage{InputTokens: 1}),
		"unknown model, nothing used": table.Cost("no-such-model", at, price.TokenUsage{}),
		"a suffix that is not an alias": table.Cost("claude-sonnet-4-5-20250929[1m]", at,
			price.TokenUsage{InputTokens: 1}),
		"a prefix that is not an alias": table.Cost("anthropic/claude-sonnet-4-5-20250929", at,
			price.TokenUsage{InputTokens: 1}),
		"before the model existed": table.Cost("claude-sonnet-4-5", day(t, "2024-01-01"),
			price.TokenUsage{InputTokens: 1}),
		"a sort of token with no price": table.Cost("gpt-5", at, price.TokenUsage{InputTokens: 1, CacheWriteTokens: 1}),
		"more long writes than writes": table.Cost("claude-sonnet-4-5", at,
			price.TokenUsage{CacheWriteTokens: 1, CacheWriteLongTokens: 2}),
		"the zero table":                 price.Table{}.Cost("gpt-5", at, price.TokenUsage{InputTokens: 1}),
		"a negative figure":              table.Cost("gpt-5", at, price.TokenUsage{InputTokens: -1}),
		"an alias of nothing in a table": load(t, `{"aliases":{"a":"b"}}`).Cost("a", at, price.TokenUsage{}),
	} {
		t.Run(name, func(t *testing.T) {
			if cost != nil {
				t.Errorf("%s: cost is %v, want unknown", name, *cost)
			}
		})
	}
}

func TestAPriceHoldsFromItsDayOn(t *testing.T) {
	table := price.Default()
	million := price.TokenUsage{InputTokens: 1_000_000}
	wantCost(t, table.Cost("o3", day(t, "2025-06-10")-1, million), 10)
	wantCost(t, table.Cost("o3", day(t, "2025-06-10"), million), 2)
}

func TestAFileOverridesModelByModel(t *testing.T) {
	at := day(t, "2026-02-01")
	over := load(t, `{"prices":[
		{"model":"gpt-5","from":"2026-01-01","input":1,"output":2,"source":"our contract"},
		{"model":"gpt-4o","from":"2026-01-01","input":9,"output":9,"source":"our contract"},
		{"model":"local","from":"2020-01-01","input":0,"output":0,"source":"our own machine"}],
		"aliases":{"house":"gpt-5"}}`)
	table := price.Default().With(over)
	million := price.TokenUsage{InputTokens: 1_000_000}
	wantCost(t, table.Cost("gpt-5", at, million), 1)
	wantCost(t, table.Cost("house", at, million), 1)
	wantCost(t, table.Cost("gpt-4o", at, million), 9) // was an alias
	wantCost(t, table.Cost("local", at, million), 0)  // free because somebody says so
	wantCost(t, table.Cost("gpt-5-mini", at, million), 0.25)
	if table.Priced("gpt-5", day(t, "2025-12-31")) {
		t.Error("the built-in line shines through before the override's first day")
	}
}

func TestEveryBuiltInLineNamesItsSource(t *testing.T) {
	table := price.Default()
	models := table.Models()
	if len(models) < 10 {
		t.Fatalf("only %d models", len(models))
	}
	for _, model := range models {
		line, ok := table.Lookup(model, day(t, "2026-06-01"))
		if !ok || line.Source == "" || *line.Output < *line.Input {
			t.Errorf("%s: line %+v", model, line)
		}
	}
}

func TestMistakesInAPriceFileAreNamed(t *testing.T) {
	for text, want := range map[string]string{
		`{`: "the document ends too early",
		`{"prices":[{"from":"2026-01-01","input":1,"output":1,"source":"s"}]}`:                                                                                 "prices[0]: model is missing",
		`{"prices":[{"model":"m","from":"2026-01-01","input":1,"source":"s"}]}`:                                                                                "input and output are required",
		`{"prices":[{"model":"m","from":"2026-01-01","input":1,"output":1}]}`:                                                                                  "source is missing",
		`{"prices":[{"model":"m","from":"January","input":1,"output":1,"source":"s"}]}`:                                                                        `from must be a day`,
		`{"prices":[{"model":"m","from":"2026-01-01","input":-1,"output":1,"source":"s"}]}`:                                                                    "must be 0 or more",
		`{"prices":[{"model":"m","from":"2026-01-01","inptu":1,"output":1,"source":"s"}]}`:                                                                     `there is no field "inptu"`,
		`{"prices":[{"model":"m","from":"2026-01-01","input":1,"output":1,"source":"s"},{"model":"m","from":"2026-01-01","input":1,"output":1,"source":"s"}]}`: `two prices of "m"`,
		`{"aliases":{"a":"a"}}`: "its own",
		`{} {}`:                 "something after the end",
	} {
		t.Run(text, func(t *testing.T) {
			_, err := price.Load(strings.NewReader(text))
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("Load(%s): %v, want %q", text, err, want)
			}
		})
	}
}

func FuzzLoad(f *testing.F) {
	f.Add(`{"prices":[{"model":"m","from":"2026-01-01","input":1,"output":1,"source":"s"}],"aliases":{"a":"m"}}`)
	f.Fuzz(func(t *testing.T, text string) {
		table, err := price.Load(strings.NewReader(text))
		if err != nil {
			return
		}
		for _, model := range table.Models() {
			cost := table.Cost(model, math.MaxInt64, price.TokenUsage{InputTokens: 1, OutputTokens: 1})
			if cost != nil && (*cost < 0 || math.IsNaN(*cost)) {
				t.Errorf("%s costs %v", model, *cost)
			}
		}
	})
}

// TestLongPromptsCostMore: a call whose prompt is longer than the vendor's limit has the prices of
// long prompts for all of its tokens; of several calls together nobody knows.
func TestLongPromptsCostMore(t *testing.T) {
	t.Parallel()
	table, err := price.Load(strings.NewReader(`{"prices": [{"model": "m", "from": "2026-01-01", "input": 2, "output": 10,
		"cache_read": 1, "long": {"above": 200000, "input": 4, "output": 15, "cache_read": 2}, "source": "test"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC).UnixMilli()
	for name, test := range map[string]struct {
		tokens price.TokenUsage
		want   *float64
	}{
		"at the limit":   {price.TokenUsage{InputTokens: 100_000, CacheReadTokens: 100_000}, new(0.3)},
		"above it":       {price.TokenUsage{InputTokens: 100_001, CacheReadTokens: 100_000}, new(0.600004)},
		"many calls":     {price.TokenUsage{InputTokens: 300_000, Summed: true}, nil},
		"few small ones": {price.TokenUsage{InputTokens: 100_000, Summed: true}, new(0.2)},
	} {
		t.Run(name, func(t *testing.T) {
			got := table.Cost("m", at, test.tokens)
			if (got == nil) != (test.want == nil) || got != nil && math.Abs(*got-*test.want) > 1e-12 {
				t.Errorf("%s: %v, want %v", name, display(got), display(test.want))
			}
		})
	}
}

func display(cost *float64) string {
	if cost == nil {
		return "unknown"
	}
	return fmt.Sprint(*cost)
}
