// Package price turns tokens into dollars, or says that it cannot.
//
// A Table is keyed by the exact model id that a service reports, and every line says from which day
// it holds and where it is from. Nothing is guessed: an id that is not in the table, a date before
// its first line, or tokens of a kind without a price give an unknown cost (nil), never zero. The
// only names that stand for another are the table's own documented aliases; no suffix or prefix is
// ever cut off.
//
//	table := price.Default()
//	cost := table.Cost("claude-sonnet-4-5", time.Now().UnixMilli(), price.TokenUsage{InputTokens: 1200, OutputTokens: 300})
//
// The built-in table holds the vendors' list prices for standard processing, for long prompts too
// where they cost more. Discounts, batch or priority processing and taxes are not in it. A file of
// the same format (see Load) adds lines or replaces those of a model.
package price

import (
	_ "embed" // the built-in table
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/fit-eval/fit/internal/document"
)

// Line is the price of one model from one day on, in US dollars per million tokens. A nil price is
// unknown.
type Line struct {
	Model string `json:"model" yaml:"model" doc:"Exact id of the model." required:"true"`
	// From is in UTC. The line holds until the model's next one.
	From  string `json:"from" yaml:"from" doc:"First day that the price holds, YYYY-MM-DD." pattern:"^[0-9]{4}-[0-9]{2}-[0-9]{2}$" required:"true"`
	Rates `yaml:",inline"`
	// Long is nil if calls with a long prompt cost as much as others.
	Long   *Long  `json:"long,omitempty" yaml:"long" doc:"What a call costs whose prompt is long."`
	Source string `json:"source" yaml:"source" doc:"Who states this price." required:"true"`

	fromMs int64
}

// Rates are dollars per million tokens of each kind.
type Rates struct {
	Input          *float64 `json:"input" yaml:"input" doc:"Dollars per million uncached input tokens." min:"0" required:"true"`
	Output         *float64 `json:"output" yaml:"output" doc:"Dollars per million output tokens." min:"0" required:"true"`
	CacheRead      *float64 `json:"cache_read,omitempty" yaml:"cache_read" doc:"Dollars per million tokens read from the cache." min:"0"`
	CacheWrite     *float64 `json:"cache_write,omitempty" yaml:"cache_write" doc:"Dollars per million tokens written to the cache." min:"0"`
	CacheWriteLong *float64 `json:"cache_write_1h,omitempty" yaml:"cache_write_1h" doc:"The same for tokens kept for an hour." min:"0"`
}

// Long are the rates of calls whose prompt, cached tokens included, has more tokens than Above.
type Long struct {
	Above int64 `json:"above" yaml:"above" doc:"Longest prompt in tokens, cached ones included, that is not long." min:"1" required:"true"`
	Rates `yaml:",inline"`
}

// Table holds the prices of many models. The zero Table knows none.
type Table struct {
	lines   map[string][]Line // by model, oldest first
	aliases map[string]string
}

// File is the format of a price file.
type File struct {
	Prices  []Line            `json:"prices" yaml:"prices" doc:"Prices of models, each from one day on." required:"true"`
	Aliases map[string]string `json:"aliases" yaml:"aliases" doc:"Other names of models: alias to model."`
}

//go:embed prices.json
var builtin string

// Default returns the built-in table.
func Default() Table {
	table, err := Load(strings.NewReader(builtin))
	if err != nil {
		panic("built-in price table: " + err.Error()) // a test loads it
	}
	return table
}

// maxFileSize bounds a price file; the built-in one has a hundredth of it.
const maxFileSize = 4 << 20

// Load reads a price file:
//
//	{"prices":  [{"model": "my-model", "from": "2026-01-31", "input": 1.5, "output": 6, "cache_read": 0.15, "source": "contract of January"}],
//	 "aliases": {"my-model-latest": "my-model"}}
//
// Prices are US dollars per million tokens. A field that is unknown to the format is an error,
// because a misspelt price would be taken for an unknown one.
func Load(r io.Reader) (Table, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxFileSize+1))
	if err != nil {
		return Table{}, fmt.Errorf("read price file: %w", err)
	}
	if len(data) > maxFileSize {
		return Table{}, errors.New("price file is larger than 4 MiB")
	}
	var f File
	if err := document.DecodeJSON("price file", data, &f); err != nil {
		return Table{}, err
	}
	return f.Table()
}

