package acp

import (
	"cmp"
	"slices"
	"strings"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/internal/jsontape"
	"github.com/fit-eval/fit/session"
)

// permission is the decision about one request.
type permission struct {
	CallID   string `json:"toolCallId,omitempty"`
	Tool     string `json:"tool,omitempty"` // as the lists of tools name it
	Title    string `json:"title,omitempty"`
	Decision string `json:"decision"`
	Reason   string `json:"reason"`
}

// The decisions.
const (
	decisionAllow  = "allow"
	decisionReject = "reject"
	decisionCancel = "cancelled"
)

// maxTitle is how much of a title, which may be a whole command, is repeated.
const maxTitle = 200

// permit answers a request for permission, at once: the caller's lists decide. While the prompt is
// being cancelled nothing is allowed.
func (c *conversation) permit(reply message, params jsontape.Value) error {
	call := params.Get("toolCall")
	p := permission{
		CallID: strings.Clone(call.TextOf("toolCallId")),
		Tool:   c.toolOf(call),
		Title:  strings.Clone(display.CutBytes(call.TextOf("title"), maxTitle)),
	}
	switch {
	case c.cancelled():
		p.Decision, p.Reason = decisionCancel, "the prompt is being cancelled"
	default:
		p.Decision, p.Reason = c.decide(p.Tool, strings.Clone(call.TextOf("kind")))
	}
	option := chooseOption(params.Get("options"), p.Decision)
	if option == "" && p.Decision != decisionCancel {
		p.Decision, p.Reason = decisionCancel, "the agent offers no such option"
	}
	outcome := object{"outcome": "cancelled"}
	if option != "" {
		outcome = object{"outcome": "selected", "optionId": option}
	}
	reply.Result = object{"outcome": outcome}
	return c.send(note{Permission: &p, Msg: reply})
}

// toolOf returns the tool's own name, if the agent sends it.
func (c *conversation) toolOf(call jsontape.Value) string {
	c.toolsMu.Lock()
	defer c.toolsMu.Unlock()
	return cmp.Or(c.tools.Get(call.TextOf("toolCallId")), strings.Clone(toolName(c.entry.ToolName, call)))
}

// named remembers a tool's own name, which only the first message about a call has in some agents.
func (c *conversation) named(update jsontape.Value) {
	id, name := update.TextOf("toolCallId"), toolName(c.entry.ToolName, update)
	if id == "" || name == "" {
		return
	}
	c.toolsMu.Lock()
	defer c.toolsMu.Unlock()
	if c.tools.Get(id) == "" {
		c.tools.Set(id, strings.Clone(name))
	}
}

// decide applies the caller's lists. They name tools as the agent does, or by their purpose.
func (c *conversation) decide(tool, kind string) (decision, reason string) {
	if !c.setup.restricted {
		return decisionAllow, "everything is allowed"
	}
	canonical, attached := canonicalTool(tool, kind), c.attached(tool)
	if attached {
		canonical = session.ToolOther // some agents report every tool of a server as a command
	}
	switch {
	case matches(c.cfg.DisallowedTools, tool, canonical):
		return decisionReject, "the tool is disallowed"
	case attached:
		return decisionAllow, "the tool is of a server that the caller has attached"
	case len(c.cfg.AllowedTools) > 0 && !matches(c.cfg.AllowedTools, tool, canonical):
		return decisionReject, "the tool is not among the allowed ones"
	}
	return decisionAllow, "the tool is allowed"
}

// attached reports whether a tool is one of the servers that the caller has attached. Lists of
// allowed tools are about the agent's own.
func (c *conversation) attached(tool string) bool {
	return slices.ContainsFunc(c.cfg.MCPServers, func(server agent.MCPServer) bool {
		return mcpTool("mcp__"+server.Name, tool)
	})
}

// mcpTool reports whether a name of the form mcp__server__tool means a tool that the agent calls
// server_tool, server-tool or the like.
func mcpTool(name, tool string) bool {
	rest, found := strings.CutPrefix(name, "mcp__")
	if !found {
		return false
	}
	server, own, named := strings.Cut(rest, "__")
	tool = strings.TrimPrefix(strings.TrimPrefix(tool, "mcp__"), "mcp_")
	after, found := strings.CutPrefix(tool, server)
	return found && (!named || strings.TrimLeft(after, "_-") == own)
}

// chooseOption picks the first option of the kind that means a decision. Kinds may repeat, and ids
// and places mean nothing.
func chooseOption(options jsontape.Value, decision string) string {
	kinds := []string{"allow_once", "allow_always"}
	switch decision {
	case decisionReject:
		kinds = []string{"reject_once", "reject_always"}
	case decisionCancel:
		return ""
	}
	for _, kind := range kinds {
		for option := range options.Elements() {
			if option.TextOf("kind") == kind {
				return strings.Clone(option.TextOf("optionId"))
			}
		}
	}
	return ""
}
