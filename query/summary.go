package query

import (
	"encoding/json"
	"slices"
	"strconv"
)

// Summary is what the result events of a trace add up to.
type Summary struct {
	Result  string `json:"result"`
	IsError bool   `json:"isError"`
	// TotalCostUSD is nil if an agent used tokens whose price nobody knows.
	TotalCostUSD *float64    `json:"totalCostUsd"`
	DurationMs   int64       `json:"durationMs"`
	NumTurns     int64       `json:"numTurns"`
	TokenUsage   *Tokens     `json:"tokenUsage"`
	ModelUsage   *ModelUsage `json:"modelUsage"`
}

// resultEvent is one result of the stream dialect.
type resultEvent struct {
	subtype    string
	isError    bool
	cost       *float64
	durationMs int64
	turns      int64
	usage      *Tokens
	models     *ModelUsage
}

func parseResult(raw []byte) resultEvent {
	r := resultEvent{subtype: memberText(raw, "subtype"), isError: string(memberOf(raw, "is_error")) == "true"}
	if r.subtype == "" {
		r.subtype = "unknown"
	}
	r.cost = parseFloat(memberOf(raw, "total_cost_usd"))
	r.durationMs = parseInt(memberOf(raw, "duration_ms"))
	r.turns = parseInt(memberOf(raw, "num_turns"))
	if usage := memberOf(raw, "usage"); len(usage) > 0 && usage[0] == '{' {
		r.usage = &Tokens{}
		s := scanner{b: usage}
		s.tokens(r.usage)
	}
	if models := memberOf(raw, "modelUsage"); len(models) > 0 && models[0] == '{' {
		r.models = parseModelUsage(models)
	}
	return r
}

// parseFloat reads a number, nil for anything else.
func parseFloat(raw []byte) *float64 {
	if len(raw) == 0 || raw[0] != '-' && !isDigit(raw[0]) {
		return nil
	}
	f, err := strconv.ParseFloat(string(raw), 64)
	if err != nil {
		return nil
	}
	return &f
}

// results adds up the result events of all lanes.
//
// What an agent's result says is of two kinds: its usage is that of this invocation, while its cost
// and its usage by model are those of the whole process or even of the whole conversation,
// invocation after invocation (it depends on the agent's version). Adding up the latter would count
// the early invocations again and again. Which of the two it is shows in the figures themselves: if
// the usage by model grew by at least what this invocation used, it was carried on; otherwise the
// counter began anew.
type results struct {
	seen    bool
	summary Summary
	cost    float64
	priced  bool // some cost is known
	unknown bool // some cost is not
	lanes   map[string]*laneResults
}

type laneResults struct {
	lastCost   float64
	lastModels *ModelUsage
	cost       float64
	priced     bool
	unpriced   bool
}

func newResults() *results { return &results{lanes: map[string]*laneResults{}} }

func (r *results) lane(name string) *laneResults {
	if r.lanes[name] == nil {
		r.lanes[name] = &laneResults{}
	}
	return r.lanes[name]
}

// add folds one result event of a lane.
func (r *results) add(lane string, e resultEvent) {
	l := r.lane(lane)
	before, beforeCost := l.lastModels, l.lastCost
	if !carriedOn(e, before, beforeCost) {
		before, beforeCost = nil, 0
	}
	if e.cost != nil {
		r.book(l, *e.cost-beforeCost)
		l.lastCost = *e.cost
	}
	if e.models != nil {
		if r.summary.ModelUsage == nil {
			r.summary.ModelUsage = &ModelUsage{}
		}
		r.summary.ModelUsage.add(e.models, before)
		l.lastModels = e.models
	}
	r.fold(e)
}

func (r *results) book(l *laneResults, cost float64) {
	l.cost, l.priced = l.cost+cost, true
	r.cost, r.priced = r.cost+cost, true
}

func (r *results) fold(e resultEvent) {
	r.seen = true
	s := &r.summary
	s.Result, s.IsError = e.subtype, s.IsError || e.isError
	s.DurationMs += e.durationMs
	s.NumTurns += e.turns
	if e.usage != nil {
		if s.TokenUsage == nil {
			s.TokenUsage = &Tokens{}
		}
		*s.TokenUsage = s.TokenUsage.Plus(*e.usage)
	}
}

// carriedOn reports whether the cumulative figures of a result include those of the result before
// it.
func carriedOn(e resultEvent, before *ModelUsage, beforeCost float64) bool {
	if before == nil || e.models == nil || e.usage == nil || e.cost == nil || *e.cost < beforeCost {
		return false
	}
	grown := e.models.tokens().Total() - before.tokens().Total()
	return grown >= e.usage.Total() && e.models.covers(before)
}

