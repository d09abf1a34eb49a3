package task

import (
	"cmp"
	"fmt"
	"strings"
	"time"
)

// familyFile is family.yaml: what is true for the whole family, and defaults for its tasks.
type familyFile struct {
	Name    string   `yaml:"name" doc:"Name of the family, for people."`
	Secrets []string `yaml:"secrets" doc:"Variables of the environment files whose values are redacted from everything that is written." pattern:"^[A-Za-z_][A-Za-z0-9_]*$"`
	Public  []string `yaml:"public" doc:"Variables that are not secrets although their names look like it." pattern:"^[A-Za-z_][A-Za-z0-9_]*$"`

	Calibration string `yaml:"calibration" doc:"File of this directory with human verdicts on work that the judge has judged; reports correct the judge's pass rate by it."`

	Images map[string]string `yaml:"images" doc:"Images to use in place of others, such as ubuntu:24.04: local/base; also in the FROM lines of Dockerfiles."`

	Data     datasetFile  `yaml:",inline"`
	SWE      swebenchFile `yaml:",inline"`
	TaskFile `yaml:",inline"`
}

// TaskFile is task.yaml. Settings that it lacks come from family.yaml, and then from the defaults.
type TaskFile struct {
	Tags       []string     `yaml:"tags" doc:"Words to select tasks by."`
	Cluster    string       `yaml:"cluster" doc:"Tasks of one cluster are not independent of each other; intervals take account of it."`
	Scored     *bool        `yaml:"scored" doc:"Whether the task has a score between 0 and 1 beside its verdict."`
	Timeouts   timeoutsFile `yaml:"timeouts" doc:"How long the phases of an attempt may take, such as 90s or 20m."`
	Isolation  string       `yaml:"isolation" doc:"What holds the agent; default: the best that works on the machine." enum:"none,bwrap,podman,docker"`
	Image      string       `yaml:"image" doc:"Image of the container that the task's processes run in."`
	Dockerfile string       `yaml:"dockerfile" doc:"Dockerfile to build that image from, relative to this file; its directory is what it can copy from."`
	Workdir    string       `yaml:"workdir" doc:"Where the working directory is in the container; default: the image's, or /workspace. The agent also finds there what the image has there."`
	User       string       `yaml:"user" doc:"User of the agent in the container: a name, a number or number:number; default: the image's."`
	Workspace  string       `yaml:"workspace" doc:"export: a directory of its own. worktree: a git worktree of repo, which can see the repository's whole history." enum:"export,worktree"`
	Repo       string       `yaml:"repo" doc:"Repository that the working directory starts from: a path relative to this file, or a git URL."`
	Ref        string       `yaml:"ref" doc:"Commit, tag or branch of repo; default: HEAD."`
	Network    networkFile  `yaml:"network" doc:"Who may use the network."`
	Port       *bool        `yaml:"port" doc:"Whether preflight starts a service that graders reach on the port of the attempt; default: whether there is a preflight hook."`
	Checks     []string     `yaml:"checks" doc:"Names of the rows that the invariants hook must produce."`
	Cache      []string     `yaml:"cache" doc:"Build caches to warm once and to mount read-only." enum:"go,npm"`
	Protected  []string     `yaml:"protected" doc:"Globs of files that are put back as they were before grading."`
	Limits     limitsFile   `yaml:"limits" doc:"What the processes of an attempt may use."`
	Tests      testsFile    `yaml:"tests" doc:"How the hidden suite is run and read."`
	Needs      []string     `yaml:"needs" doc:"Labels that a worker of a fleet must have to run the task." pattern:"^[A-Za-z0-9][A-Za-z0-9._-]*$"`
	Judge      judgeFile    `yaml:"judge" doc:"How the judge decides, where there is a judge.task.md."`
	Context    string       `yaml:"context" doc:"What agents read of the working directory by themselves: instruction files, skills, sub-agents and commands, or nothing; arms may say otherwise. Default: project." enum:"project,none"`
	Threshold  *float64     `yaml:"threshold" doc:"Score from which a task passes, if no gate fails; default: all scored checks must pass." min:"0" max:"1"`
}

type judgeFile struct {
	Votes int `yaml:"votes" doc:"Independent votes of the judge, of which the majority decides; odd, default 1." min:"1"`
}

