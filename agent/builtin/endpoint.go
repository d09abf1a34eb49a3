package builtin

import (
	"fmt"
	"strings"

	"github.com/fit-eval/fit/agent"
	"github.com/fit-eval/fit/model"
)

const (
	defaultAnthropicModel = "claude-sonnet-4-5"
	defaultOpenAIModel    = "gpt-5.5"
	// protocolVariable says which protocol an endpoint speaks, where its address and the model's
	// name do not say.
	protocolVariable = "FIT_MODEL_PROTOCOL"
)

// endpoint is the model that a session talks to.
type endpoint struct {
	config model.Config
	model  string
}

func (e endpoint) hasKey() bool { return e.config.APIKey != "" || e.config.AuthToken != "" }

// chooseEndpoint finds the model from the configuration and from the variables that the vendors'
// own SDKs read.
func chooseEndpoint(cfg agent.Config) (endpoint, error) {
	getenv := func(name string) string { return lookup(cfg.Environ, name) }
	protocol, err := chooseProtocol(cfg, getenv)
	if err != nil {
		return endpoint{}, err
	}
	e := endpoint{config: model.ConfigFromEnv(protocol, getenv), model: cfg.Model}
	e.config.ModelURL = cfg.ModelURL
	if e.model == "" {
		e.model = defaultAnthropicModel
		if protocol != model.Anthropic {
			e.model = defaultOpenAIModel
		}
	}
	if cfg.ModelURL == "" && e.config.BaseURL == "" && !e.hasKey() {
		return endpoint{}, &agent.AuthError{
			Reason: "no model to talk to: set ANTHROPIC_API_KEY or OPENAI_API_KEY, or name " +
				"an endpoint with --model-url",
		}
	}
	return e, nil
}

func chooseProtocol(cfg agent.Config, getenv func(string) string) (model.Protocol, error) {
	if named := getenv(protocolVariable); named != "" {
		switch protocol := model.Protocol(named); protocol {
		case model.Anthropic, model.Responses, model.Chat:
			return protocol, nil
		default:
			return "", fmt.Errorf("%s is %q; it can be %s, %s or %s", protocolVariable, named, model.Anthropic,
				model.Responses, model.Chat)
		}
	}
	hasAnthropic := getenv("ANTHROPIC_API_KEY") != "" || getenv("ANTHROPIC_AUTH_TOKEN") != "" ||
		getenv("ANTHROPIC_BASE_URL") != ""
	hasOpenAI := getenv("OPENAI_API_KEY") != "" || getenv("OPENAI_BASE_URL") != ""
	switch {
	case strings.HasPrefix(cfg.Model, "claude"):
		return model.Anthropic, nil
	case strings.HasPrefix(cfg.Model, "gpt-"):
		return model.Responses, nil
	case cfg.ModelURL != "", hasAnthropic, !hasOpenAI:
		return model.Anthropic, nil
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

// lookup returns the value of a variable in a list of KEY=value pairs; the last one counts.
func lookup(environ []string, name string) string {
	for i := len(environ) - 1; i >= 0; i-- {
		if key, value, ok := strings.Cut(environ[i], "="); ok && key == name {
			return value
		}
	}
	return ""
}
