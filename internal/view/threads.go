package view

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fit-eval/fit/internal/bridge/server"
	"github.com/fit-eval/fit/internal/query"
)

// Bridge is the bridge whose threads are shown.
type Bridge struct {
	*server.Server
	// Address is where people reach it.
	Address string
	// Trace returns where the trace of a run is, if it is on this machine.
	Trace func(tenant, run string) string
}

// ThreadPages shows the threads of a bridge to the people who have a token of it, and lets them
// post. Requests that are not those of pages are answered by the bridge.
type ThreadPages struct {
	cfg    Config
	bridge Bridge
	cookie string
	secure bool

	mu      sync.Mutex
	tenants map[string]*Server // each has the traces and streams of one tenant
}

// NewThreadPages returns the pages of a bridge. Close ends them.
func NewThreadPages(cfg Config, bridge Bridge) (*ThreadPages, error) {
	address, err := url.Parse(bridge.Address)
	if err != nil {
		return nil, err
	}
	return &ThreadPages{
		cfg:     cfg,
		bridge:  bridge,
		cookie:  "fit-bridge-" + cmp.Or(address.Port(), address.Scheme),
		secure:  address.Scheme == "https",
		tenants: map[string]*Server{},
	}, nil
}

// Close ends what the pages do in the background.
func (p *ThreadPages) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var err error
	for _, s := range p.tenants {
		err = errors.Join(err, s.Close())
	}
	return err
}

// ServeHTTP answers a browser by its cookie, which holds the token of a person. Whoever sends a
// token in another way is no page.
func (p *ThreadPages) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "" || !isPage(r.URL.Path) {
		p.bridge.Handler().ServeHTTP(w, r)
		return
	}
	setPolicy(w.Header())
	if !p.ownOrigin(r) {
		refuse(w, r, http.StatusForbidden, "requests of other pages are not answered")
		return
	}
	if given := r.URL.Query().Get("token"); r.URL.Path == "/" && given != "" {
		if _, _, known := p.bridge.Person(given); !known {
			refuse(w, r, http.StatusUnauthorized, unknownToken)
			return
		}
		enter(w, p.cookie, given, p.secure)
		return
	}
	tenant, token, known := p.person(r)
	switch {
	case !known:
		refuse(w, r, http.StatusUnauthorized, unknownToken)
	case r.Method != http.MethodGet && r.Method != http.MethodHead && !ownPost(r):
		refuse(w, r, http.StatusForbidden, "only fit's own pages may change something, and they send JSON")
	default:
		p.answer(w, r, tenant, token)
	}
}

const unknownToken = "open the address that fit bridge serve or fit bridge invite printed: it carries a token"

// isPage reports whether an address is one that pages ask.
func isPage(path string) bool {
	rest, api := strings.CutPrefix(path, "/api/")
	if !api {
		return path != "/health"
	}
	first, _, _ := strings.Cut(rest, "/")
	return slices.Contains([]string{"threads", "trace", "events"}, first)
}

// ownOrigin reports whether a request comes from our own pages, behind a proxy too.
func (p *ThreadPages) ownOrigin(r *http.Request) bool {
	return ownOrigin(r) || r.Header.Get("Sec-Fetch-Site") == "same-origin" &&
		strings.EqualFold(r.Header.Get("Origin"), p.bridge.Address)
}

// person finds the person whose token a browser has.
func (p *ThreadPages) person(r *http.Request) (tenant, token string, known bool) {
	for _, cookie := range r.CookiesNamed(p.cookie) {
		if tenant, _, known = p.bridge.Person(cookie.Value); known {
			return tenant, cookie.Value, true
		}
	}
	return "", "", false
}

// answer answers somebody of a tenant: threads by the bridge, to which the token is passed on, the
// rest from the tenant's own traces.
func (p *ThreadPages) answer(w http.ResponseWriter, r *http.Request, tenant, token string) {
	s, err := p.tenant(tenant)
	if err != nil {
		writeError(w, err)
		return
	}
	if strings.HasPrefix(r.URL.Path, "/api/threads") && !strings.HasSuffix(r.URL.Path, membersPath) {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+token)
		p.bridge.Handler().ServeHTTP(w, r)
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	s.mux().ServeHTTP(w, r)
}

// tenant returns the server of a tenant's traces and streams.
func (p *ThreadPages) tenant(name string) (*Server, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.tenants[name]; s != nil {
		return s, nil
	}
	s, err := New(p.cfg)
	if err != nil {
		return nil, err
	}
	s.threads = &threads{bridge: p.bridge, tenant: name}
	index := s.assets["index.html"]
	index.content = bytes.Replace(index.content, []byte(`<div id="app">`), []byte(`<div id="app" data-threads>`), 1)
	index.tag = tagOf(index.content)
	s.assets["index.html"] = index
	p.tenants[name] = s
	return s, nil
}