type timeoutsFile struct {
	Agent      Duration `yaml:"agent" doc:"The agent's work; default 20m."`
	Preflight  Duration `yaml:"preflight" doc:"The preflight hook; default 2m."`
	Invariants Duration `yaml:"invariants" doc:"The invariants hook; default 2m."`
	Test       Duration `yaml:"test" doc:"Each hidden test file; default 2m."`
	Judge      Duration `yaml:"judge" doc:"The judge; default 10m."`
}

type networkFile struct {
	Agent     *agentNetworkFile `yaml:"agent" doc:"host: the machine's network, the default. model: a loopback on which only its model, its team's tools and the services of its task answer. none: nothing, which only the built-in agent can work with. true is host; false is model with required: false."`
	Required  *bool             `yaml:"required" doc:"Whether a machine that cannot give the agent this network runs nothing; else the agent gets the host's, and the record says so. Default: true, and false for agent: false."`
	Grader    *bool             `yaml:"grader" doc:"Default: false; graders and the services that preflight starts share a loopback of their own."`
	Preflight *bool             `yaml:"preflight" doc:"Preflight and the services that it starts; default: false where graders reach them on a port, else true."`
}

// agentNetworkFile is what agents reach: a word, or a boolean as in earlier versions.
type agentNetworkFile string

// UnmarshalText reads what the schema allows.
func (n *agentNetworkFile) UnmarshalText(text []byte) error {
	*n = agentNetworkFile(strings.ToLower(string(text)))
	return nil
}

// JSONSchema describes how the network of agents is written.
func (agentNetworkFile) JSONSchema() map[string]any {
	return map[string]any{"enum": []any{networkHost, networkModel, networkNone, true, false}}
}

// agentNetwork returns the network that a file asks for, if it does.
func (n networkFile) agentNetwork() (network AgentNetwork, said bool) {
	if n.Agent == nil {
		return AgentNetwork{}, false
	}
	switch word := string(*n.Agent); word {
	case "true":
		network = AgentNetwork{Kind: networkHost}
	case "false":
		network = AgentNetwork{Kind: networkModel}
	default:
		network = AgentNetwork{Kind: word, Required: word != networkHost}
	}
	return network, true
}

// agentNetwork returns the network of the task, else that of the family. A task may change only
// whether the family's is required.
func agentNetwork(own, family networkFile) AgentNetwork {
	network, said := own.agentNetwork()
	if !said {
		if network, said = family.agentNetwork(); !said {
			network.Kind = networkHost
		}
		if family.Required != nil {
			network.Required = *family.Required
		}
	}
	if own.Required != nil {
		network.Required = *own.Required
	}
	network.Required = network.Required && network.Kind != networkHost
	return network
}

type limitsFile struct {
	MemoryMB  int     `yaml:"memoryMB" doc:"Private memory of each process; in a container, the memory of all processes together." min:"1"`
	Processes int     `yaml:"processes" doc:"Processes of the user, or of the container." min:"1"`
	FileMB    int     `yaml:"fileMB" doc:"Size of each file that is written." min:"1"`
	CPUs      float64 `yaml:"cpus" doc:"Processors of a container." min:"0.01"`
	DiskMB    int     `yaml:"diskMB" doc:"By how much all files together may grow; default 16384." min:"1"`
}

type testsFile struct {
	Language string              `yaml:"language" doc:"Language of the suite; default: what its files are written in." enum:"node,go,python,other"`
	Runner   string              `yaml:"runner" doc:"Python only; default: pytest where the tests need it." enum:"pytest,unittest"`
	Command  []string            `yaml:"command" doc:"Command in place of the language's own. {file}, {dir}, {tests}, {report}, {runner} and {nonce} are replaced."`
	Parser   string              `yaml:"parser" doc:"How the command reports." enum:"go-test-json,pytest,node-test,tap,junit,exit-nonce"`
	Report   string              `yaml:"report" doc:"File that the command writes its report to; default: standard output."`
	Files    []string            `yaml:"files" doc:"Globs of the test files, for language other; a glob without a slash is about names in any directory."`
	Weights  map[string]float64  `yaml:"weights" doc:"Weights of checks; default 1."`
	Names    map[string][]string `yaml:"names" doc:"Names of the tests in a check, each of which must be reported exactly once."`
}

// Duration is a time.Duration that is written as 90s or 20m; a number alone is seconds.
type Duration time.Duration

