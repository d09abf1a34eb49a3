package pi

import "bytes"

// The program says everything several times, so most of its bytes need not be parsed. The shortcuts
// here know how it writes; lines that are written in another way are understood as well, only
// slower.

// silent are the events that say nothing which others do not.
var silent = map[string]bool{
	"turn_start": true, "turn_end": true, "message_start": true, "message_update": true, "tool_execution_update": true,
}

var (
	typePrefix   = []byte(`{"type":"`)
	endPrefix    = []byte(`{"type":"agent_end",`)
	startPrefix  = []byte(`{"type":"tool_execution_start","toolCallId":"`)
	resultPrefix = []byte(`{"type":"message_end","message":{"role":"toolResult","toolCallId":"`)
)

// complete reports whether a line begins as it should and has not lost its end.
func complete(event, prefix []byte) bool {
	return bytes.HasPrefix(event, prefix) && event[len(event)-1] == '}'
}

// word returns what stands between a prefix and the next quotation mark; nil if it is not plain.
func word(event, prefix []byte) []byte {
	rest := event[len(prefix):]
	end := bytes.IndexByte(rest, '"')
	if end < 0 || bytes.IndexByte(rest[:end], '\\') >= 0 {
		return nil
	}
	return rest[:end]
}

func tellsNothing(event []byte) bool {
	return complete(event, typePrefix) && silent[string(word(event, typePrefix))]
}

// repeated finds the second event about a call or a result that was reported already.
func (d *decoder) repeated(event []byte) bool {
	switch {
	case complete(event, startPrefix):
		return d.told.known(word(event, startPrefix)) != 0
	case complete(event, resultPrefix):
		return d.told.known(word(event, resultPrefix)) == returned
	}
	return false
}

// known is how far the call of an id has been told; ids that cannot be compared are not known.
func (l *callLog) known(id []byte) callState {
	if len(id) == 0 {
		return 0
	}
	if state := l.recent[string(id)]; state != nil {
		return *state
	}
	if state := l.older[string(id)]; state != nil {
		return *state
	}
	return 0
}
