package harness

// Untrace makes a session record nothing, to measure what recording costs.
func (f *Facilitator) Untrace() { f.loop.hub.trace = nil }
