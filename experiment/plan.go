package experiment

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// PlanVersion is the version of the plan's format. Fields may be added; none is renamed or removed.
const PlanVersion = 1

// Plan says what an experiment is. It is written before anything is run and never changes; running
// the same command again finds it and goes on.
type Plan struct {
	Version   int           `json:"version"`
	ID        string        `json:"id"` // a hash of everything that decides what is measured
	CreatedMs int64         `json:"createdMs"`
	Family    PlannedFamily `json:"family"`
	Tasks     []PlannedTask `json:"tasks"`
	Arms      []PlannedArm  `json:"arms"` // the first is the baseline
	Runs      int           `json:"runs"`
	Seed      uint64        `json:"seed"`
	Shard     Shard         `json:"shard"`
	Judge     PlannedJudge  `json:"judge"`
	Isolation string        `json:"isolation,omitempty"`
	// it decides how far an agent gets, so it is a part of what is measured
	Cell Budget `json:"cellBudget,omitzero"`
	// Stop ends the experiment as soon as it is decided; nil runs it to its end.
	Stop *StopRule `json:"stopEarly,omitempty"`
	// AgentTimeout bounds the agent where the task does not; it is part of what is measured, too.
	AgentTimeoutMs int64             `json:"agentTimeoutMs,omitempty"`
	Tools          map[string]string `json:"tools,omitempty"` // versions on the machine that made the plan
	Host           string            `json:"host,omitempty"`
}

// PlannedFamily is where the tasks come from.
type PlannedFamily struct {
	Origin   string `json:"origin"`
	Name     string `json:"name"`
	Revision string `json:"revision"`
	Skills   string `json:"skills,omitempty"` // digest of the skills that arms without their own get
}

// PlannedTask is one task with the digests of all that makes it up.
type PlannedTask struct {
	ID      string   `json:"id"`
	Visible string   `json:"visible"`
	Hidden  string   `json:"hidden"`
	Cluster string   `json:"cluster,omitempty"`
	Tags    []string `json:"tags,omitempty"`
	Scored  *bool    `json:"scored,omitempty"`
	Judged  bool     `json:"judged,omitempty"`
}

// PlannedArm is an arm with the version of the agent that was found.
type PlannedArm struct {
	Arm
	AgentVersion string `json:"agentVersion,omitempty"`
	LeadVersion  string `json:"leadVersion,omitempty"`
}

// PlannedJudge is who judges; empty where no task is judged.
type PlannedJudge struct {
	Agent   string `json:"agent,omitempty"`
	Model   string `json:"model,omitempty"`
	Profile string `json:"profile,omitempty"` // digest of its text
	Votes   int    `json:"votes,omitempty"`   // that decide; 0 is what each task says
}

// Budget bounds what is spent. Zero fields do not bound.
type Budget struct {
	USD    float64       `json:"usd,omitempty"`
	Tokens int64         `json:"tokens,omitempty"`
	Wall   time.Duration `json:"wallNs,omitempty"`
}

// Seal checks a plan and fills in its version and id. Arms must be sealed before.
func (p *Plan) Seal() error {
	arms := make([]Arm, len(p.Arms))
	for i := range p.Arms {
		arms[i] = p.Arms[i].Arm
		p.Arms[i].Arm = p.Arms[i].withoutSecrets()
	}
	switch err := CheckArms(arms); {
	case err != nil:
		return err
	case len(p.Tasks) == 0:
		return errors.New("an experiment needs at least one task")
	case p.Runs < 1:
		return errors.New("an experiment needs at least one run")
	}
	if err := p.checkStop(); err != nil {
		return err
	}
	slices.SortFunc(p.Tasks, func(a, b PlannedTask) int { return strings.Compare(a.ID, b.ID) })
	p.Version = PlanVersion
	p.ID = p.identity()
	return nil
}

// identity hashes what decides the measurement. Shards of one experiment have the same, wherever
// they run.
func (p *Plan) identity() string {
	same := *p
	same.ID, same.CreatedMs, same.Shard, same.Tools, same.Host, same.Family.Origin = "", 0, Shard{}, nil, "", ""
	same.Arms = slices.Clone(p.Arms)
	for i := range same.Arms {
		same.Arms[i].Arm = Arm{Name: p.Arms[i].Name, Hash: p.Arms[i].Hash}
	}
	content, err := json.Marshal(same)
	if err != nil {
		return "" // structs of strings and numbers always marshal
	}
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])[:16]
}

