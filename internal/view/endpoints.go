package view

import (
	"net/http"

	"github.com/fit-eval/fit/internal/query"
)

// endpoints returns the endpoints of the server, by the patterns of their addresses.
func (s *Server) endpoints() map[string]endpoint {
	const ofCell = "/cells/{task}/{arm}/{run}"
	return map[string]endpoint{
		"GET /api/experiments":                              s.experiments,
		"GET /api/experiments/{x}":                          s.ofDirectory(s.experiment),
		"GET /api/experiments/{x}/cells":                    s.ofDirectory(s.cells),
		"GET /api/experiments/{x}" + ofCell:                 s.ask(s.ofDirectory(s.cell)),
		"GET /api/experiments/{x}" + ofCell + "/file":       s.needsPath(s.cellFile),
		"GET /api/experiments/{x}/notes":                    s.ofDirectory(s.notes),
		"POST /api/experiments/{x}/notes":                   s.needsPath(s.addNote),
		"GET /api/experiments/{x}/skill":                    s.ask(s.needsPath(s.skill)),
		"POST /api/experiments/{x}/skill":                   s.ask(s.needsPath(s.feedback)),
		"POST /api/experiments/{x}/ctl":                     s.needsPath(s.steer),
		"GET /api/experiments/{x}/forest":                   s.forest,
		"GET /api/experiments/{x}/plan":                     s.plan,
		"GET /api/experiments/{x}/versus":                   s.ask(s.needsPath(s.versusReport)),
		"GET /api/experiments/{x}/versus/show/{task}/{run}": s.ask(s.needsPath(s.versusShow)),
		"GET /api/experiments/{x}/labels":                   s.ask(s.needsPath(s.labels)),
		"POST /api/experiments/{x}/labels":                  s.ask(s.needsPath(s.label)),
		"POST /api/events/{stream}":                         s.follow,
		"GET /api/trace/overview":                           s.ask(s.traceOverview),
		"GET /api/trace/page":                               s.ask(s.withNumber("page", 1<<31/pageSize, s.tracePage)),
		"GET /api/trace/entry":                              s.ask(s.withNumber("n", 1<<31, s.traceEntry)),
		"GET /api/trace/entries":                            s.ask(s.traceEntries),
		"GET /api/trace/find":                               s.ask(s.traceFind),
		"GET /api/trace/lanes":                              s.ask(s.withNumber("buckets", maxBuckets, s.traceLanes)),
		"GET /api/trace/messages":                           s.ask(s.withTrace(s.traceMessages)),
		"GET /api/trace/align":                              s.ask(s.traceAlign),
		"GET /api/trace/calls":                              s.ask(s.withTrace(s.traceCalls)),
		"GET /api/trace/call":                               s.ask(s.withNumber("n", 1<<31, s.traceCall)),
		"GET /api/trace/prompts":                            s.ask(s.tracePrompts),
		"GET /api/trace/markdown":                           s.ask(s.withNumber("n", 1<<31, s.traceMarkdown)),
		"GET /api/trace/image":                              s.ask(s.withNumber("n", 1<<31, s.traceImage)),
	}
}

// ofDirectory answers a question about the run directory that an address names.
func (s *Server) ofDirectory(answer func(*http.Request, location) (any, error)) endpoint {
	return func(r *http.Request) (any, error) {
		at, err := s.directory(r.PathValue("x"))
		if err != nil {
			return nil, err
		}
		return answer(r, at)
	}
}

// withTrace answers a question about the trace that a request names. Errors name the trace as
// people know it.
func (s *Server) withTrace(answer func(*http.Request, *query.Trace) (any, error)) endpoint {
	return func(r *http.Request) (any, error) {
		t, _, err := s.openTrace(r)
		if err != nil {
			return nil, err
		}
		value, err := answer(r, t)
		if err != nil {
			return nil, traceProblem(t.Path, t.Label, err)
		}
		return value, nil
	}
}

// withNumber answers a question about a trace and a number, which is a parameter of the request.
func (s *Server) withNumber(name string, limit int,
	answer func(r *http.Request, t *query.Trace, n int) (any, error),
) endpoint {
	return func(r *http.Request) (any, error) {
		n, err := number(r, name, limit)
		if err != nil {
			return nil, err
		}
		return s.withTrace(func(r *http.Request, t *query.Trace) (any, error) { return answer(r, t, n) })(r)
	}
}
