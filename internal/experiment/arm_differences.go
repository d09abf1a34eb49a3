package experiment

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/fit-eval/fit/ledger"
)

// Differences says in short words everything in which an arm differs from the baseline, such as
// "skill csv-tools", "instructions AGENTS.md", "model gpt-5" and "maxTurns 30"; the lead is among
// them. What the baseline has and the arm has not is "no skill csv-tools". Two arms that are the
// same have none.
func Differences(base, arm PlannedArm) []string {
	var all []string
	note := func(what, before, after string) {
		switch {
		case before == after:
		case after == "":
			all = append(all, "no "+what)
		default:
			all = append(all, what+" "+after)
		}
	}
	note("agent", versioned(base.Agent, base.AgentVersion), versioned(arm.Agent, arm.AgentVersion))
	note("model", base.Model, arm.Model)
	note("effort", base.Effort, arm.Effort)
	note("temperature", degree(base.Temperature), degree(arm.Temperature))
	note("context", base.contextWord(), arm.contextWord())
	note("profile", base.Profile, arm.Profile)
	all = append(all, broughtDifferences(base.Brings, arm.Brings)...)
	if base.Prompt != arm.Prompt {
		all = append(all, promptWord(arm.Prompt))
	}
	note("tools", strings.Join(base.AllowedTools, "+"), strings.Join(arm.AllowedTools, "+"))
	note("maxTurns", number(base.MaxTurns), number(arm.MaxTurns))
	note("auth", base.Auth, arm.Auth)
	for _, name := range variables(base.Env, arm.Env) {
		note("env", sign(name, base.Env), sign(name, arm.Env))
	}
	note("lead", versioned(base.Lead, base.LeadVersion), versioned(arm.Lead, arm.LeadVersion))
	note("leadModel", base.LeadModel, arm.LeadModel)
	note("modelUrl", base.ModelURL, arm.ModelURL)
	return all
}

// contextWord is the context of an arm; plans of earlier versions say nothing, and had none.
func (a *PlannedArm) contextWord() string {
	if a.Context == "" {
		return contextNone
	}
	return a.Context
}

func versioned(id, version string) string { return strings.TrimSpace(id + " " + version) }

func degree(value *float64) string {
	if value == nil {
		return ""
	}
	return strconv.FormatFloat(*value, 'g', -1, 64)
}

func number(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

func promptWord(text string) string {
	if text == "" {
		return "no prompt"
	}
	return "prompt"
}

// variables returns the names of variables in which two arms differ.
func variables(base, arm map[string]string) []string {
	names := maps.Clone(base)
	if names == nil {
		names = map[string]string{}
	}
	maps.Copy(names, arm)
	return slices.DeleteFunc(slices.Sorted(maps.Keys(names)), func(name string) bool {
		before, had := base[name]
		after, has := arm[name]
		return had == has && before == after
	})
}

// sign distinguishes two values of a variable without showing them.
func sign(name string, env map[string]string) string {
	if _, set := env[name]; !set {
		return ""
	}
	return name + "=…"
}

// broughtDifferences compares what two arms bring. A second version of the same skill is named with
// the beginning of its digest.
func broughtDifferences(base, arm []Brought) []string {
	key := func(b Brought) string {
		if b.Kind == ledger.PieceInstructions || b.Kind == ledger.PieceSettings {
			return b.Kind // one replaces the other
		}
		return b.Kind + " " + b.Name
	}
	find := func(all []Brought, b Brought) *Brought {
		at := slices.IndexFunc(all, func(other Brought) bool { return key(other) == key(b) })
		if at < 0 {
			return nil
		}
		return &all[at]
	}
	var diffs []string
	for _, b := range arm {
		switch before := find(base, b); {
		case before == nil:
			diffs = append(diffs, b.Kind+" "+b.Name)
		case before.Digest != b.Digest:
			diffs = append(diffs, fmt.Sprintf("%s %s (%s, not %s)", b.Kind, b.Name, short(b.Digest),
				short(before.Digest)))
		}
	}
	for _, b := range base {
		if find(arm, b) == nil {
			diffs = append(diffs, "no "+b.Kind+" "+b.Name)
		}
	}
	return diffs
}

// short returns the part of a digest that people compare.
func short(digest string) string {
	digest = strings.TrimPrefix(digest, "sha256:")
	return digest[:min(len(digest), 8)]
}
