// Package doctorcli is the command fit doctor: what this machine has, what it lacks, and how to get
// it.
package doctorcli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/fit-eval/fit/agent"
	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/sandbox"
)

// Finding is one line of the diagnosis.
type Finding struct {
	Subject string `json:"subject"` // agent, credential, sandbox, tool
	Name    string `json:"name"`
	Status  string `json:"status"` // ok, missing, limited
	Detail  string `json:"detail,omitempty"`
	// Fix is the exact command that gets what is missing.
	Fix string `json:"fix,omitempty"`
}

// The statuses of a finding.
const (
	statusOK      = "ok"
	statusMissing = "missing"
	statusLimited = "limited"
)

// New returns the command.
func New(con *console.Console, registry *agent.Registry) *cobra.Command {
	format := console.Choice{Value: "text", Choices: []string{"text", "json"}}
	command := &cobra.Command{
		Use:   "doctor",
		Short: "Tell which agents, credentials and tools this machine has, and how to get what is missing",
		Long: `Tell which agents, credentials and tools this machine has, and how to get what is missing.

It exits with 0 when at least one agent can be run, and with 3 otherwise. "fit demo" always works: it needs neither a key nor an agent.`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return run(command.Context(), con, registry, format.Value)
		},
	}
	command.Flags().Var(&format, "format", "how to print the findings")
	return command
}

func run(ctx context.Context, con *console.Console, registry *agent.Registry, format string) error {
	findings, runnable := examine(ctx, con, registry)
	if format == "json" {
		encoder := json.NewEncoder(con.Stdout)
		encoder.SetIndent("", "  ")
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(map[string]any{"runnable": runnable, "findings": findings}); err != nil {
			return err
		}
	} else if err := printText(con, findings); err != nil {
		return err
	}
	if !runnable {
		return console.Exitf(console.ExitIncomplete,
			"no agent can be run here yet; every line marked missing says what to do")
	}
	return nil
}

// examine looks at everything and reports whether some agent has all it needs.
func examine(ctx context.Context, con *console.Console, registry *agent.Registry) (findings []Finding, runnable bool) {
	host := agent.Host{Environ: con.Environ, Spawner: sandbox.NewSpawner()}
	for _, a := range registry.All() {
		info := a.Info()
		installation, err := a.Probe(ctx, host)
		found := agentFinding(info, installation, err)
		findings = append(findings, found)
		if found.Status == statusMissing {
			continue
		}
		login := loginFinding(info, installation)
		findings = append(findings, login)
		runnable = runnable || login.Status == statusOK
	}
	findings = append(findings, sandboxFindings(ctx)...)
	return append(findings, toolFindings()...), runnable
}

func agentFinding(info agent.Info, installation agent.Installation, err error) Finding {
	finding := Finding{
		Subject: "agent",
		Name:    string(info.ID),
		Status:  statusOK,
		Detail:  installation.Version,
	}
	if installation.Path != "" {
		finding.Detail += "  " + installation.Path
	}
	var notFound *agent.NotFoundError
	switch {
	case errors.As(err, &notFound):
		finding.Status, finding.Detail, finding.Fix = statusMissing, "", notFound.Hint
	case err != nil:
		finding.Status, finding.Detail, finding.Fix = statusMissing, err.Error(), info.InstallHint
	}
	return finding
}

func loginFinding(info agent.Info, installation agent.Installation) Finding {
	finding := Finding{
		Subject: "credential",
		Name:    string(info.ID),
		Status:  statusOK,
		Detail:  installation.Login,
	}
	if installation.Login == "" {
		finding.Status = statusMissing
		finding.Detail = "no key or login found"
		finding.Fix = "set the key of its vendor in the environment, or point --model-url at an endpoint"
		if info.LoginHint != "" {
			finding.Fix = info.LoginHint
		}
	}
	return finding
}

func sandboxFindings(ctx context.Context) []Finding {
	var findings []Finding
	for _, capability := range sandbox.Detect(ctx).List() {
		finding := Finding{
			Subject: "sandbox",
			Name:    capability.Name,
			Status:  statusOK,
			Detail:  capability.Detail,
		}
		if !capability.OK {
			finding.Status, finding.Fix = statusLimited, capability.Fix
		}
		findings = append(findings, finding)
	}
	return findings
}

// toolFindings are the programs that some commands use.
func toolFindings() []Finding {
	var findings []Finding
	for _, tool := range []struct{ name, use, fix string }{
		{"git", "workspaces and diffs", "apt-get install git"},
		{"bash", "the built-in agent's shell", "apt-get install bash"},
	} {
		finding := Finding{Subject: "tool", Name: tool.name, Status: statusOK}
		path, err := exec.LookPath(tool.name)
		finding.Detail = path
		if err != nil {
			finding.Status, finding.Detail, finding.Fix = statusMissing, "needed for "+tool.use, tool.fix
		}
		findings = append(findings, finding)
	}
	if runtime.GOOS != "linux" {
		findings = append(findings, Finding{
			Subject: "system",
			Name:    runtime.GOOS,
			Status:  statusLimited,
			Detail:  "agents run without a sandbox here, and processes are killed by group only",
		})
	}
	return findings
}

func printText(con *console.Console, findings []Finding) error {
	table := tabwriter.NewWriter(con.Stdout, 0, 8, 2, ' ', 0)
	for _, f := range findings {
		detail := strings.TrimSpace(f.Detail)
		if f.Fix != "" {
			detail = strings.TrimSpace(detail + "  → " + f.Fix)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", f.Status, f.Subject, f.Name, detail)
	}
	return table.Flush()
}