// threads are those of one tenant, with the traces of their runs.
type threads struct {
	bridge Bridge
	tenant string
}

// trace finds the trace of a run.
func (t *threads) trace(run string) (traceFile, error) {
	path, found := t.traceOf(run)
	if !found || !t.bridge.HasRun(t.tenant, run) {
		return traceFile{}, notFound("there is no trace of "+quote(run)+" on this machine", "")
	}
	return traceFile{
		id:    run,
		name:  run,
		shown: run,
		path:  path,
	}, nil
}

func (t *threads) traceOf(run string) (path string, found bool) {
	if !filepath.IsLocal(run) || strings.Contains(run, "/") {
		return "", false
	}
	name := t.bridge.Trace(t.tenant, run)
	path, err := contained(filepath.Dir(name), filepath.Base(name))
	return path, err == nil
}

// threadEndpoints are those that pages of threads need.
func (s *Server) threadEndpoints(all map[string]endpoint) map[string]endpoint {
	some := maps.Clone(all)
	maps.DeleteFunc(some, func(pattern string, _ endpoint) bool {
		return strings.Contains(pattern, "/api/experiments")
	})
	some["GET /api/threads/{thread}"+membersPath] = s.ask(s.members)
	return some
}

const membersPath = "/members"

// membersAnswer says who takes part in the last run of a thread, who of them works, and what each
// costs.
type membersAnswer struct {
	Version int              `json:"version"`
	Run     string           `json:"run"`     // empty where none has begun here
	Traces  []string         `json:"traces"`  // the runs that have a trace on this machine
	CostUSD *float64         `json:"costUsd"` // so far; nil is unknown
	Members []query.LaneInfo `json:"members"`
}

func (s *Server) members(r *http.Request) (any, error) {
	thread, err := s.threads.bridge.Thread(s.threads.tenant, r.PathValue("thread"))
	if err != nil {
		return nil, notFound(err.Error(), "")
	}
	answer := membersAnswer{Version: version, Traces: []string{}, Members: []query.LaneInfo{}}
	for _, run := range thread.Runs {
		if _, found := s.threads.traceOf(run.ID); found {
			answer.Traces = append(answer.Traces, run.ID)
		}
	}
	if len(answer.Traces) == 0 {
		return answer, nil
	}
	answer.Run = answer.Traces[len(answer.Traces)-1]
	t, file, err := s.openNamed(r.Context(), answer.Run)
	if err != nil {
		return answer, nil //nolint:nilerr // it has only just begun
	}
	overview, err := s.glance(r.Context(), t, file)
	if err != nil {
		return nil, traceProblem(file.path, file.shown, err)
	}
	if overview != nil {
		answer.CostUSD, answer.Members = overview.Summary.TotalCostUSD, overview.Lanes
	}
	return answer, nil
}

// glance returns the overview of a trace; of a large one, that of the last pass over it, or nil.
func (s *Server) glance(ctx context.Context, t *query.Trace, file traceFile) (*query.Overview, error) {
	if file.bytes < indexFrom {
		overview, _, err := t.Overview(ctx)
		return overview, err
	}
	known, err := s.scanTrace(ctx, file)
	if err != nil || known == nil {
		return nil, err
	}
	return known.overview, nil
}

// allThreads is the topic of the list of threads.
const allThreads = "*"

// threadsChanged notes which threads have changed.
func (st *stream) threadsChanged(changed map[string]bool) {
	st.mu.Lock()
	maps.Copy(st.news, changed)
	st.mu.Unlock()
	st.wake()
}

func (st *stream) wake() {
	select {
	case st.kick <- struct{}{}:
	default: // it will look
	}
}

// lookAtThreads names the followed threads that have changed, and those that are followed from now
// on: what changed before is in what the page reads then. Their list is named now and then.
func (st *stream) lookAtThreads() error {
	st.mu.Lock()
	news, wanted := st.news, st.wanted.Threads
	st.news = map[string]bool{}
	if news[allThreads] = news[allThreads] || len(news) > 0; news[allThreads] && time.Since(st.listAt) < listEvery {
		st.news[allThreads], news[allThreads] = true, false // the next tick looks again
	}
	st.mu.Unlock()
	followed := map[string]bool{}
	for _, id := range wanted {
		if !st.followed[id] && id != allThreads && !st.server.hasThread(id) {
			continue
		}
		followed[id] = true
		if st.followed[id] && !news[id] {
			continue
		}
		if id == allThreads {
			st.listAt = time.Now()
		}
		if err := st.send("thread", map[string]string{"thread": id}); err != nil {
			return err
		}
	}
	st.followed = followed
	return nil
}

func (s *Server) hasThread(id string) bool {
	if s.threads == nil {
		return false
	}
	_, err := s.threads.bridge.Thread(s.threads.tenant, id)
	return err == nil
}
