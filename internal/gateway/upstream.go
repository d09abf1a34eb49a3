package gateway

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/fit-eval/fit/internal/model"
	"github.com/fit-eval/fit/internal/model/wire"
)

// The protocols that are named in more places than their own files; see model.Protocols.
const (
	Anthropic = "anthropic" // Anthropic Messages
	Responses = "responses" // OpenAI Responses
	Chat      = "chat"      // OpenAI Chat Completions
)

// Upstream is the endpoint for the calls of one protocol.
type Upstream struct {
	Protocol string // one of model.ProtocolNames
	// URL includes the version, as in https://api.anthropic.com/v1.
	URL string
	// Header holds the key in the endpoint's form. It replaces the agent's token.
	Header http.Header
	// Login says that the agent sends its own login, which is passed on unchanged.
	Login bool
}

// Versioned returns the URL of an Upstream for an endpoint that is given without its version.
// People paste it with the version too; no path ends in /v1/v1.
func Versioned(url string) string {
	return strings.TrimSuffix(strings.TrimRight(url, "/"), "/v1") + "/v1"
}

// Bearer returns the header of a key that is sent as a bearer token.
func Bearer(key string) http.Header { return http.Header{"Authorization": {"Bearer " + key}} }

// APIKey returns the header of a key as the Messages protocol sends it.
func APIKey(key string) http.Header { return http.Header{"X-Api-Key": {key}} }

// keyHeaders are the headers that carry keys.
var keyHeaders = []string{"X-Api-Key", "X-Goog-Api-Key", "Authorization"}

// Everywhere returns an upstream per protocol, all at one endpoint whose URL has no version. The
// keys may differ; an empty one is none.
func Everywhere(url string, key func(*wire.Info) string) []Upstream {
	var all []Upstream
	for _, protocol := range model.Protocols() {
		info := protocol.Info()
		all = append(all, Upstream{
			Protocol: info.Name,
			URL:      strings.TrimSuffix(Versioned(url), "/v1") + info.Version,
			Header:   info.Authorization(key(info)),
		})
	}
	return all
}

// UpstreamOf returns where a client of package model with this config would send its calls.
func UpstreamOf(cfg model.Config) (Upstream, error) {
	base, err := cfg.Base()
	if err != nil {
		return Upstream{}, err
	}
	to := Upstream{Protocol: string(cfg.Protocol), URL: base, Header: cfg.Protocol.Info().Authorization(cfg.APIKey)}
	if cfg.AuthToken != "" {
		to.Header = Bearer(cfg.AuthToken)
	}
	return to, nil
}

// upstream is an Upstream with a parsed address.
type upstream struct {
	Upstream
	base *url.URL
}

func (u Upstream) resolve() (upstream, error) {
	base, err := url.Parse(strings.TrimRight(u.URL, "/"))
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" {
		return upstream{}, fmt.Errorf("the model's address %q is not an http or https URL", u.URL)
	}
	if model.Protocol(u.Protocol).Info() == nil {
		return upstream{}, fmt.Errorf("unknown model protocol %q", u.Protocol)
	}
	if base.User != nil && u.Header.Get("Authorization") == "" && !u.Login {
		password, _ := base.User.Password()
		basic := http.Request{Header: http.Header{}}
		basic.SetBasicAuth(base.User.Username(), password)
		u.Header = u.Header.Clone()
		if u.Header == nil {
			u.Header = http.Header{}
		}
		u.Header.Set("Authorization", basic.Header.Get("Authorization"))
	}
	base.User = nil
	return upstream{u, base}, nil
}

// provider names the endpoint, for rate control and messages.
func (u upstream) provider() string { return u.base.Host }

// key identifies the key, for rate control.
func (u upstream) key() string {
	key := ""
	for _, name := range keyHeaders {
		key += u.Header.Get(name)
	}
	return key
}

// leastKey is the length of the shortest key that is hidden. Endpoints without keys are sent a
// word, which models say too.
const leastKey = 8

// secrets returns the key as it is sent, if it is one.
func (u upstream) secrets() []string {
	var all []string
	for _, name := range keyHeaders {
		secret := u.Header.Get(name)
		if _, after, found := strings.Cut(secret, " "); found {
			secret = after
		}
		if len(secret) >= leastKey {
			all = append(all, secret)
		}
	}
	return all
}

// hide removes the key from an error of the upstream, and from what is recorded.
func (u upstream) hide(text string) string {
	for _, secret := range u.secrets() {
		text = strings.ReplaceAll(text, secret, hiddenKey)
	}
	return text
}

// hiddenKey takes the place of the key.
const hiddenKey = "[key]"

// header copies the part of a reply's header that concerns the client.
func (u upstream) header(to, from http.Header) {
	copyHeader(to, from)
	to.Del("Set-Cookie") // it is between the upstream and us
	for _, values := range to {
		for i := range values {
			values[i] = u.hide(values[i])
		}
	}
}

// request turns a call of an agent into one to the upstream. Everything that would hold events
// back, or that concerns only the connection to us, stays here.
func (u upstream) request(r *http.Request, path string, body []byte) *http.Request {
	out := r.Clone(r.Context())
	target := *u.base
	target.Path = strings.TrimRight(target.Path, "/") + path
	target.RawPath = ""
	query := r.URL.Query()
	query.Del(keyInQuery) // it is the token
	target.RawQuery = query.Encode()
	out.URL, out.Host, out.RequestURI, out.Close = &target, target.Host, "", false
	removeHopHeaders(out.Header)
	for _, name := range ownHeaders {
		out.Header.Del(name)
	}
	if !u.Login {
		for _, name := range keyHeaders {
			out.Header.Del(name)
		}
	}
	for name, values := range u.Header {
		out.Header[http.CanonicalHeaderKey(name)] = values
	}
	out.Header.Set("Accept-Encoding", "identity")
	if out.Header.Get("Idempotency-Key") == "" {
		// Upstreams close connections that are not in use. With this, which is not sent, a request
		// that meets such an end is retried on a new one.
		out.Header["Idempotency-Key"] = []string{}
	}
	setBody(out, body)
	return out
}

// ownHeaders are headers of a request that are not passed on: some concern us, and with the others
// a server would take the request for one with another method, address or user.
var ownHeaders = []string{
	TokenHeader, "Accept-Encoding", "Expect", "Cookie", "Forwarded", "X-Forwarded-For", "X-Forwarded-Host",
	"X-Forwarded-Proto", "X-Forwarded-Prefix", "X-Http-Method-Override", "X-Http-Method", "X-Method-Override",
	"X-Original-Url", "X-Rewrite-Url",
}

// hopHeaders concern one connection only.
var hopHeaders = []string{
	"Connection", "Proxy-Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Te", "Trailer",
	"Transfer-Encoding", "Upgrade",
}

func removeHopHeaders(header http.Header) {
	for _, list := range header["Connection"] {
		for name := range strings.SplitSeq(list, ",") {
			header.Del(strings.TrimSpace(name))
		}
	}
	for _, name := range hopHeaders {
		header.Del(name)
	}
}
