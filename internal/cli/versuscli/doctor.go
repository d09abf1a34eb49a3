package versuscli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/cli/experimentcli"
	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/internal/gateway"
	"github.com/fit-eval/fit/internal/jsonenc"
	"github.com/fit-eval/fit/internal/sandbox"
	"github.com/fit-eval/fit/internal/scratch"
	"github.com/fit-eval/fit/internal/workspace"
)

// examined is what doctor says about an agent.
type examined struct {
	ID      string `json:"id"`
	Binary  string `json:"binary,omitempty"` // empty for an agent that is part of this program
	SHA256  string `json:"sha256,omitempty"`
	Version string `json:"version,omitempty"`
	// AuthMode, Argv and Environment are those of a cell that is started now; Environment has the
	// names of the variables that its process gets. Only those that the task or the arm sets, and
	// those of a task's build caches, come on top.
	AuthMode    string   `json:"authMode,omitempty"`
	Argv        []string `json:"argv,omitempty"`
	Environment []string `json:"environment,omitempty"`
	// Problem is why the agent cannot be run; empty if it can.
	Problem string `json:"problem,omitempty"`
}

func newDoctor(con *console.Console, registry *agent.Registry) *cobra.Command {
	var format console.Format
	var modelURL string
	auth := console.Choice{Choices: []string{agent.AuthSubscription, agent.AuthAPIKey}}
	command := &cobra.Command{
		Use:   "doctor [AGENT]…",
		Short: "Show for each agent its program, version, login, command line and environment",
		Long: `Show for each agent what a run would start: the program with its SHA-256 and version, how it is logged
in, its command line, and the names of all variables that it gets. Tasks and arms may set more. Nothing is started
except to ask for the version.

The exit code is 3 if a named agent cannot be run or, without names, if none can.`,
		Example: fmt.Sprintf(`  fit versus doctor
  fit versus doctor %s %s --format json`, registry.Examples(2)...),
		RunE: func(command *cobra.Command, args []string) error {
			d := &doctor{
				con:      con,
				registry: registry,
				auth:     auth.Value,
				modelURL: modelURL,
			}
			return d.run(command.Context(), args, format.JSON())
		},
	}
	format.Register(command.Flags(), "output format")
	format.RegisterRobot(command.Flags())
	command.Flags().Var(&auth, "auth", "which credentials to use if an agent accepts both")
	command.Flags().StringVar(&modelURL, "model-url", con.Getenv("FIT_MODEL_URL"),
		"URL of the model, without /v1 (also FIT_MODEL_URL)")
	return command
}

// doctor is one call of the command.
type doctor struct {
	con            *console.Console
	registry       *agent.Registry
	auth, modelURL string
}

func (d *doctor) run(ctx context.Context, ids []string, asJSON bool) error {
	named := len(ids) > 0
	if !named {
		ids = d.registry.IDs()
	}
	var found []examined
	var problems []string
	for _, id := range ids {
		chosen, err := d.registry.Get(id)
		if err != nil {
			return console.Exit(console.ExitUsage, err)
		}
		one := d.examine(ctx, chosen)
		if one.Problem != "" {
			problems = append(problems, id)
		}
		found = append(found, one)
	}
	if err := ctx.Err(); err != nil {
		return err // not everything was looked at
	}
	if asJSON {
		if err := jsonenc.WriteIndented(d.con.Stdout, map[string]any{"agents": found}); err != nil {
			return err
		}
	} else {
		_ = d.con.Folded(func(w io.Writer) error {
			for _, one := range found {
				one.print(w)
			}
			return nil
		})
	}
	if len(problems) == len(ids) || named && len(problems) > 0 {
		return console.Exitf(console.ExitIncomplete, "cannot be run here: %s", strings.Join(problems, ", "))
	}
	return nil
}

