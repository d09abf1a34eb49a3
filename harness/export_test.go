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

// ParseDuration and ParseProfile are tested directly.
var ParseDuration = parseDuration

// ParsedProfile is what a profile says.
type ParsedProfile = profile

// Persona and Protocol are the two parts of a profile's body.
func (p profile) Persona() string  { return p.persona }
func (p profile) Protocol() string { return p.protocol }

// ParseProfile reads a profile from its text.
func ParseProfile(text string) (ParsedProfile, error) { return parseProfile("x.md", []byte(text)) }

// LoadProfile reads a profile from a directory.
var LoadProfile = loadProfile

// PromptText returns a built-in text.
var PromptText = promptText
