package session

// Stamp says where and when a native event reached us.
type Stamp struct {
	Line int64  // the line of the file, counted from 1
	Ts   int64  // arrival in epoch milliseconds; 0 if unknown
	Lane string // the envelope's source
}

// Decoder turns the native events of one agent run into canonical ones. It holds the state that one
// run needs (which call ids are open, which usage was seen) and must never fail on input: what it
// does not understand it counts with Fold.Unknown or Fold.ParseError and continues.
type Decoder interface {
	// Decode reports to the fold what one native event means. The bytes are valid during the call
	// only.
	Decode(event []byte, at Stamp, to *Fold)
}

// Finisher is a Decoder that holds something back until a later event says what it means; Finish
// reports it when the input ends without that event.
type Finisher interface {
	Finish(to *Fold)
}

// Dialect is one native format: how to recognise it and how to decode it. The agents bring their
// own; code that reads files is given the list.
type Dialect struct {
	// Name is unique, for example "stream-json". It is the value of agent_start's protocol and of
	// EnrichedSession.Dialect.
	Name string
	// Agent is the registered agent that speaks it. A dialect of several agents names the default
	// one.
	Agent AgentID
	// Recognise reports whether an event belongs to this dialect. It sees events one at a time
	// until some dialect answers yes, so it must return false if it is not sure.
	Recognise func(event []byte) bool
	// New returns a decoder for one run.
	New func() Decoder
	// Repeats, if set, reports that a line only repeats what a later line carries whole; such lines
	// are dropped from traces and counted.
	Repeats func(line []byte) bool
	// BothSides says that the decoder also reads what was sent to the agent: lines of the form
	// {"dir":"out","msg":…}, and {"dir":"in","msg":…} for its output. In recordings of other
	// dialects only the agent's output is decoded.
	BothSides bool
	// Companions, if set, lists further files that belong to the session in a file of this dialect,
	// such as those of its sub-agents.
	Companions func(path string) []string
}

// Dialects is an ordered list of dialects; the first that recognises an event wins.
type Dialects []Dialect

// Of returns the dialect that recognises an event.
func (d Dialects) Of(event []byte) (Dialect, bool) {
	for _, dialect := range d {
		if dialect.Recognise(event) {
			return dialect, true
		}
	}
	return Dialect{}, false
}

// Named returns the dialect of a name.
func (d Dialects) Named(name string) (Dialect, bool) {
	for _, dialect := range d {
		if dialect.Name == name {
			return dialect, true
		}
	}
	return Dialect{}, false
}
