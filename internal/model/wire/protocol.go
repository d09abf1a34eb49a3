package wire

import (
	"bytes"
	"encoding/json"
	"net/http"

	"github.com/fit-eval/fit/internal/lazyregexp"
	"github.com/fit-eval/fit/price"
)

// Protocol is one model protocol, as a client, a server and a proxy need it.
type Protocol interface {
	Info() *Info
	// Path returns where a request is sent to, below the address with the version.
	Path(model string, stream bool) string
	// Route says what a request to a path asks for; false if the path is of no use in the protocol.
	Route(path string) (Route, bool)
	// ErrorBody renders an error in place of a reply, and ErrorEvent in the middle of a stream.
	// Empty fields are filled in from the status; 0 is a server that is overloaded.
	ErrorBody(status int, e APIError) []byte
	ErrorEvent(status int, model string, e APIError) Event
	// Usage reads a report of usage. Its input is as the protocol counts it; see Info.Net.
	Usage(report []byte) (price.TokenUsage, error)
	// Look says what a proxy must know about the data of a stream's event, without decoding it.
	Look(data []byte) Glance
}

// Info holds what is the same for every call of a protocol.
type Info struct {
	Name    string // in configurations and records
	Vendor  string // who made it
	URL     string // the vendor's endpoint, with the version
	Version string // of the paths, as in /v1
	// KeyVariable, TokenVariable and URLVariable are the variables of the vendor's SDK; the second
	// may be empty.
	KeyVariable, TokenVariable, URLVariable string
	// VersionInURL says that URLVariable includes the version.
	VersionInURL bool
	// KeyHeader carries the key; empty: it is a bearer token.
	KeyHeader string
	// Header is sent with every request.
	Header http.Header
	// Models matches the names, in lower case, of the models that the protocol was made for.
	Models *lazyregexp.Regexp
	// DefaultModel is asked if none is named.
	DefaultModel string

	// InputName and OutputName are the members of a report without which it says nothing.
	InputName, OutputName string
	// CachedIsInput says that a report counts tokens of the cache as input, too.
	CachedIsInput bool

	// SnakeCase says that members of requests may be spelled in snake case, too.
	SnakeCase bool
	// OwnTools, where set, is the member of a tool that declares those of the client; its other
	// members are tools of the vendor.
	OwnTools string
	// FileMembers are the members of a piece of content that refers to a file.
	FileMembers []string
	// TextForm is the format of a piece of text.
	TextForm string
}

// Authorization returns the header that carries a key; nil for none.
func (i *Info) Authorization(key string) http.Header {
	switch {
	case key == "":
		return nil
	case i.KeyHeader == "":
		return http.Header{"Authorization": {"Bearer " + key}}
	default:
		return http.Header{i.KeyHeader: {key}}
	}
}

// Address returns the setting, as NAME=value, with which the vendor's SDK finds an endpoint whose
// address has no version.
func (i *Info) Address(url string) string {
	if i.VersionInURL {
		url += i.Version
	}
	return i.URLVariable + "=" + url
}

// Net returns a report with the input that was neither read from the cache nor written to it.
func (i *Info) Net(u price.TokenUsage) price.TokenUsage {
	u.CacheWriteLongTokens = min(u.CacheWriteLongTokens, u.CacheWriteTokens)
	if i.CachedIsInput {
		u.InputTokens = max(0, u.InputTokens-u.CacheReadTokens-u.CacheWriteTokens)
	}
	return u
}

// Says reports whether a report of usage has a figure for the input, and one for the output: what
// is missing or null is not zero.
func (i *Info) Says(report []byte) (input, output bool) {
	var named map[string]json.RawMessage
	if json.Unmarshal(report, &named) != nil {
		return false, false
	}
	holds := func(name string) bool { return len(named[name]) > 0 && string(named[name]) != "null" }
	return holds(i.InputName), holds(i.OutputName)
}

// ReplyUsage returns the usage that a whole reply reports; nothing if it does not say both what was
// read and what was written.
func ReplyUsage(p Protocol, body []byte) price.TokenUsage {
	var reply struct {
		Usage         json.RawMessage `json:"usage"`
		UsageMetadata json.RawMessage `json:"usageMetadata"` // Google's name
	}
	if json.Unmarshal(body, &reply) != nil {
		return price.TokenUsage{}
	}
	for _, report := range [][]byte{reply.Usage, reply.UsageMetadata} {
		if input, output := p.Info().Says(report); input && output {
			used, err := p.Usage(report)
			if err == nil {
				return p.Info().Net(used)
			}
		}
	}
	return price.TokenUsage{}
}

// Route is the meaning of a path.
type Route struct {
	Method string // empty is POST
	Turn   bool   // it carries a turn of an agent
	Paid   bool   // a model answers it
	Counts bool   // it counts the tokens of a turn
	// Unknown says that the path has the protocol's form, and nothing is there.
	Unknown bool
	// Model and Stream are what a path says in place of the body.
	Model  string
	Stream bool
}

// Glance is what a proxy must know about an event.
type Glance struct {
	Ends    bool // the reply is complete
	Piece   bool // it holds a piece of the reply
	Reports bool // it may report usage or an error, and must be decoded
}

var (
	errorKey = []byte(`"error"`)
	usageKey = []byte(`"usage"`)
)

// reports says that an event has a member for usage, or one for an error.
func reports(data, usage []byte) bool {
	return bytes.Contains(data, usage) || bytes.Contains(data, errorKey)
}
