package acp

import (
	"fmt"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/gateway"
	"github.com/fit-eval/fit/internal/model/wire"
)

// Upstreams implements agent.Routed: a program that can be given another endpoint can be given the
// gateway. The program decides which of its protocols it speaks.
func (a *Agent) Upstreams(cfg agent.Config) ([]gateway.Upstream, error) {
	e := a.entry
	if cfg.ModelURL == "" {
		return nil, fmt.Errorf("agent %s finds its model by itself; with --model-url, calls go through the "+
			"gateway", e.ID)
	}
	key := e.key(cfg.Environ)
	return gateway.Everywhere(cfg.ModelURL, func(*wire.Info) string { return key }), nil
}

// key returns the key of the model, from the first variable that is set; empty where none is.
func (e Entry) key(environ []string) string {
	for _, name := range e.Keys {
		if value := agent.Getenv(environ, name); value != "" {
			return value
		}
	}
	return ""
}
