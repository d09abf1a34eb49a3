package tracecli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/fit-eval/fit/session"
)

// auditDialect reads the audit log of fit-selfedit as what it is a log of: a program that says what
// it writes, writes it, and hears what became of it. It stands here because selfedit, which
// decides over writes, knows nothing of sessions.
func auditDialect() session.Dialect {
	return session.Dialect{
		Name:  "selfedit-log",
		Agent: "selfedit",
		Recognise: func(event []byte) bool {
			return bytes.Contains(event, []byte(`"selfedit"`)) && parseAudit(event) != nil
		},
		New: func() session.Decoder { return &auditDecoder{} },
	}
}

// auditEntry is what a reader learns of one line of the log; the rest is in the arguments of
// the call.
type auditEntry struct {
	Type    string `json:"type"`
	Outcome string `json:"outcome"`
	Path    string `json:"path"`
	Bytes   int64  `json:"bytes"`
	Rule    string `json:"rule"`
	Branch  string `json:"branch"`
	Reason  string `json:"reason"`
}

func parseAudit(event []byte) *auditEntry {
	var entry auditEntry
	if json.Unmarshal(event, &entry) != nil || entry.Type != "selfedit" || entry.Path == "" {
		return nil
	}
	return &entry
}

// auditDecoder folds the two lines of a write, its beginning and its outcome, into one call.
type auditDecoder struct {
	writes int
	begun  string // path of the write whose outcome comes next
}

// Decode implements session.Decoder.
func (d *auditDecoder) Decode(event []byte, at session.Stamp, to *session.Fold) {
	entry := parseAudit(event)
	if entry == nil {
		to.ParseError()
		return
	}
	origin := session.Origin{Stamp: at}
	if entry.Outcome == "started" || d.begun != entry.Path { // older logs have the outcome alone
		d.writes++
		d.call(entry, event, origin, to)
	}
	d.begun = ""
	if entry.Outcome == "started" {
		d.begun = entry.Path
		return
	}
	content := entry.Outcome
	if entry.Reason != "" {
		content += ": " + entry.Reason
	}
	to.ToolResult(origin, session.Returned{
		CallID:  d.id(),
		IsError: entry.Outcome != "written",
		Content: content,
	})
}

func (d *auditDecoder) id() string { return "selfedit-" + strconv.Itoa(d.writes) }

func (d *auditDecoder) call(entry *auditEntry, event []byte, origin session.Origin, to *session.Fold) {
	to.Message(origin, "assistant",
		fmt.Sprintf("%s on %s by %s, %d bytes", entry.Path, entry.Branch, entry.Rule, entry.Bytes), "")
	to.ToolCall(origin, session.ToolUse{
		ID:        d.id(),
		Name:      "selfedit",
		Canonical: session.ToolWrite,
		Args:      event,
		Paths:     []string{entry.Path},
	})
}
