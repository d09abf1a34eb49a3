// Package doctorcli is the command fit doctor: what this machine has, what it lacks, and how to get
// it.
package doctorcli

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/git"
	"github.com/fit-eval/fit/internal/jsonenc"
	"github.com/fit-eval/fit/internal/sandbox"
)

// finding is one line of the diagnosis.
type finding struct {
	Subject string `json:"subject"` // model, agent, credential, sandbox, tool
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
	var format console.Format
	command := &cobra.Command{
		Use: "doctor",
		Short: "Check this machine's setup: agents, credentials and tools, with an install command for each missing " +
			"one",
		Long: `Check this machine's setup: agents, credentials and tools, with an install command for each missing one.

The exit code is 0 if at least one agent can be run, and 3 otherwise. "fit demo" always works: it needs neither a key
nor an agent.`,
		Example: `  fit doctor
  fit doctor --format json`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return run(command.Context(), con, registry, format.Value)
		},
	}
	format.Register(command.Flags(), "output format")
	return command
}

func run(ctx context.Context, con *console.Console, registry *agent.Registry, format string) error {
	findings, runnable := examine(ctx, con, registry)
	if err := ctx.Err(); err != nil {
		return err // not everything was looked at
	}
	if format == "json" {
		found := map[string]any{"runnable": runnable, "findings": findings}
		if err := jsonenc.WriteIndented(con.Stdout, found); err != nil {
			return err
		}
	} else if err := printText(con, findings); err != nil {
		return err
	}
	if !runnable {
		return console.Exitf(console.ExitIncomplete,
			"no agent is ready to run; the lines marked \"missing\" show how to fix that")
	}
	return nil
}

// examine looks at everything and reports whether some agent has all it needs.
func examine(ctx context.Context, con *console.Console, registry *agent.Registry) (findings []finding, runnable bool) {
	host := agent.Host{Environ: con.Environ, Spawner: sandbox.NewSpawner()}
	url := con.Getenv("FIT_MODEL_URL")
	if url != "" && !strings.HasPrefix(url, "http://") && !strings.HasPrefix(url, "https://") {
		findings = append(findings, finding{
			Subject: "model",
			Name:    "FIT_MODEL_URL",
			Status:  statusMissing,
			Detail:  "it is not a valid URL",
			Fix:     "use a URL that begins with http:// or https://, or unset it",
		})
		url = ""
	}
	for _, a := range registry.All() {
		info := a.Info()
		installation, err := a.Probe(ctx, host)
		found := agentFinding(info, installation, err)
		findings = append(findings, found)
		if found.Status == statusMissing {
			continue
		}
		if url != "" && installation.Login == "" {
			installation.Login = "not needed with FIT_MODEL_URL"
		}
		login := loginFinding(info, installation)
		findings = append(findings, login)
		runnable = runnable || login.Status == statusOK
	}
	findings = append(findings, sandboxFindings(ctx)...)
	return append(findings, toolFindings(ctx)...), runnable
}

func agentFinding(info agent.Info, installation agent.Installation, err error) finding {
	line := finding{
		Subject: "agent",
		Name:    string(info.ID),
		Status:  statusOK,
		Detail:  installation.Version,
	}
	if installation.Path != "" {
		line.Detail += "  " + installation.Path
	}
	var notFound *agent.NotFoundError
	switch {
	case errors.As(err, &notFound):
		line.Status, line.Detail, line.Fix = statusMissing, "", notFound.Hint
	case err != nil:
		line.Status, line.Detail, line.Fix = statusMissing, err.Error(), info.InstallHint
	}
	return line
}

func loginFinding(info agent.Info, installation agent.Installation) finding {
	line := finding{
		Subject: "credential",
		Name:    string(info.ID),
		Status:  statusOK,
		Detail:  installation.Login,
	}
	if installation.Login == "" {
		line.Status = statusMissing
		line.Detail = "no key or login found"
		line.Fix = "set its vendor's API key in the environment, or point --model-url at an endpoint"
		if info.LoginHint != "" {
			line.Fix = info.LoginHint
		}
	}
	return line
}

