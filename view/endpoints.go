package view

// endpoints are the answers of the server, by the patterns of their addresses.
func (s *Server) endpoints() map[string]endpoint {
	return map[string]endpoint{
		"GET /api/experiments":                              s.experiments,
		"GET /api/experiments/{x}":                          s.experiment,
		"GET /api/experiments/{x}/cells":                    s.cells,
		"GET /api/experiments/{x}/cells/{task}/{arm}/{run}": s.ask(s.cell),
		"POST /api/experiments/{x}/ctl":                     s.steer,
		"GET /api/experiments/{x}/forest":                   s.forest,
		"GET /api/experiments/{x}/plan":                     s.plan,
		"GET /api/experiments/{x}/versus":                   s.ask(s.versusReport),
		"GET /api/experiments/{x}/versus/show/{task}/{run}": s.ask(s.versusShow),
		"GET /api/experiments/{x}/labels":                   s.ask(s.labels),
		"POST /api/experiments/{x}/labels":                  s.ask(s.label),
		"GET /api/trace/overview":                           s.ask(s.traceOverview),
		"GET /api/trace/page":                               s.ask(s.tracePage),
		"GET /api/trace/entry":                              s.ask(s.traceEntry),
		"GET /api/trace/entries":                            s.ask(s.traceEntries),
		"GET /api/trace/find":                               s.ask(s.traceFind),
		"GET /api/trace/lanes":                              s.ask(s.traceLanes),
		"GET /api/trace/messages":                           s.ask(s.traceMessages),
		"GET /api/trace/align":                              s.ask(s.traceAlign),
		"GET /api/trace/calls":                              s.ask(s.traceCalls),
		"GET /api/trace/prompts":                            s.ask(s.tracePrompts),
		"GET /api/trace/markdown":                           s.ask(s.traceMarkdown),
		"GET /api/trace/image":                              s.ask(s.traceImage),
	}
}
