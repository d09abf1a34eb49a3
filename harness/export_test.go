package harness

// Untrace makes a session record nothing, to measure what recording costs.
func (f *Facilitator) Untrace() { f.loop.hub.trace = nil }

// Inbox takes what is queued for a participant, as it would be prompted.
func (d *Dispatcher) Inbox(name string) string { return inboxText(d.hub.state.bus.Take(name)) }

// BeginTurn puts a participant in a turn.
func (d *Dispatcher) BeginTurn(name string) {
	d.hub.mu.Lock()
	defer d.hub.mu.Unlock()
	d.hub.commit(turnStartEvent{Agent: name, Turn: d.hub.state.lastTurn + 1})
}

// ParseDuration is tested directly.
var ParseDuration = parseDuration
