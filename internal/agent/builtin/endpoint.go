package builtin

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/gateway"
	"github.com/fit-eval/fit/internal/model"
)

// protocolVariable names the protocol of an endpoint, if its address and the model's name do not.
const protocolVariable = "FIT_MODEL_PROTOCOL"

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

// ChosenModel implements agent.ModelChooser.
func (a *Agent) ChosenModel(cfg agent.Config) string {
	e, err := directEndpoint(cfg)
	if err != nil { // it says so when it starts
		return a.Info().DefaultModel
	}
	return e.model
}

// directEndpoint finds the model from the configuration and from the variables that the vendors'
// own SDKs read.
func directEndpoint(cfg agent.Config) (endpoint, error) {
	getenv := func(name string) string { return agent.Getenv(cfg.Environ, name) }
	protocol, err := chooseProtocol(cfg, getenv)
	if err != nil {
		return endpoint{}, err
	}
	e := endpoint{config: model.ConfigFromEnv(protocol, getenv), model: cmp.Or(cfg.Model, protocol.Info().DefaultModel)}
	e.config.ModelURL = cfg.ModelURL
	if cfg.ModelURL == "" && e.config.BaseURL == "" && !e.hasKey() {
		return endpoint{}, &agent.AuthError{
			Reason: "no model to talk to: set " + model.KeyHint() + ", or name an endpoint with --model-url",
		}
	}
	return e, nil
}

func chooseProtocol(cfg agent.Config, getenv func(string) string) (model.Protocol, error) {
	if named := getenv(protocolVariable); named != "" {
		if !slices.Contains(model.ProtocolNames(), named) {
			return "", fmt.Errorf("%s is %q; it can be %s", protocolVariable, named,
				strings.Join(model.ProtocolNames(), ", "))
		}
		return model.Protocol(named), nil
	}
	if known := model.MadeFor(cfg.Model); known != nil {
		return model.Protocol(known.Name), nil
	}
	if strings.HasPrefix(cfg.Model, "gpt-") {
		return model.Responses, nil
	}
	if cfg.ModelURL != "" {
		return model.Anthropic, nil
	}
	for _, name := range model.ProtocolNames() {
		switch found := model.ConfigFromEnv(model.Protocol(name), getenv); {
		case found.APIKey == "" && found.AuthToken == "" && found.BaseURL == "":
		case name == string(model.Responses) && found.BaseURL != "":
			return model.Chat, nil // local servers speak it, whatever else they speak
		default:
			return found.Protocol, nil
		}
	}
	return model.Anthropic, nil
}

func (e endpoint) client(maxRetries int, onRetry func(model.RetryInfo)) (model.Client, error) {
	cfg := e.config
	cfg.MaxRetries, cfg.OnRetry = maxRetries, onRetry
	return model.New(cfg)
}
