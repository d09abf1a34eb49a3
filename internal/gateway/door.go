package gateway

import (
	"cmp"
	"net"
	"net/http"
	"strings"

	"github.com/fit-eval/fit/internal/lazyregexp"
	"github.com/fit-eval/fit/internal/model"
	"github.com/fit-eval/fit/internal/model/wire"
)

// door decides which requests are calls of members.
type door struct {
	gateway *Gateway
	admits  func(*Seat) bool // whose token is valid; nil: everybody's
}

// refusal is an answer of the gateway itself.
type refusal struct {
	status  int
	message string
}

// ServeHTTP implements http.Handler.
func (d *door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !d.gateway.begin() {
		return
	}
	defer d.gateway.serving.Done()
	if (r.Method == http.MethodHead || r.Method == http.MethodGet) && r.URL.Path == "/" && isLocal(r) {
		return // some agents check whether a server answers
	}
	to, refused := routeOf(r)
	if refused == nil && !isLocal(r) {
		refused = &refusal{
			http.StatusMisdirectedRequest,
			"fit's gateway answers only requests to itself; it is not a proxy for other hosts",
		}
	}
	var seat *Seat
	if refused == nil {
		if seat = d.gateway.seatOf(r); seat == nil || d.admits != nil && !d.admits(seat) {
			refused = &refusal{
				http.StatusUnauthorized,
				"fit's gateway does not know this key; it accepts the token of a participant while it takes part",
			}
		}
	}
	if refused != nil {
		refused.answer(w, to.protocol)
		return
	}
	d.gateway.open.belongs(r, seat)
	newExchange(seat, to, r).serve(w)
}

// isLocal reports whether a request is meant for this machine. A request that names another host,
// in its first line or in its header, is not.
func isLocal(r *http.Request) bool {
	for _, name := range []string{r.Host, r.URL.Host} {
		host, _, err := net.SplitHostPort(name)
		if err != nil {
			host = name
		}
		if ip := net.ParseIP(strings.Trim(host, "[]")); host != "" && host != "localhost" &&
			(ip == nil || !ip.IsLoopback()) {
			return false
		}
	}
	return true
}

// route is the meaning of a path.
type route struct {
	wire.Route
	protocol string // empty: any
	version  string // as in /v1
	path     string // without the version
}

// wire returns the protocol of the path. Errors of an unknown one are in the form that most clients
// read.
func (to route) wire() wire.Protocol { return wireOf(to.protocol) }

func wireOf(protocol string) wire.Protocol {
	if known := model.Protocol(protocol).Wire(); known != nil {
		return known
	}
	return wire.Chat
}

// modelPath matches the list of models, and one of them, whose name may have its vendor's before
// it.
var modelPath = lazyregexp.New(`^models(/[^/]+){0,2}$`)

// routeOf finds out what a request asks for, or why it is refused.
func routeOf(r *http.Request) (route, *refusal) {
	if r.Method == http.MethodConnect {
		return route{}, &refusal{http.StatusMethodNotAllowed, "fit's gateway opens no tunnels"}
	}
	version, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	to := route{version: "/" + version, path: "/" + rest}
	known := false
	for _, protocol := range model.Protocols() {
		if to.Route, known = protocol.Route(r.URL.Path); known {
			to.protocol = protocol.Info().Name
			break
		}
	}
	if !known && version == "v1" && modelPath.MatchString(rest) {
		to.Method, known = http.MethodGet, true
		if r.Header.Get("Anthropic-Version") != "" {
			to.protocol = Anthropic
		}
	}
	method := cmp.Or(to.Method, http.MethodPost)
	switch {
	case !known || to.Unknown || strings.Contains(rest, ".."):
		return route{}, &refusal{
			http.StatusNotFound, "fit's gateway has no " + r.Method + " " + r.URL.Path +
				"; it serves /v1/messages, /v1/responses, /v1/chat/completions, /v1/models and " +
				"/v1beta/models/NAME:generateContent",
		}
	case r.Method != method:
		return to, &refusal{http.StatusMethodNotAllowed, r.URL.Path + " is asked with " + method}
	}
	return to, nil
}

// answer sends the refusal in the form that clients of the protocol understand, and asks them not
// to try again.
func (f *refusal) answer(w http.ResponseWriter, protocol string) {
	w.Header().Set("X-Should-Retry", "false")
	writeError(w, protocol, f.status, f.message)
}

// writeError answers with an error of the protocol.
func writeError(w http.ResponseWriter, protocol string, status int, message string) {
	body := wireOf(protocol).ErrorBody(status, wire.APIError{Message: message})
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body) // a client that has gone needs no answer
}
