package treatment

import (
	"strings"

	"github.com/fit-eval/fit/internal/gateway/calls"
	"github.com/fit-eval/fit/ledger"
)

// server grades a tool server: its tools are offered, or named to be asked for later.
func (g *grader) server(p *Piece) {
	p.Given = ledger.GivenAbsent
	for _, t := range g.request.tools {
		if isToolOf(t.name, p.Name) {
			p.Given, p.Where = ledger.GivenWhole, inTools
			p.Tokens += calls.EstimateTokens(len(t.definition))
		}
	}
	if p.Given == ledger.GivenWhole {
		return
	}
	for _, t := range g.request.texts {
		if !given(t.part) || !strings.Contains(t.text, deferredName(p.Name)) {
			continue
		}
		p.Given, p.Where = ledger.GivenName, t.part
		if t.part == inTools { // the description of a tool that calls others
			p.Given = ledger.GivenWhole
			return
		}
	}
}

// isToolOf reports whether a tool is one of a server's, by the names that agents make: as in
// mcp__server__tool, server_tool and mcp.server.tool.
func isToolOf(tool, server string) bool {
	tool, server = plainName(tool), plainName(server)
	tool = strings.TrimPrefix(tool, "mcp_")
	return tool == server || strings.HasPrefix(tool, server+"_")
}

// deferredName begins the names of a server's tools where a text names them.
func deferredName(server string) string { return "mcp__" + server + "__" }

// plainName returns a name with single underscores in place of everything but letters and digits.
func plainName(name string) string {
	return strings.Join(strings.FieldsFunc(name, func(c rune) bool { return !isWordRune(c) }), "_")
}
