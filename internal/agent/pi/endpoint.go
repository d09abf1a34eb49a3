package pi

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/gateway"
	"github.com/fit-eval/fit/internal/model"
)

// protocols are those that the program speaks, the one for unknown models first.
var protocols = []string{agent.ProtocolChat, agent.ProtocolResponses, agent.ProtocolAnthropic}

// providerName is the name of our own entry in the program's models file.
const providerName = "fit"

// noKey is the program's key if another endpoint is used and no key is set: it refuses to start
// without one.
const noKey = "no-key-needed"

// vendors are the providers that the program knows, with the variables that hold their keys.
var vendors = withProtocols(map[string][]string{
	"deepseek": {"DEEPSEEK_API_KEY"}, "groq": {"GROQ_API_KEY"},
	"cerebras": {"CEREBRAS_API_KEY"}, "xai": {"XAI_API_KEY"},
	"fireworks": {"FIREWORKS_API_KEY"}, "openrouter": {"OPENROUTER_API_KEY"},
	"vercel-ai-gateway": {"AI_GATEWAY_API_KEY"}, "zai": {"ZAI_API_KEY"},
	"mistral": {"MISTRAL_API_KEY"}, "minimax": {"MINIMAX_API_KEY"}, "moonshotai": {"MOONSHOT_API_KEY"},
	"kimi-coding": {"KIMI_API_KEY"},
	"opencode":    {"OPENCODE_API_KEY"}, "huggingface": {"HF_TOKEN"}, "xiaomi": {"XIAOMI_API_KEY"},
})

// withProtocols adds those who made a protocol.
func withProtocols(vendors map[string][]string) map[string][]string {
	for _, protocol := range model.Protocols() {
		vendors[protocol.Info().Vendor] = []string{protocol.Info().KeyVariable}
	}
	return vendors
}

func credentials() []string {
	var names []string
	for _, variables := range vendors {
		names = append(names, variables...)
	}
	slices.Sort(names)
	return names
}

// allKeys returns the keys of vendors in an environment.
func allKeys(environ []string) map[string]string { return keysOf(environ, credentials()...) }

func keysOf(environ []string, names ...string) map[string]string {
	keys := map[string]string{}
	for _, name := range names {
		if value := agent.Getenv(environ, name); value != "" {
			keys[name] = value
		}
	}
	return keys
}

// endpoint is where the model is, and what is needed to use it.
type endpoint struct {
	provider string            // for the command line; empty: the program decides
	api      string            // of our own provider, in the program's words
	baseURL  string            // of our own provider; empty: the vendor's
	key      string            // of our own provider: the name of a variable, or a literal
	keys     map[string]string // variables of the child that hold credentials
	gateway  string            // the base URL of the gateway; empty: none, and the keys are real
}

// chooseEndpoint decides where the model is and which keys the program gets, through the gateway if
// there is one.
func chooseEndpoint(cfg agent.Config) (endpoint, error) {
	e, err := directEndpoint(cfg)
	if err != nil || cfg.Seat == nil {
		return e, err
	}
	e.gateway = cfg.Seat.URL
	if e.baseURL != "" {
		e.key = e.variable()
		e.keys = map[string]string{e.key: ""}
		e.baseURL = e.base(e.gateway)
	}
	tokens := map[string]string{}
	for name := range e.keys {
		tokens[name] = cfg.Seat.Token
	}
	e.keys = tokens
	return e, nil
}

// Upstreams implements agent.Routed. Some vendors that the program knows speak their own protocols,
// and only it knows their addresses.
func (*Agent) Upstreams(cfg agent.Config) ([]gateway.Upstream, error) {
	e, err := directEndpoint(cfg)
	if err != nil {
		return nil, err
	}
	if e.baseURL != "" {
		to := gateway.Upstream{Protocol: protocolOf(cfg.Model), URL: gateway.Versioned(cfg.ModelURL)}
		if key := e.keys[e.variable()]; key != "" {
			to.Header = keyHeader(to.Protocol, key)
		}
		return []gateway.Upstream{to}, nil
	}
	var all []gateway.Upstream
	for _, name := range e.variables() {
		found := false
		for vendor, known := range routed {
			if vendors[vendor][0] != name {
				continue
			}
			found = true
			for _, protocol := range known.protocols {
				all = append(all, gateway.Upstream{
					Protocol: protocol,
					URL:      gateway.Versioned(known.url),
					Header:   keyHeader(protocol, e.keys[name]),
				})
			}
		}
		if !found {
			return nil, fmt.Errorf("with %s, the program talks to a vendor that the gateway does not know; name "+
				"another model, or set --model-url", name)
		}
	}
	return all, nil
}