// examine looks for an agent and asks it what it would start.
func (d *doctor) examine(ctx context.Context, chosen agent.Agent) examined {
	host := experimentcli.Host(d.con)
	one := examined{ID: string(chosen.Info().ID)}
	installation, err := chosen.Probe(ctx, host)
	if err == nil {
		one.Binary, one.Version = installation.Path, installation.Version
		one.SHA256, err = agent.Digest(host, installation)
	}
	if err == nil && installation.Path != "" {
		err = d.rehearse(ctx, chosen, installation, &one)
	}
	if err != nil {
		one.Problem = err.Error()
	}
	return one
}

// rehearse starts a session as a cell does, with a gateway, whose process is never started.
func (d *doctor) rehearse(ctx context.Context, chosen agent.Agent, found agent.Installation, one *examined) error {
	own, err := scratch.Make("", "fit-doctor-")
	if err != nil {
		return err
	}
	defer func() { _ = own.Remove() }()
	room := own.Path
	spawner := &neverSpawner{}
	proxy := &gateway.OnDemand{}
	defer func() { _ = proxy.Close() }()
	session, err := agent.Start(ctx, chosen, agent.Config{
		Name:         "agent",
		Dir:          room,
		Home:         filepath.Join(room, "home"),
		Environ:      d.con.Environ,
		Auth:         d.auth,
		ModelURL:     d.modelURL,
		Installation: &found,
		OneShot:      true,
		Spawner:      spawner,
		Events:       func([]byte) {},
		ExtraEnv:     []string{sandbox.RunMarker + "=rehearsal", workspace.PortVariable + "=0"},
		Gateway: agent.Gateway{Join: func(cfg agent.Config, upstreams []gateway.Upstream) (*gateway.Seat, error) {
			return proxy.Join(gateway.Member{Name: cfg.Name, Upstreams: upstreams})
		}},
		Started: func(started agent.Started) { one.AuthMode = started.Auth },
	})
	if err != nil {
		return err
	}
	_, err = session.Prompt(ctx, "ready?")
	if err := errors.Join(err, session.Close()); !errors.Is(err, errDryRun) {
		return errors.Join(errors.New("no process would be started"), err)
	}
	names := []string{room, "{workspace}"}
	if address := proxy.URL(); address != "" {
		names = append(names, address, "{gateway}")
	}
	hide := strings.NewReplacer(names...)
	for _, word := range spawner.spec.Argv {
		one.Argv = append(one.Argv, hide.Replace(word))
	}
	for _, variable := range spawner.spec.Env {
		name, _, _ := strings.Cut(variable, "=")
		one.Environment = append(one.Environment, name)
	}
	slices.Sort(one.Environment)
	return nil
}

// neverSpawner keeps what it is asked to start and starts nothing.
type neverSpawner struct{ spec sandbox.SpawnSpec }

var errDryRun = errors.New("a dry run starts nothing")

// Spawn implements sandbox.ProcessSpawner. It prints one empty event, with which agents say what
// they have started.
func (s *neverSpawner) Spawn(_ context.Context, spec sandbox.SpawnSpec, stdout, _ io.Writer,
) (sandbox.SpawnResult, error) {
	s.spec = spec
	if _, err := io.WriteString(stdout, "{}\n"); err != nil {
		return sandbox.SpawnResult{}, err
	}
	return sandbox.SpawnResult{}, errDryRun
}

func (e examined) print(w io.Writer) {
	if e.Problem != "" {
		fmt.Fprintf(w, "%s\tmissing\t%s\n", e.ID, display.Line(e.Problem))
		return
	}
	fmt.Fprintf(w, "%s %s\n", e.ID, e.Version)
	for _, line := range []struct{ name, text string }{
		{"program", e.Binary},
		{"sha256", e.SHA256},
		{"login", e.AuthMode},
		{"command", strings.Join(e.Argv, " ")},
		{"environment", strings.Join(e.Environment, " ")},
	} {
		if line.text != "" {
			fmt.Fprintf(w, "  %-12s %s\n", line.name, display.Line(line.text))
		}
	}
}
