package builtin

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/gateway"
	"github.com/fit-eval/fit/internal/model"
)

const (
	defaultAnthropicModel = "claude-sonnet-4-5"
	defaultOpenAIModel    = "gpt-5.5"
	defaultGeminiModel    = "gemini-3-pro-preview"
	// protocolVariable names the protocol of an endpoint, if its address and the model's name do
	// not.
	protocolVariable = "FIT_MODEL_PROTOCOL"
)

// protocolNames returns the protocols that the agent speaks with models.
func protocolNames() []string {
	return []string{string(model.Anthropic), string(model.Responses), string(model.Chat), string(model.Gemini)}
}

// endpoint is the model that a session talks to.
type endpoint struct {
	config         model.Config
	model          string
	throughGateway bool // the key is a token of the gateway
}

func (e endpoint) hasKey() bool { return e.config.APIKey != "" || e.config.AuthToken != "" }

// chooseEndpoint finds the model, by way of the gateway where there is one.
func chooseEndpoint(cfg agent.Config) (endpoint, error) {
	e, err := directEndpoint(cfg)
	if err == nil && cfg.Seat != nil {
		e.config.ModelURL, e.config.APIKey, e.config.AuthToken = cfg.Seat.URL, cfg.Seat.Token, ""
		e.throughGateway = true
	}
	return e, err
}

// Upstreams implements agent.Routed.
func (a *Agent) Upstreams(cfg agent.Config) ([]gateway.Upstream, error) {
	e, err := directEndpoint(cfg)
	if err != nil {
		return nil, err
	}
	to, err := gateway.UpstreamOf(e.config)
	return []gateway.Upstream{to}, err
}

// directEndpoint finds the model from the configuration and from the variables that the vendors'
// own SDKs read.
func directEndpoint(cfg agent.Config) (endpoint, error) {
	getenv := func(name string) string { return agent.Getenv(cfg.Environ, name) }
	protocol, err := chooseProtocol(cfg, getenv)
	if err != nil {
		return endpoint{}, err
	}
	e := endpoint{config: model.ConfigFromEnv(protocol, getenv), model: cfg.Model}
	e.config.ModelURL = cfg.ModelURL
	if e.model == "" {
		switch protocol {
		case model.Anthropic:
			e.model = defaultAnthropicModel
		case model.Gemini:
			e.model = defaultGeminiModel
		case model.Responses, model.Chat:
			e.model = defaultOpenAIModel
		}
	}
	if cfg.ModelURL == "" && e.config.BaseURL == "" && !e.hasKey() {
		return endpoint{}, &agent.AuthError{
			Reason: "no model to talk to: set ANTHROPIC_API_KEY, OPENAI_API_KEY or GEMINI_API_KEY, or name " +
				"an endpoint with --model-url",
		}
	}
	return e, nil
}

func chooseProtocol(cfg agent.Config, getenv func(string) string) (model.Protocol, error) {
	if named := getenv(protocolVariable); named != "" {
		if !slices.Contains(protocolNames(), named) {
			return "", fmt.Errorf("%s is %q; it can be %s", protocolVariable, named,
				strings.Join(protocolNames(), ", "))
		}
		return model.Protocol(named), nil
	}
	hasAnthropic := getenv("ANTHROPIC_API_KEY") != "" || getenv("ANTHROPIC_AUTH_TOKEN") != "" ||
		getenv("ANTHROPIC_BASE_URL") != ""
	hasOpenAI := getenv("OPENAI_API_KEY") != "" || getenv("OPENAI_BASE_URL") != ""
	hasGemini := getenv("GEMINI_API_KEY") != "" || getenv("GOOGLE_GEMINI_BASE_URL") != ""
	switch {
	case strings.HasPrefix(cfg.Model, "claude"):
		return model.Anthropic, nil
	case strings.HasPrefix(cfg.Model, "gpt-"):
		return model.Responses, nil
	case strings.HasPrefix(cfg.Model, "gemini-"):
		return model.Gemini, nil
	case cfg.ModelURL != "", hasAnthropic, !hasOpenAI && !hasGemini:
		return model.Anthropic, nil
	case !hasOpenAI:
		return model.Gemini, nil
	case getenv("OPENAI_BASE_URL") != "": // local servers speak Chat Completions, whatever else they speak
		return model.Chat, nil
	default:
		return model.Responses, nil
	}
}

func (e endpoint) client(maxRetries int, onRetry func(model.RetryInfo)) (model.Client, error) {
	cfg := e.config
	cfg.MaxRetries, cfg.OnRetry = maxRetries, onRetry
	return model.New(cfg)
}