// routed are the vendors whose protocols the gateway speaks.
var routed = map[string]struct {
	url       string
	protocols []string
}{
	"anthropic": {"https://api.anthropic.com", []string{agent.ProtocolAnthropic}},
	"openai":    {"https://api.openai.com", []string{agent.ProtocolResponses, agent.ProtocolChat}},
}

func keyHeader(protocol, key string) http.Header {
	if protocol == agent.ProtocolAnthropic {
		return gateway.APIKey(key)
	}
	return gateway.Bearer(key)
}

// apiAnthropic is the program's name for the protocol of Anthropic.
const apiAnthropic = "anthropic-messages"

// variable returns the variable that holds the key of our own provider.
func (e endpoint) variable() string {
	if e.api == apiAnthropic {
		return vendors["anthropic"][0]
	}
	return vendors["openai"][0]
}

// base returns the base URL of our own provider at an endpoint.
func (e endpoint) base(url string) string {
	if e.api == apiAnthropic {
		return url
	}
	return url + "/v1"
}

// directEndpoint decides which keys the program gets: only those of the model's vendor, if that is
// known.
func directEndpoint(cfg agent.Config) (endpoint, error) {
	if cfg.Auth != "" && cfg.Auth != agent.AuthAPIKey {
		return endpoint{}, agent.Refuse(agentID, "unknown --auth %q; agent %s runs on keys only", cfg.Auth, agentID)
	}
	if cfg.ModelURL != "" {
		return ownEndpoint(cfg)
	}
	if vendor, named := vendorOf(cfg.Model); vendor != "" {
		keys := keysOf(cfg.Environ, vendors[vendor]...)
		if len(keys) > 0 {
			return endpoint{provider: vendor, keys: keys}, nil
		}
		if named {
			return endpoint{}, fmt.Errorf("%s is not set; set it, or set --model-url",
				strings.Join(vendors[vendor], " or "))
		}
	}
	keys := allKeys(cfg.Environ)
	if len(keys) == 0 {
		return endpoint{}, errors.New("no key of any vendor is set; " + loginHint + ", or set --model-url")
	}
	return endpoint{keys: keys}, nil
}

// ownEndpoint returns an endpoint that is not a vendor's. The protocol is that of the model's
// family; models of no known family use Chat Completions, as most servers do.
func ownEndpoint(cfg agent.Config) (endpoint, error) {
	if cfg.Model == "" {
		return endpoint{}, agent.Refuse(agentID,
			"agent %s needs a model to use with another endpoint; set --model with --model-url", agentID)
	}
	url := strings.TrimRight(cfg.ModelURL, "/")
	chosen := endpoint{provider: providerName, api: "openai-completions", key: noKey}
	switch protocolOf(cfg.Model) {
	case agent.ProtocolAnthropic:
		chosen.api = apiAnthropic
	case agent.ProtocolResponses:
		chosen.api = "openai-responses"
	}
	chosen.baseURL = chosen.base(url)
	if chosen.keys = keysOf(cfg.Environ, chosen.variable()); len(chosen.keys) > 0 {
		chosen.key = chosen.variable()
	}
	return chosen, nil
}

func protocolOf(name string) string { return agent.ProtocolOf(name, protocols...) }

// vendorOf finds the vendor of a model: the one that its name begins with, as in vendor/model, or
// the one whose models have such names.
func vendorOf(name string) (vendor string, named bool) {
	if prefix, _, found := strings.Cut(name, "/"); found && vendors[strings.ToLower(prefix)] != nil {
		return strings.ToLower(prefix), true
	}
	if known := model.MadeFor(name); known != nil && !strings.Contains(name, "/") {
		return known.Vendor, false
	}
	return "", false
}

// modelsFile returns the content of the program's models file: our own provider, or the vendors' at
// the gateway; nil where none is needed. It says nothing about the price, so that ours is used for
// all agents alike.
func (e endpoint) modelsFile(cfg agent.Config) map[string]any {
	if e.baseURL == "" && e.gateway == "" {
		return nil
	}
	if e.baseURL == "" {
		return map[string]any{"providers": map[string]any{
			"anthropic": map[string]any{"baseUrl": e.gateway},
			"openai":    map[string]any{"baseUrl": e.gateway + "/v1"},
		}}
	}
	entry := map[string]any{
		"id": cfg.Model, "reasoning": e.api != "openai-completions" || cfg.Effort != "",
		"input": []string{"text", "image"}, "contextWindow": 200_000, "maxTokens": 32_000,
	}
	return map[string]any{"providers": map[string]any{
		providerName: map[string]any{"baseUrl": e.baseURL, "api": e.api, "apiKey": e.key, "models": []any{entry}},
	}}
}

// variables returns the names of the credentials that the child sees, sorted.
func (e endpoint) variables() []string { return slices.Sorted(maps.Keys(e.keys)) }