// total closes the sum.
func (r *results) total() Summary {
	s := r.summary
	if s.Result == "" {
		s.Result = "unknown"
	}
	if !r.unknown {
		cost := r.cost
		s.TotalCostUSD = &cost
	}
	return s
}

// ModelUsage is usage by model, in the order in which models appeared. Counters are added up;
// everything else keeps the value it had first.
type ModelUsage struct{ models []modelEntry }

type modelEntry struct {
	name    string
	members []usageMember
}

type usageMember struct {
	key   string
	value float64
	raw   json.RawMessage // of what is not a counter
}

// additive are the members of a model's usage that add up.
var additive = []string{"inputTokens", "outputTokens", "cacheReadInputTokens", "cacheCreationInputTokens", "costUSD",
	"webSearchRequests"}

func parseModelUsage(raw []byte) *ModelUsage {
	usage := &ModelUsage{}
	p := printer{scanner: scanner{b: raw}}
	for _, m := range p.members() {
		inner := printer{scanner: scanner{b: m.value.of(raw)}}
		entry := modelEntry{name: m.key}
		if inner.at('{') {
			entry.members = inner.usageMembers()
		}
		usage.models = append(usage.models, entry)
	}
	return usage
}

func (p *printer) usageMembers() []usageMember {
	var members []usageMember
	for _, m := range p.members() {
		value := m.value.of(p.b)
		counter := parseFloat(value)
		if counter != nil && slices.Contains(additive, m.key) {
			members = append(members, usageMember{key: m.key, value: *counter})
			continue
		}
		members = append(members, usageMember{key: m.key, raw: cloneRaw(value)})
	}
	return members
}

func (u *ModelUsage) entry(name string) *modelEntry {
	for i := range u.models {
		if u.models[i].name == name {
			return &u.models[i]
		}
	}
	u.models = append(u.models, modelEntry{name: name})
	return &u.models[len(u.models)-1]
}

func (u *ModelUsage) find(name string) *modelEntry {
	for i := range u.models {
		if u.models[i].name == name {
			return &u.models[i]
		}
	}
	return nil
}

func (e *modelEntry) member(key string) *usageMember {
	if e == nil {
		return nil
	}
	for i := range e.members {
		if e.members[i].key == key {
			return &e.members[i]
		}
	}
	return nil
}

func (e *modelEntry) count(key string) float64 {
	if m := e.member(key); m != nil {
		return m.value
	}
	return 0
}

// add adds what is new in now since before.
func (u *ModelUsage) add(now, before *ModelUsage) {
	for _, model := range now.models {
		entry := u.entry(model.name)
		var earlier *modelEntry
		if before != nil {
			earlier = before.find(model.name)
		}
		for _, m := range model.members {
			have := entry.member(m.key)
			switch {
			case have == nil && m.raw != nil:
				entry.members = append(entry.members, m)
			case have == nil:
				entry.members = append(entry.members, usageMember{key: m.key, value: m.value - earlier.count(m.key)})
			case m.raw == nil && have.raw == nil:
				have.value += m.value - earlier.count(m.key)
			}
		}
	}
}

func (u *ModelUsage) tokens() Tokens {
	var sum Tokens
	for i := range u.models {
		e := &u.models[i]
		sum = sum.Plus(Tokens{
			int64(e.count("inputTokens")), int64(e.count("outputTokens")),
			int64(e.count("cacheReadInputTokens")), int64(e.count("cacheCreationInputTokens")),
		})
	}
	return sum
}

// covers reports whether no counter is smaller than it was.
func (u *ModelUsage) covers(before *ModelUsage) bool {
	for i := range before.models {
		now := u.find(before.models[i].name)
		for _, key := range additive[:4] {
			if before.models[i].count(key) > now.count(key) {
				return false
			}
		}
	}
	return true
}

// MarshalJSON writes the models in order.
func (u *ModelUsage) MarshalJSON() ([]byte, error) {
	dst := []byte{'{'}
	for i, model := range u.models {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(appendString(dst, model.name), ':', '{')
		for j, m := range model.members {
			if j > 0 {
				dst = append(dst, ',')
			}
			dst = append(appendString(dst, m.key), ':')
			if m.raw != nil {
				dst = append(dst, m.raw...)
			} else {
				dst = appendNumber(dst, m.value)
			}
		}
		dst = append(dst, '}')
	}
	return append(dst, '}'), nil
}