// Differences tells what a wanted plan would change, in words; nothing if the experiment is the
// same.
func (p *Plan) Differences(wanted *Plan) []string {
	var diffs []string
	note := func(what string, before, after any) {
		if before != after {
			diffs = append(diffs, fmt.Sprintf("%s: %v, now %v", what, before, after))
		}
	}
	note("runs", p.Runs, wanted.Runs)
	note("seed", p.Seed, wanted.Seed)
	note("shard", p.Shard.String(), wanted.Shard.String())
	note("stopping early", p.Stop.String(), wanted.Stop.String())
	note("isolation", p.Isolation, wanted.Isolation)
	note("budget of a cell", p.Cell, wanted.Cell)
	note("timeout of the agent", time.Duration(p.AgentTimeoutMs)*time.Millisecond,
		time.Duration(wanted.AgentTimeoutMs)*time.Millisecond)
	note("judge", p.Judge, wanted.Judge)
	note("skills of the family", p.Family.Skills, wanted.Family.Skills)
	diffs = append(diffs, taskDifferences(p.Tasks, wanted.Tasks)...)
	diffs = append(diffs, armDifferences(p.Arms, wanted.Arms)...)
	if len(diffs) == 0 && p.Family.Revision != wanted.Family.Revision {
		note("revision of the family", p.Family.Revision, wanted.Family.Revision)
	}
	return diffs
}

func taskDifferences(before, after []PlannedTask) []string {
	var diffs []string
	byID := map[string]PlannedTask{}
	for _, t := range after {
		byID[t.ID] = t
	}
	for _, t := range before {
		now, there := byID[t.ID]
		delete(byID, t.ID)
		switch {
		case !there:
			diffs = append(diffs, fmt.Sprintf("task %s: no longer there", t.ID))
		case t.Visible != now.Visible:
			diffs = append(diffs, fmt.Sprintf("task %s: what the agent sees has changed", t.ID))
		case t.Hidden != now.Hidden:
			diffs = append(diffs, fmt.Sprintf("task %s: its hidden part (hooks, tests, settings) has changed", t.ID))
		}
	}
	for _, id := range slices.Sorted(maps.Keys(byID)) {
		diffs = append(diffs, fmt.Sprintf("task %s: new", id))
	}
	return diffs
}

func armDifferences(before, after []PlannedArm) []string {
	var diffs []string
	byName := map[string]PlannedArm{}
	for _, a := range after {
		byName[a.Name] = a
	}
	for _, a := range before {
		now, there := byName[a.Name]
		delete(byName, a.Name)
		switch {
		case !there:
			diffs = append(diffs, fmt.Sprintf("arm %s: no longer there", a.Name))
		case a.Hash != now.Hash:
			diffs = append(diffs, fmt.Sprintf("arm %s: %s", a.Name, fieldDifferences(a.Arm, now.Arm)))
		case a.AgentVersion != now.AgentVersion:
			diffs = append(diffs, fmt.Sprintf("arm %s: version of the agent: %s, now %s", a.Name, a.AgentVersion,
				now.AgentVersion))
		case a.LeadVersion != now.LeadVersion:
			diffs = append(diffs, fmt.Sprintf("arm %s: version of the lead: %s, now %s", a.Name, a.LeadVersion,
				now.LeadVersion))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		diffs = append(diffs, fmt.Sprintf("arm %s: new", name))
	}
	return diffs
}

// fieldDifferences names the settings of an arm that differ.
func fieldDifferences(before, after Arm) string {
	fields := func(a Arm) map[string]any {
		content, _ := json.Marshal(a) // strings and numbers always marshal
		var m map[string]any
		_ = json.Unmarshal(content, &m)
		delete(m, "hash")
		return m
	}
	old, now := fields(before), fields(after)
	var diffs []string
	names := map[string]bool{}
	for name := range old {
		names[name] = true
	}
	for name := range now {
		names[name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if a, b := fmt.Sprint(old[name]), fmt.Sprint(now[name]); a != b {
			diffs = append(diffs, fmt.Sprintf("%s: %v, now %v", name, old[name], now[name]))
		}
	}
	if len(diffs) == 0 {
		return "the content of its skills has changed"
	}
	return strings.Join(diffs, "; ")
}
