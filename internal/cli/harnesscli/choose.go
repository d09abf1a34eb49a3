package harnesscli

import (
	"context"
	"net/url"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"

	"github.com/fit-eval/fit/agent"
	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/sandbox"
)

// agentOptions say who does the work, and with which model.
type agentOptions struct {
	agent    console.Choice
	model    string
	modelURL string
	auth     console.Choice
}

func (o *agentOptions) register(flags *pflag.FlagSet, registry *agent.Registry) {
	o.agent.Choices = registry.IDs()
	o.auth.Choices = []string{"subscription", "apikey"}
	flags.Var(&o.agent, "agent", "agent to run (default: the first that is installed)")
	flags.StringVar(&o.model, "agent-model", "", "model of the agent (default: the agent's own)")
	flags.StringVar(&o.model, "model", "", "the same as --agent-model")
	flags.StringVar(&o.modelURL, "model-url", "",
		"model endpoint the agent talks to, without /v1: a proxy, a local server or the scripted model (also "+
			"FIT_MODEL_URL)")
	flags.Var(&o.auth, "auth", "how the agent is logged in, where there is a choice")
}

// choice is the agent that was chosen, ready to be started.
type choice struct {
	agent        agent.Agent
	installation agent.Installation
	model        string
	modelURL     string
	spawner      sandbox.ProcessSpawner
}

// choose finds the agent and makes sure that it is there before anything else is done.
func (o *agentOptions) choose(ctx context.Context, con *console.Console, registry *agent.Registry) (choice, error) {
	chosen := choice{model: o.model, modelURL: o.modelURL, spawner: localSpawner()}
	if chosen.modelURL == "" {
		chosen.modelURL = con.Getenv("FIT_MODEL_URL")
	}
	if err := checkURL(chosen.modelURL); err != nil {
		return choice{}, err
	}
	host := hostOf(con, chosen.spawner)
	var err error
	if o.agent.Value == "" {
		chosen.agent, chosen.installation, err = registry.First(ctx, host)
	} else {
		if chosen.agent, err = registry.Get(o.agent.Value); err != nil {
			return choice{}, console.Exit(console.ExitUsage, err)
		}
		chosen.installation, err = chosen.agent.Probe(ctx, host)
	}
	if err != nil {
		return choice{}, console.Exit(console.ExitIncomplete, err)
	}
	return chosen, nil
}

func checkURL(address string) error {
	if address == "" {
		return nil
	}
	if parsed, err := url.Parse(address); err == nil && (parsed.Scheme == "http" || parsed.Scheme == "https") &&
		parsed.Host != "" {
		return nil
	}
	return console.Usagef("--model-url %q is no address; it begins with http:// or https:// and names a host", address)
}

// hostOf is this machine as agents see it when they are looked for.
func hostOf(con *console.Console, spawner sandbox.ProcessSpawner) agent.Host {
	host := agent.Host{Environ: con.Environ, Spawner: spawner}
	if cache, err := os.UserCacheDir(); err == nil {
		host.CacheDir = filepath.Join(cache, "fit")
	}
	return host
}
