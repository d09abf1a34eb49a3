package model

import (
	"slices"
	"strings"

	"github.com/fit-eval/fit/internal/model/wire"
)

// Protocol names a model protocol.
type Protocol string

// The protocols that are named in more places than their own files.
const (
	Anthropic Protocol = "anthropic" // POST /v1/messages
	Responses Protocol = "responses" // POST /v1/responses
	Chat      Protocol = "chat"      // POST /v1/chat/completions
)

// codecs has every protocol that the client speaks. A new one needs only a line here and in package
// scripted.
var codecs = []protocolCodec{
	anthropicCodec{wire.Anthropic}, responsesCodec{wire.Responses}, chatCodec{wire.Chat}, geminiCodec{wire.Gemini},
}

func (p Protocol) codec() protocolCodec {
	for _, c := range codecs {
		if c.Info().Name == string(p) {
			return c
		}
	}
	return nil
}

// Info describes the protocol; nil if it is unknown.
func (p Protocol) Info() *wire.Info {
	if c := p.codec(); c != nil {
		return c.Info()
	}
	return nil
}

// Wire returns how the protocol is spoken; nil if it is unknown.
func (p Protocol) Wire() wire.Protocol { return p.codec() }

// Protocols returns all protocols.
func Protocols() []wire.Protocol {
	all := make([]wire.Protocol, len(codecs))
	for i, c := range codecs {
		all[i] = c
	}
	return all
}

// ProtocolNames returns the names of all protocols.
func ProtocolNames() []string {
	var names []string
	for _, c := range codecs {
		names = append(names, c.Info().Name)
	}
	return names
}

// MadeFor returns the protocol that a model was made for; nil if the model's family is unknown. The
// name may begin with that of a provider, as in openai/gpt-5.5.
func MadeFor(model string) *wire.Info {
	name := strings.ToLower(model[strings.LastIndexByte(model, '/')+1:])
	for _, c := range codecs {
		if info := c.Info(); info.Models != nil && info.Models.MatchString(name) {
			return info
		}
	}
	return nil
}

// Credentials returns the variables with keys and tokens of the vendors' SDKs.
func Credentials() []string {
	return variables(func(i *wire.Info) []string { return []string{i.KeyVariable, i.TokenVariable} })
}

// Addresses returns the variables with addresses of the vendors' SDKs.
func Addresses() []string {
	return variables(func(i *wire.Info) []string { return []string{i.URLVariable} })
}

// Settings returns what makes the vendors' SDKs use an endpoint, whose address has no version, as
// NAME=value.
func Settings(url, key string) []string {
	return variables(func(i *wire.Info) []string { return []string{i.Address(url), i.KeyVariable + "=" + key} })
}

func variables(of func(*wire.Info) []string) []string {
	var names []string
	for _, c := range codecs {
		for _, name := range of(c.Info()) {
			if name != "" && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// KeyVariables returns the variables with ordinary keys of the vendors' SDKs.
func KeyVariables() []string {
	return variables(func(i *wire.Info) []string { return []string{i.KeyVariable} })
}

// KeyHint lists KeyVariables in words.
func KeyHint() string {
	names := KeyVariables()
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}
