package view

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/fit-eval/fit/internal/experiment"
	"github.com/fit-eval/fit/internal/report/failure"
)

// repeat returns a command that repeats the experiment, as the plan describes it; empty where the
// plan does not say all of it, such as the file of faults. What was chosen by itself is part of how
// it was run.
func (s *snapshot) repeat() string {
	if s.plan == nil || s.plan.Family.Origin == "" || s.plan.Faults != "" || s.plan.Gateway != "" {
		return ""
	}
	ran := s.planned()
	var spend experiment.Budgets // the last process's: it is no part of what is measured
	if s.process != nil {
		spend = s.process.Budgets
	}
	return s.command(ran.Isolation, ran.Network, spend)
}

// continuation returns the command with which an experiment in which no process works goes on, or
// that grades again what is left of it; empty where there is none. A budget that stopped it is
// raised: with the same one it would stop again.
func (s *snapshot) continuation(entry *listEntry) string {
	if entry.Kind != kindBenchmark || s.repeat() == "" || entry.State != runIncomplete && entry.State != runEmpty ||
		s.process != nil && s.process.Status == experiment.Decided {
		return ""
	}
	dir := shellQuote(entry.Dir)
	var causes []failure.Cause
	if s.report != nil {
		for i := range s.report.Groups {
			causes = append(causes, s.report.Groups[i].Causes...)
		}
	}
	ended := entry.Done == entry.Planned
	if ended && failure.OnlyGraders(causes) {
		return "fit-benchmark grade --family " + shellQuote(s.plan.Family.Origin) + " " + dir
	}
	var budgets experiment.Budgets
	if s.process != nil {
		budgets = s.process.Budgets
		if s.process.Status == experiment.OverBudget {
			probes, _ := experiment.ReadProbes(s.at.path) // what they cost is little
			budgets = s.plan.Sufficient(budgets, s.found.Records, probes)
		}
	}
	text := s.command(s.plan.Isolation, s.plan.Network, budgets) + " --output " + dir
	if ended { // what has no verdict is not run again by itself
		text += " --retry-errors"
	}
	return text
}

// command returns the command of the plan with a sandbox and a network. With those that were asked
// for it continues the experiment.
func (s *snapshot) command(isolation, network string, spend experiment.Budgets) string {
	plan := s.plan
	words := []string{"fit-benchmark", "run", "--family", plan.Family.Origin, "--runs", strconv.Itoa(plan.Runs)}
	controlled := false
	for i := range plan.Arms {
		switch arm := &plan.Arms[i].Arm; arm.Name {
		case experiment.ControlShadow, experiment.ControlKnown:
			controlled = true
		default:
			words = append(words, "--arm", armFlag(arm))
		}
	}
	if plan.Family.Selected != "" {
		for i := range plan.Tasks {
			words = append(words, "--task", plan.Tasks[i].ID)
		}
	}
	words = append(words, "--seed", strconv.FormatUint(plan.Seed, 10))
	for _, flag := range []struct {
		name string
		set  bool
	}{
		{"--controls", controlled},
		{"--stop-early", plan.Stop != nil},
		{"--no-probe", s.process != nil && s.process.NoProbe},
	} {
		if flag.set {
			words = append(words, flag.name)
		}
	}
	isolation, _, _ = strings.Cut(isolation, " ")
	q, usual := plan.Asked(), (&experiment.Plan{}).Asked()
	if plan.Stop != nil {
		q.Alpha = plan.Stop.Alpha
	}
	for _, flag := range [][2]string{
		{"--shard", textOf(set(plan.Shard))},
		{"--isolation", isolation},
		{"--network", network},
		{"--measure", other(q.Measure, usual.Measure)},
		{"--pairs", other(q.Pairs, usual.Pairs)},
		{"--alpha", textOf(set(other(q.Alpha, usual.Alpha)))},
		{"--margin", textOf(set(q.Margin))},
		{"--non-inferior", textOf(set(q.NonInferior))},
		{"--effect", textOf(set(q.Effect))},
		{"--judge-agent", plan.Judge.Agent},
		{"--judge-model", plan.Judge.Model},
		{"--judge-votes", textOf(set(plan.Judge.Votes))},
		{"--concurrency", textOf(set(plan.Concurrency))},
		{"--max-trace-mb", textOf(set(plan.MaxOutput >> 20))},
		{"--timeout", textOf(set(time.Duration(plan.AgentTimeoutMs) * time.Millisecond))},
		{"--max-cost-usd", limitOf(spend.Experiment.USD, "DOLLARS")},
		{"--max-tokens", limitOf(spend.Experiment.Tokens, "TOKENS")},
		{"--max-time", limitOf(spend.Experiment.Wall, "TIME")},
		{"--arm-max-cost-usd", limitOf(spend.Arm.USD, "DOLLARS")},
		{"--arm-max-tokens", limitOf(spend.Arm.Tokens, "TOKENS")},
		{"--arm-max-time", limitOf(spend.Arm.Wall, "TIME")},
		{"--cell-max-cost-usd", textOf(set(plan.Cell.USD))},
		{"--cell-max-tokens", textOf(set(plan.Cell.Tokens))},
		{"--cell-max-time", textOf(set(plan.Cell.Wall))},
	} {
		if flag[1] != "" {
			words = append(words, flag[0], flag[1])
		}
	}
	for i, word := range words {
		words[i] = shellQuote(word)
	}
	return strings.Join(words, " ")
}

// armFlag writes an arm as the command line takes it. The values of variables are not in the plan.
func armFlag(arm *experiment.Arm) string {
	text := arm.Name + "=agent:" + arm.Agent
	for _, part := range [][2]string{
		{"model", arm.Model},
		{"modelUrl", withoutUser(arm.ModelURL)},
		{"profile", arm.Profile},
		{"skills", arm.Skills},
		{"context", arm.Context},
		{"instructions", arm.Instructions},
		{"files", arm.Files},
		{"mcp", arm.MCP},
		{"settings", arm.Settings},
		{"effort", arm.Effort},
		{"temperature", textOf(arm.Temperature)},
		{"prompt", arm.Prompt},
		{"tools", strings.Join(arm.AllowedTools, "+")},
		{"maxTurns", textOf(set(arm.MaxTurns))},
		{"auth", arm.Auth},
		{"lead", arm.Lead},
		{"leadModel", arm.LeadModel},
	} {
		value := part[1]
		if value == "" {
			continue
		}
		if strings.ContainsAny(value, ",\"\\@") {
			value = `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(value) + `"`
		}
		text += "," + part[0] + ":" + value
	}
	return text
}

// withoutUser leaves out of an address what may be a secret.
func withoutUser(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.User == nil && u.RawQuery == "" {
		return address
	}
	u.User, u.RawQuery = nil, ""
	return u.String()
}

// set returns a value that is not the zero of its type; nil where it is.
func set[T comparable](value T) *T {
	if value == *new(T) {
		return nil
	}
	return &value
}

// other returns a value that is not the usual one; zero where it is.
func other[T comparable](value, usual T) (none T) {
	if value == usual {
		return none
	}
	return value
}

// limitOf writes what may be spent, and its unit where readers must choose how much.
func limitOf[T int64 | float64 | time.Duration](limit T, unit string) string {
	if limit < 0 {
		return unit
	}
	return textOf(set(limit))
}

// textOf writes a number; nil is empty.
func textOf[T any](value *T) string {
	if value == nil {
		return ""
	}
	return fmt.Sprint(*value)
}

// shellQuote writes a word for a shell; most need no quotes.
func shellQuote(word string) string {
	const harmless = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:=,@+"
	if word != "" && strings.Trim(word, harmless) == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
