package session

// turnCounter decides where the model's turns begin. A turn is one answer of the model with
// everything it says and calls in it; sub-agents count as part of the turn that called them.
type turnCounter struct {
	index       int    // of the current turn; 0 before the model has said anything
	messageID   []byte // of the current turn, where the stream has ids
	afterResult bool   // something came back to the model since it last spoke
}

func (t *turnCounter) begin() {
	t.index++
	t.messageID = t.messageID[:0]
	t.afterResult = false
}

// note notes an event of the model (active) or one that comes back to it.
func (t *turnCounter) note(active bool, o Origin) {
	if o.Parent != "" {
		return
	}
	if !active {
		t.afterResult = true
		return
	}
	switch {
	case o.MessageID != "" && len(t.messageID) > 0:
		if o.MessageID != string(t.messageID) {
			t.begin()
		}
	case t.index == 0 || t.afterResult:
		t.begin()
	}
	if o.MessageID != "" {
		t.messageID = refilled(t.messageID, o.MessageID)
	}
	t.afterResult = false
}
