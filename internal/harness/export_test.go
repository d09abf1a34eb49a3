package harness

import "github.com/fit-eval/fit/trace"

// Inbox takes what is queued for a participant, as it would be prompted: it has seen it then.
func (d *Dispatcher) Inbox(name string) string {
	d.hub.mu.Lock()
	defer d.hub.mu.Unlock()
	batch := d.hub.state.take(d.hub.state.members[name])
	for _, m := range batch {
		if a := d.hub.state.asks[m.AskID]; m.Kind == KindAsk && a != nil {
			a.delivered = true
		}
	}
	return inboxText(batch)
}

// BeginTurn puts a participant in a turn.
func (d *Dispatcher) BeginTurn(name string) {
	d.hub.mu.Lock()
	defer d.hub.mu.Unlock()
	d.hub.commit(turnStartEvent{Type: trace.TypeTurnStart, Agent: name, Turn: d.hub.state.lastRound + 1})
}

// ParseDuration is tested directly.
var ParseDuration = parseDuration

// Rebuild makes the state again that a session had by its trace, as Resume does.
func Rebuild(path string, cfg ResumeConfig) error {
	p, err := readPast(path)
	if err != nil {
		return err
	}
	_, err = p.rebuild(path, cfg, nil)
	return err
}
