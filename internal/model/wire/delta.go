package wire

// DeltaKind says what a Delta adds to.
type DeltaKind int

// The kinds of deltas.
const (
	DeltaText      DeltaKind = iota + 1 // Text continues the reply's text
	DeltaThinking                       // Text continues the model's visible reasoning
	DeltaToolStart                      // a tool call begins; ID and Name are set
	DeltaToolInput                      // Text continues the input of a tool call
)

// Delta is a piece of a reply, the same for all protocols, as an accumulator saw it arrive.
type Delta struct {
	Kind DeltaKind
	// Index distinguishes the blocks of one reply.
	Index int
	Text  string
	ID    string
	Name  string
}
