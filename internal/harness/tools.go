package harness

import "encoding/json"

// The names of the tools.
const (
	toolAsk               = "Ask"
	toolAnswer            = "Answer"
	toolAnnounce          = "Announce"
	toolRollCall          = "RollCall"
	toolConclude          = "Conclude"
	toolRequestForComment = "RequestForComment"
	toolAcknowledge       = "Acknowledge"
	toolRecess            = "Recess"
	toolAdjourn           = "Adjourn"
	toolAdvisor           = "Advisor"
)

// ServerName is the name of the tool server for agents, so that a model sees
// mcp__orchestration__Ask.
const ServerName = "orchestration"

// Tool describes a tool for a transport that offers it to an agent.
type Tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"inputSchema"`
	// ReadOnlyHint is true for all tools: agents then run several calls of one turn at once. A tool
	// changes the session, never the workspace.
	ReadOnlyHint bool `json:"readOnlyHint"`
	// Slow marks tools whose calls take long enough that a transport should report progress.
	Slow bool `json:"-"`
}

// tools is the whole surface in one table. Which role has which tool is decided by surface.
var tools = map[string]Tool{
	toolAsk: {
		Description: "Put a question or a piece of work to another participant. Returns at once with the ids of the " +
			"asks; each answer reaches you later, in a coming " +
			"turn, as a line [answer#ID] name: text. Without \"to\" the question goes to your lead, or, if you lead, " +
			"to everybody else.",
		InputSchema: schema(`{
			"question": {"type": "string", "description": "What you want to know or to have done."},
			"to": {"type": "string", "description": "The participant to ask. Leave it out for the default."},
			"deadline": {"type": "string", "description": "Give up after this ISO-8601 duration, for example PT10M."}
		}`, "question"),
	},
	toolAnswer: {
		Description: "Answer an ask that reached you as [ask#ID] name: text. Quote the id. Without an id the one ask " +
			"you owe is answered; if you owe none or several, the " +
			"message goes to everybody, and the result says so.",
		InputSchema: schema(`{
			"message": {"type": "string", "description": "The answer."},
			"askId": {"type": "integer", "description": "The number of the ask, as in [ask#ID]."}
		}`, "message"),
	},
	toolAnnounce: {
		Description: "Tell everybody else something. Nobody is expected to answer, and no ask is settled by it.",
		InputSchema: schema(`{"message": {"type": "string", "description": "What everybody should know."}}`, "message"),
	},
	toolRollCall: {
		Description: "List who is in the session, with their roles.",
		InputSchema: schema(`{}`),
	},
	toolConclude: {
		Description: "End the session with a verdict. Refused the first time if asks are still open; called again, " +
			"it ends the session and cancels them. Nothing is accepted after it.",
		InputSchema: schema(`{
			"verdict": {"type": "string", "enum": ["success", "failure"], "description": "Whether the task was accomplished."},
			"summary": {"type": "string", "description": "What was done and why the verdict is what it is."}
		}`, "verdict", "summary"),
	},
	toolRequestForComment: {
		Description: "Queue a request to open a discussion thread elsewhere, for a question that will take longer " +
			"than this session. It does not ask anybody here.",
		InputSchema: schema(`{
			"channel": {"type": "string", "description": "Where the thread is to be opened."},
			"body": {"type": "string", "description": "What is to be discussed."},
			"addressees": {"type": "array", "items": {"type": "string"}, "description": "Whose comments are wanted."}
		}`, "channel", "body"),
	},
	toolAcknowledge: {
		Description: "Post a short message straight to the discussion thread: a status, or a word to a person who " +
			"wrote. It does not settle an ask.",
		InputSchema: schema(`{
			"message": {"type": "string", "description": "What to post."},
			"askId": {"type": "integer", "description": "The ask it is about, if any."}
		}`, "message"),
	},
	toolRecess: {
		Description: "Suspend the discussion until something outside happens. Only for waiting on people or time; " +
			"participants are waited for by ending the turn.",
		InputSchema: schema(`{
			"reason": {"type": "string", "description": "What is being waited for, and why."},
			"trigger": {
				"description": "What ends the recess.",
				"oneOf": [
					{"type": "object", "additionalProperties": false, "required": ["kind", "replies"], "properties": {
						"kind": {"const": "missing_input"}, "replies": {"type": "integer", "minimum": 1, "description": "How many messages from people to wait for."}}},
					{"type": "object", "additionalProperties": false, "required": ["kind", "signal"], "properties": {
						"kind": {"const": "escalation_needed"}, "signal": {"type": "string", "minLength": 1, "description": "Who or what has to step in."}}},
					{"type": "object", "additionalProperties": false, "required": ["kind", "elapsed"], "properties": {
						"kind": {"const": "elapsed"}, "elapsed": {"type": "string", "minLength": 1, "description": "An ISO-8601 duration, for example PT12H or P1DT6H."}}}
				]
			}
		}`, "reason", "trigger"),
	},
	toolAdjourn: {
		Description: "End the discussion with a verdict. Refused the first time if asks are open or people have " +
			"written something you have not seen; called again, it ends the session.",
		InputSchema: schema(`{
			"verdict": {"type": "string", "enum": ["adjourned", "failed"], "description": "Whether the discussion came to its end."},
			"summary": {"type": "string", "description": "What came out of it."},
			"outcome": {"type": "string", "description": "The decision in a few words, if there is one."}
		}`, "verdict", "summary"),
	},
	toolAdvisor: {
		Description: "Ask a stronger model for a second opinion. It sees your whole record so far, reads but changes " +
			"nothing, and answers in a few short paragraphs. Uses are limited for the whole session.",
		InputSchema: schema(`{"question": {"type": "string", "description": "What you want advice on."}}`, "question"),
		Slow:        true,
	},
}

// schema writes a JSON schema for an object with these properties.
func schema(properties string, required ...string) json.RawMessage {
	doc := map[string]any{"type": "object", "properties": json.RawMessage(properties)}
	if len(required) > 0 {
		doc["required"] = required
	}
	encoded, err := json.Marshal(doc)
	if err != nil {
		panic("harness: schema of a tool: " + err.Error()) // the table above is wrong, which any test shows
	}
	return encoded
}

// surface lists the tools of a member in the order they are offered.
func surface(mode Mode, lead, advisor bool) []string {
	switch {
	case mode == ModeJudge:
		return []string{toolConclude}
	case mode == modeRun && advisor:
		return []string{toolAdvisor}
	case mode == modeRun:
		return nil
	}
	names := []string{toolAsk, toolAnswer, toolAnnounce, toolRollCall}
	switch {
	case mode == ModeDiscuss && lead:
		names = append(names, toolAcknowledge, toolRecess, toolAdjourn)
	case mode == ModeDiscuss:
		names = append(names, toolRequestForComment, toolAcknowledge)
	case lead:
		names = append(names, toolConclude)
	case mode == ModeFacilitate:
		names = append(names, toolRequestForComment)
	}
	if advisor && !lead {
		names = append(names, toolAdvisor)
	}
	return names
}

// describe returns the tool as a member of this mode and role sees it.
func describe(name string, mode Mode, lead bool) Tool {
	tool := tools[name]
	tool.Name, tool.ReadOnlyHint = name, true
	switch {
	case name == toolAsk && mode == ModeSupervise:
		tool.InputSchema = without(tool.InputSchema, "to")
		tool.Description = "Put a question or a piece of work to the other side. Returns at once with the ids of the " +
			"asks; the answer reaches you later, in a coming turn, as a " +
			"line [answer#ID] name: text."
	case name == toolAcknowledge && lead:
		tool.InputSchema = without(tool.InputSchema, "askId")
	}
	return tool
}

// without returns a schema that lacks one property.
func without(document json.RawMessage, property string) json.RawMessage {
	var parsed struct {
		Type       string                     `json:"type"`
		Properties map[string]json.RawMessage `json:"properties"`
		Required   []string                   `json:"required,omitempty"`
	}
	if err := json.Unmarshal(document, &parsed); err != nil {
		panic("harness: schema of a tool: " + err.Error())
	}
	delete(parsed.Properties, property)
	encoded, _ := json.Marshal(parsed) // it was just decoded
	return encoded
}

// Participants lists the members of the session by name, the lead first.
func (d *Dispatcher) Participants() []string {
	names := make([]string, len(d.hub.state.order))
	for i, m := range d.hub.state.order {
		names[i] = m.name
	}
	return names
}

// ServerName returns the name under which the tools are offered. In a run there is no
// orchestration, only an advisor.
func (d *Dispatcher) ServerName() string {
	if d.hub.state.mode == modeRun {
		return advisorName
	}
	return ServerName
}

// Tools lists the tools of a participant, in order.
func (d *Dispatcher) Tools(participant string) []Tool {
	m := d.hub.state.members[participant]
	if m == nil {
		return nil
	}
	var list []Tool
	for _, name := range d.surface(m) {
		list = append(list, describe(name, d.hub.state.mode, m == d.hub.state.lead))
	}
	return list
}

func (d *Dispatcher) surface(m *member) []string {
	if m == d.hub.state.lead {
		return d.leadTools
	}
	return d.participantTools
}
