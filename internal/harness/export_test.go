package harness

import "github.com/fit-eval/fit/trace"

// Inbox takes what is queued for a participant, as it would be prompted.
func (d *Dispatcher) Inbox(name string) string {
	d.hub.mu.Lock()
	defer d.hub.mu.Unlock()
	return inboxText(d.hub.state.take(d.hub.state.members[name]))
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