// UnmarshalText reads a duration; it must be positive.
func (d *Duration) UnmarshalText(text []byte) error {
	span := string(text)
	if strings.Trim(span, "0123456789.") == "" {
		span += "s"
	}
	parsed, err := time.ParseDuration(span)
	if err != nil || parsed <= 0 {
		return fmt.Errorf("%q is not a duration: write 90s, 20m or 1h30m", text)
	}
	*d = Duration(parsed)
	return nil
}

// JSONSchema describes how a duration is written.
func (Duration) JSONSchema() map[string]any {
	return map[string]any{
		"type": []any{"string", "number"}, "pattern": `^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`,
		"examples": []string{"90s", "20m", "1h30m"},
	}
}

// The timeouts of a task that names none.
const (
	defaultAgentTimeout = 20 * time.Minute
	defaultHookTimeout  = 2 * time.Minute
	defaultTestTimeout  = 2 * time.Minute
	defaultJudgeTimeout = 10 * time.Minute
)

// settings merges the settings of the task, those of the family, and the defaults, in this order.
func settings(own, family TaskFile, hasPreflight bool) Settings {
	port := said(hasPreflight, own.Port, family.Port)
	return Settings{
		Tags:          append(append([]string(nil), family.Tags...), own.Tags...),
		Cluster:       cmp.Or(own.Cluster, family.Cluster),
		Scored:        cmp.Or(own.Scored, family.Scored),
		Timeouts:      timeouts(own.Timeouts, family.Timeouts),
		Isolation:     cmp.Or(own.Isolation, family.Isolation),
		Workspace:     cmp.Or(own.Workspace, family.Workspace, "export"),
		Repo:          cmp.Or(own.Repo, family.Repo),
		Ref:           cmp.Or(own.Ref, family.Ref),
		AgentNetwork:  agentNetwork(own.Network, family.Network),
		GraderNetwork: said(false, own.Network.Grader, family.Network.Grader),
		// A service that graders talk to is a part of the grading; other hooks may have to fetch
		// things.
		PreflightNetwork: said(!port, own.Network.Preflight, family.Network.Preflight),
		Port:             port,
		Checks:           firstList(own.Checks, family.Checks),
		Cache:            firstList(own.Cache, family.Cache),
		Protected:        append(append([]string(nil), family.Protected...), own.Protected...),
		Limits: Limits{
			MemoryMB:  cmp.Or(own.Limits.MemoryMB, family.Limits.MemoryMB),
			Processes: cmp.Or(own.Limits.Processes, family.Limits.Processes),
			FileMB:    cmp.Or(own.Limits.FileMB, family.Limits.FileMB),
			CPUs:      cmp.Or(own.Limits.CPUs, family.Limits.CPUs),
			DiskMB:    cmp.Or(own.Limits.DiskMB, family.Limits.DiskMB),
		},
		JudgeVotes: cmp.Or(own.Judge.Votes, family.Judge.Votes),
		Needs:      append(append([]string(nil), family.Needs...), own.Needs...),
		Threshold:  cmp.Or(own.Threshold, family.Threshold),
		Context:    cmp.Or(own.Context, family.Context),
	}
}

func timeouts(own, family timeoutsFile) Timeouts {
	pick := func(a, b Duration, byDefault time.Duration) time.Duration {
		return cmp.Or(time.Duration(a), time.Duration(b), byDefault)
	}
	return Timeouts{
		Agent:      pick(own.Agent, family.Agent, defaultAgentTimeout),
		Preflight:  pick(own.Preflight, family.Preflight, defaultHookTimeout),
		Invariants: pick(own.Invariants, family.Invariants, defaultHookTimeout),
		Test:       pick(own.Test, family.Test, defaultTestTimeout),
		Judge:      pick(own.Judge, family.Judge, defaultJudgeTimeout),
	}
}

// merge fills missing settings of the task's tests with those of the family.
func (t testsFile) merge(family testsFile) testsFile {
	return testsFile{
		Language: cmp.Or(t.Language, family.Language),
		Runner:   cmp.Or(t.Runner, family.Runner),
		Command:  firstList(t.Command, family.Command),
		Parser:   cmp.Or(t.Parser, family.Parser),
		Report:   cmp.Or(t.Report, family.Report),
		Files:    firstList(t.Files, family.Files),
		Weights:  t.Weights,
		Names:    t.Names,
	}
}

func firstList[T any](lists ...[]T) []T {
	for _, list := range lists {
		if list != nil {
			return list
		}
	}
	return nil
}

func said(byDefault bool, answers ...*bool) bool {
	if answer := cmp.Or(answers...); answer != nil {
		return *answer
	}
	return byDefault
}
