package harness

import (
	"cmp"
	"encoding/json"
	"os"

	"github.com/fit-eval/fit/internal/gateway"
	"github.com/fit-eval/fit/session"
	"github.com/fit-eval/fit/trace"
)

// cutRound holds what an interrupted round had consumed before the crash, according to the trace.
// No turn_end line has counted it.
type cutRound struct {
	tookMs  int64
	turns   int
	tokens  int64
	costUSD *float64
	// calls is what the agent did since the last round that its own record surely holds.
	calls []roundCall
}

// addTo counts it in the line that ends the round.
func (c *cutRound) addTo(e *turnEndEvent) {
	e.TookMs += c.tookMs
	if c.costUSD != nil && (e.CostUSD != nil || e.Tokens == 0) {
		sum := *c.costUSD
		if e.CostUSD != nil {
			sum += *e.CostUSD
		}
		e.CostUSD = &sum
	} else if c.tokens > 0 {
		e.CostUSD = nil // a part of it is not known
	}
	e.Tokens += c.tokens
	e.Steps += c.turns
	*c = cutRound{calls: c.calls}
}

// charge takes it from an account.
func (c *cutRound) charge(account *gateway.Account) {
	cost := 0.0
	if c.costUSD != nil {
		cost = *c.costUSD
	}
	account.Charge(cost, c.tokens)
}

// cutRounds reads from the lanes of a trace what members in a round have consumed beyond what is
// counted already, and what every member did last. What an agent did not print before the crash is
// unknown.
func cutRounds(path string, s *state, cfg ResumeConfig) (map[*member]cutRound, error) {
	var dialects session.Dialects
	members := map[string]*member{}
	for _, m := range s.order {
		if m.turns == 0 || m.gone != "" {
			continue
		}
		members[m.name] = m
		// otherwise it cannot be started either, and that is reported then
		if played, err := cfg.NewAgent(m.config); err == nil {
			dialects = append(dialects, played.Dialects()...)
		}
	}
	if len(members) == 0 {
		return nil, nil
	}
	return readLanes(path, members, dialects, session.Options{Prices: cfg.Options.Base.Prices, Flat: true})
}

// readLanes sums up the lanes of the last session in a trace.
func readLanes(path string, members map[string]*member, dialects session.Dialects,
	opts session.Options,
) (map[*member]cutRound, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	read := laneReading{
		members: members,
		tookMs:  map[string]int64{},
		calls:   map[string]*callLog{},
		settled: map[string]bool{},
	}
	for line, err := range trace.NewReader(file).All() {
		if err != nil {
			return nil, err
		}
		if line.Problem == nil {
			read.line(&line, dialects, opts)
		}
	}
	return read.cutRounds(opts.Prices), nil
}

// laneReading collects what the lines of a trace say about the members.
type laneReading struct {
	members map[string]*member
	lanes   map[string]*session.Enricher // nil before the session has started
	tookMs  map[string]int64
	calls   map[string]*callLog
	settled map[string]bool // as in member
	lastMs  int64
}

func (r *laneReading) line(line *trace.Line, dialects session.Dialects, opts session.Options) {
	kind := ""
	if line.Source == trace.Orchestrator {
		var e event
		kind, e = decodeEvent(line.Event, line.Seq)
		switch e := e.(type) {
		case startedEvent:
			r.lanes = map[string]*session.Enricher{}
		case turnStartEvent:
			r.tookMs[e.Agent] = 0
			if log := r.calls[e.Agent]; log != nil && r.settled[e.Agent] {
				log.calls = nil
			}
			r.settled[e.Agent] = false
		case turnEndEvent:
			r.settled[e.Agent] = settles(e.Outcome)
		case resumedEvent:
			clear(r.settled)
		}
	}
	about := line.Source
	if kind == trace.TypeModelCall { // takes precedence over the agent's own figures
		var call gateway.CallEvent
		_ = json.Unmarshal(line.Event, &call) // one that cannot be read names no member
		about = call.Agent
	}
	if r.members[about] != nil && r.lanes != nil {
		if r.lanes[about] == nil {
			log := &callLog{}
			opts.OnEvent = log.event
			r.calls[about] = log
			r.lanes[about] = &session.Enricher{Dialects: dialects, Options: opts}
		}
		r.lanes[about].Line(line.Raw, line.Number)
	}
	for name := range r.members {
		r.tookMs[name] += elapsedBetween(r.lastMs, line.Ts, kind).Milliseconds()
	}
	r.lastMs = line.Ts
}

// cutRounds returns what the rounds have consumed that is not accounted for yet.
func (r *laneReading) cutRounds(prices session.Prices) map[*member]cutRound {
	cut := map[*member]cutRound{}
	for name, m := range r.members {
		var c cutRound
		if log := r.calls[name]; log != nil {
			c.calls = log.calls
		}
		if m.round != nil {
			c.tookMs = r.tookMs[name]
		}
		if lane := r.lanes[name]; lane != nil && m.round != nil {
			for _, folded := range lane.Sessions() {
				c.turns = max(0, folded.Turns-m.usage.turns+m.consulted.turns)
				c.tokens = max(0, folded.Usage.TotalTokens-m.usage.tokens+m.consulted.tokens)
				if cost, known := costOf(folded, cmp.Or(folded.Model, m.config.Model), prices, r.lastMs); known {
					cost = max(0, cost-m.usage.costUSD+m.consulted.costUSD)
					c.costUSD = &cost
				}
			}
		}
		cut[m] = c
	}
	return cut
}

// costOf returns the cost of a lane: as the agent reports it, or by the prices, because an agent
// reports no cost before the end of a round.
func costOf(folded *session.EnrichedSession, model string, prices session.Prices, atMs int64) (float64, bool) {
	switch {
	case folded.Usage.CostUSD != nil:
		return *folded.Usage.CostUSD, true
	case prices == nil:
		return 0, false
	default:
		sum := folded.Usage
		sum.Summed = true
		return prices(model, sum, atMs)
	}
}