// Table checks what a file says and returns it as a table.
func (f File) Table() (Table, error) {
	table := Table{lines: map[string][]Line{}, aliases: map[string]string{}}
	for i, line := range f.Prices {
		from, err := line.check()
		if err != nil {
			return Table{}, fmt.Errorf("price file: prices[%d]: %w", i, err)
		}
		line.fromMs = from
		table.lines[line.Model] = append(table.lines[line.Model], line)
	}
	for model, lines := range table.lines {
		slices.SortFunc(lines, func(a, b Line) int { return strings.Compare(a.From, b.From) })
		for i := 1; i < len(lines); i++ {
			if lines[i].From == lines[i-1].From {
				return Table{}, fmt.Errorf("price file: two prices of %q from %s", model, lines[i].From)
			}
		}
	}
	for alias, model := range f.Aliases {
		if alias == "" || model == "" || alias == model {
			return Table{}, fmt.Errorf("price file: alias %q of %q is empty or its own", alias, model)
		}
		table.aliases[alias] = model
	}
	return table, nil
}

func (l Line) check() (fromMs int64, err error) {
	switch {
	case l.Model == "":
		return 0, errors.New("model is missing")
	case l.Source == "":
		return 0, fmt.Errorf("%q: source is missing: say where the price is from", l.Model)
	case l.Long != nil && l.Long.Above <= 0:
		return 0, fmt.Errorf("%q: long: above must be a number of tokens, not %d", l.Model, l.Long.Above)
	}
	if err := l.Rates.check(); err != nil {
		return 0, fmt.Errorf("%q: %w", l.Model, err)
	}
	if l.Long != nil {
		if err := l.Long.check(); err != nil {
			return 0, fmt.Errorf("%q: long: %w", l.Model, err)
		}
	}
	day, err := time.Parse(time.DateOnly, l.From)
	if err != nil {
		return 0, fmt.Errorf("%q: from must be a day such as 2026-01-31, not %q", l.Model, l.From)
	}
	return day.UnixMilli(), nil
}

func (r Rates) check() error {
	if r.Input == nil || r.Output == nil {
		return errors.New("input and output are required")
	}
	for name, value := range map[string]*float64{
		"input": r.Input, "output": r.Output, "cache_read": r.CacheRead, "cache_write": r.CacheWrite,
		"cache_write_1h": r.CacheWriteLong,
	} {
		if value != nil && (*value < 0 || math.IsInf(*value, 0) || math.IsNaN(*value)) {
			return fmt.Errorf("%s must be 0 or more, not %v", name, *value)
		}
	}
	return nil
}

// With returns the table with the lines and aliases of another put over it: a model that the other
// one prices is priced by the other one alone, and is no longer an alias.
func (t Table) With(over Table) Table {
	merged := Table{lines: map[string][]Line{}, aliases: map[string]string{}}
	maps.Copy(merged.lines, t.lines)
	maps.Copy(merged.aliases, t.aliases)
	for model, lines := range over.lines {
		merged.lines[model] = lines
		delete(merged.aliases, model)
	}
	maps.Copy(merged.aliases, over.aliases)
	return merged
}

// Lookup returns the line that holds for a model at a time in epoch milliseconds.
func (t Table) Lookup(model string, atMs int64) (Line, bool) {
	lines, ok := t.lines[model]
	if !ok {
		lines = t.lines[t.aliases[model]]
	}
	for i := len(lines) - 1; i >= 0; i-- {
		if lines[i].fromMs <= atMs {
			return lines[i], true
		}
	}
	return Line{}, false
}

// Priced reports whether the table has a price for a model at a time, so that a dollar budget can
// be refused before anything is spent.
func (t Table) Priced(model string, atMs int64) bool {
	_, ok := t.Lookup(model, atMs)
	return ok
}

// Cost returns the price in US dollars of the tokens of a call at a time in epoch milliseconds, or
// nil where it is unknown: of several calls together too, if one of them may have had a prompt that
// costs more.
func (t Table) Cost(model string, atMs int64, tokens TokenUsage) *float64 {
	line, ok := t.Lookup(model, atMs)
	if !ok {
		return nil
	}
	rates := line.Rates
	if line.Long != nil && tokens.Prompt() > line.Long.Above {
		if tokens.Summed {
			return nil
		}
		rates = line.Long.Rates
	}
	short := tokens.CacheWriteTokens - tokens.CacheWriteLongTokens
	var sum float64
	for _, part := range []struct {
		tokens int64
		price  *float64
	}{
		{tokens.InputTokens, rates.Input},
		{tokens.OutputTokens, rates.Output},
		{tokens.CacheReadTokens, rates.CacheRead},
		{short, rates.CacheWrite},
		{tokens.CacheWriteLongTokens, rates.CacheWriteLong},
	} {
		switch {
		case part.tokens == 0:
		case part.tokens < 0 || part.price == nil:
			return nil
		default:
			sum += float64(part.tokens) * *part.price / 1e6
		}
	}
	return &sum
}

// Models lists the ids and aliases the table knows, sorted.
func (t Table) Models() []string {
	names := slices.Collect(maps.Keys(t.lines))
	names = slices.AppendSeq(names, maps.Keys(t.aliases))
	slices.Sort(names)
	return slices.Compact(names)
}