func sandboxFindings(ctx context.Context) []finding {
	var findings []finding
	detected := sandbox.Detect(ctx)
	capabilities := detected.List()
	if detected.Bwrap.OK {
		capabilities = append(capabilities, sandbox.TryEscape(ctx))
	}
	for _, capability := range capabilities {
		line := finding{
			Subject: "sandbox",
			Name:    capability.Name,
			Status:  statusOK,
			Detail:  capability.Detail,
		}
		if !capability.OK {
			line.Status, line.Fix = statusLimited, capability.Fix
		}
		findings = append(findings, line)
	}
	return findings
}

// testedGit is the oldest git that fit is tested with.
const testedGit = "2.39"

// checkGit says so where git is older. An older one ignores settings that keep it from running what
// a repository of an agent names.
func (f *finding) checkGit(ctx context.Context) {
	printed, err := git.Output(ctx, "", "version")
	version, _, _ := strings.Cut(strings.TrimPrefix(printed, "git version "), " ")
	f.Detail = version + "  " + f.Detail
	if err == nil && versionBefore(version, testedGit) {
		f.Status = statusLimited
		f.Detail += "  older than " + testedGit + ", so git in hooks may run what an agent has planted"
		f.Fix = "install git " + testedGit + " or newer"
	}
}

// versionBefore compares the numbers of two versions. What is not a number is as low as can be.
func versionBefore(version, other string) bool {
	numbers := func(text string) []int {
		var list []int
		for part := range strings.SplitSeq(text, ".") {
			n, _ := strconv.Atoi(part)
			list = append(list, n)
		}
		return list
	}
	return slices.Compare(numbers(version), numbers(other)) < 0
}

// neededTools is how many of the tools every experiment needs; the others are for some tasks.
const neededTools = 2

// toolFindings are the programs that some commands use.
func toolFindings(ctx context.Context) []finding {
	var findings []finding
	for i, tool := range []struct{ name, use, fix string }{
		{"git", "workspaces and diffs", "apt-get install git"},
		{"bash", "the built-in agent's shell", "apt-get install bash"},
		{"podman", "tasks in containers", "apt-get install podman"},
		{"docker", "tasks in containers, without podman", "apt-get install docker.io"},
		{"node", "agents from npm, and hidden tests in JavaScript", "apt-get install nodejs npm"},
		{"python3", "hidden tests in Python", "apt-get install python3"},
		{"go", "hidden tests in Go", "see https://go.dev/dl"},
		{"apm", "families with an apm.yml", "see https://github.com/microsoft/apm"},
	} {
		line := finding{Subject: "tool", Name: tool.name, Status: statusOK}
		path, err := exec.LookPath(tool.name)
		line.Detail = path
		if err != nil {
			line.Status, line.Detail, line.Fix = statusMissing, "needed for "+tool.use, tool.fix
			if i >= neededTools {
				line.Status, line.Detail = statusLimited, "not installed; only for "+tool.use
			}
		} else if tool.name == "git" {
			line.checkGit(ctx)
		}
		findings = append(findings, line)
	}
	if runtime.GOOS != "linux" {
		findings = append(findings, finding{
			Subject: "system",
			Name:    runtime.GOOS,
			Status:  statusLimited,
			Detail:  "agents run without a sandbox here, and processes are killed by group only",
		})
	}
	return findings
}

func printText(con *console.Console, findings []finding) error {
	table := con.Table()
	for _, f := range findings {
		detail := strings.TrimSpace(f.Detail)
		if f.Fix != "" {
			detail = strings.TrimSpace(detail + "  → " + f.Fix)
		}
		status := f.Status
		if f.Subject == "agent" && status == statusOK {
			status = "installed" // it is ready only with a credential
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", status, f.Subject, f.Name, detail)
	}
	return table.Flush()
}
