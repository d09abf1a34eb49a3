package experiment

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/fit-eval/fit/internal/task"
)

// planVersion is the version of the plan's format. Fields may be added; none is renamed or removed.
const planVersion = 1

// Plan says what an experiment is. It is written before anything is run; running the same command
// again finds it and continues. Runs, tasks and arms can be added to it; nothing else changes.
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
	Network   string        `json:"network,omitempty"` // what agents reach, where the command says it
	// it decides how far an agent gets, so it is a part of what is measured
	Cell Budget `json:"cellBudget,omitzero"`
	// Faults is the digest of the plan of deliberate failures of model calls; empty is none.
	Faults string `json:"faults,omitempty"`
	// Gateway is the digest of what the gateway does to model calls; empty if it passes them on.
	Gateway string `json:"gatewayPolicy,omitempty"`
	// Policy says it in words.
	Policy string `json:"gatewayText,omitempty"`
	// MaxOutput is after how many bytes of output an agent is ended; 0 is the usual number.
	MaxOutput int64 `json:"maxOutputBytes,omitempty"`
	// Stop ends the experiment as soon as it is decided; nil runs it to its end.
	Stop *StopRule `json:"stopEarly,omitempty"`
	// Question is what is to be answered; nil, in plans of earlier versions, is the default one.
	Question *Question `json:"question,omitempty"`
	// Concurrency is how many attempts were to run at a time; 0 is unknown.
	Concurrency int `json:"concurrency,omitempty"`
	// Attempts bounds the tries at a cell that end in errors; 0 is unknown.
	Attempts int `json:"attempts,omitempty"`
	// Calls says how much of model calls is recorded; empty is unknown.
	Calls string `json:"calls,omitempty"`
	// AgentTimeout bounds the agent where the task does not; it is part of what is measured, too.
	AgentTimeoutMs int64             `json:"agentTimeoutMs,omitempty"`
	Tools          map[string]string `json:"tools,omitempty"` // versions on the machine that made the plan
	Host           string            `json:"host,omitempty"`
	// TasksDigest is the digest of tasks.json, from which judges learn what the tasks are. It is
	// empty where the directory has no such file.
	TasksDigest string `json:"tasksDigest,omitempty"`
	// SignedBy is the key that signs the results, so that a copy without its signature is noticed.
	SignedBy string `json:"signedBy,omitempty"`
	// Number counts the experiments on this family that were begun with this key; 0 is unknown.
	Number int `json:"number,omitempty"`
	// Grown are the enlargements of the experiment after it had begun.
	Grown []Growth `json:"grown,omitempty"`
}

// Growth is one enlargement of an experiment after it had begun.
type Growth struct {
	AtMs    int64 `json:"atMs"`
	Records int   `json:"records"` // attempts that were recorded by then
	// Runs, Tasks and Arms are how many there were before.
	Runs  int `json:"runs"`
	Tasks int `json:"tasks"`
	Arms  int `json:"arms"`
	// Revision is that of the family since then; records keep the one that the experiment began
	// with.
	Revision string `json:"revision,omitempty"`
}

// maxCells bounds the cells of an experiment, so that a typing mistake is an error.
const maxCells = 1_000_000

// PlannedFamily identifies the family of the tasks.
type PlannedFamily struct {
	Origin   string `json:"origin"`
	Name     string `json:"name"`
	Revision string `json:"revision"`
	// Tasks is how many tasks the family has, and Selected says by which flags those of the plan
	// were chosen among them; empty: all. LeftOut are those among them that cannot be run.
	Tasks    int            `json:"tasks,omitempty"`
	Selected string         `json:"selected,omitempty"`
	LeftOut  []task.LeftOut `json:"leftOut,omitempty"`
	Skills   string         `json:"skills,omitempty"` // digest of the skills that arms without their own get
}

// PlannedTask is one task with the digests of all that makes it up.
type PlannedTask struct {
	ID      string `json:"id"`
	Visible string `json:"visible"`
	Hidden  string `json:"hidden"`
	Cluster string `json:"cluster,omitempty"`
	// Repository is what the task works on, if it names one.
	Repository string   `json:"repository,omitempty"`
	Tags       []string `json:"tags,omitempty"`
	Scored     *bool    `json:"scored,omitempty"`
	Judged     bool     `json:"judged,omitempty"`
	// Sentences is how many sentences decide about the task after its runs, if nothing else does.
	Sentences int `json:"sentences,omitempty"`
	// Shared is a digest of the files and tests, whatever is asked: who solves one of the tasks
	// that have the same may solve them all.
	Shared string `json:"shared,omitempty"`
	// AgentTimeoutMs is the task's own limit of the agent's time, for readers: the digests are of
	// it, too.
	AgentTimeoutMs int64 `json:"agentTimeoutMs,omitempty"`
}

// PlannedArm is an arm with the version of the agent that was found.
type PlannedArm struct {
	Arm
	AgentVersion string `json:"agentVersion,omitempty"`
	LeadVersion  string `json:"leadVersion,omitempty"`
	// Brings is what the arm brings to its agent, or the family to all, with the digests of the
	// contents.
	Brings []Brought `json:"brings,omitempty"`
}

// PlannedJudge is the judge; empty if no task is judged.
type PlannedJudge struct {
	Agent   string `json:"agent,omitempty"`
	Model   string `json:"model,omitempty"`
	Default string `json:"defaultModel,omitempty"` // that the agent asks where Model is empty
	Profile string `json:"profile,omitempty"`      // digest of its text
	Votes   int    `json:"votes,omitempty"`        // that decide; 0 is each task's number
}

// String names the judge.
func (j PlannedJudge) String() string {
	if j.Agent == "" {
		return "none"
	}
	text := JudgeConfig{Agent: j.Agent, Model: j.Model, Default: j.Default}.Name()
	if j.Profile != "" {
		text += ", profile " + j.Profile
	}
	if j.Votes > 0 {
		text += fmt.Sprintf(", %d votes", j.Votes)
	}
	return text
}

// Budget limits what is spent. Zero fields are no limit.
type Budget struct {
	USD    float64       `json:"usd,omitempty"`
	Tokens int64         `json:"tokens,omitempty"`
	Wall   time.Duration `json:"wallNs,omitempty"`
}

// String describes the limits in a few words.
func (b Budget) String() string {
	var parts []string
	if b.USD > 0 {
		parts = append(parts, fmt.Sprintf("$%g", b.USD))
	}
	if b.Tokens > 0 {
		parts = append(parts, fmt.Sprintf("%d tokens", b.Tokens))
	}
	if b.Wall > 0 {
		parts = append(parts, b.Wall.String())
	}
	return cmp.Or(strings.Join(parts, ", "), "none")
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
	case p.Runs > maxCells/len(p.Tasks)/len(p.Arms):
		return fmt.Errorf("tasks × arms × runs: %d × %d × %d are more than %d cells; split the experiment",
			len(p.Tasks), len(p.Arms), p.Runs, maxCells)
	}
	slices.SortFunc(p.Tasks, func(a, b PlannedTask) int { return strings.Compare(a.ID, b.ID) })
	p.groupTasks()
	if err := errors.Join(p.checkStop(), p.checkNames()); err != nil {
		return err
	}
	p.Version = planVersion
	p.ID = p.identity()
	return nil
}

// maxCellName leaves room for numbers in the 255 bytes that the system allows for the name of a
// directory.
const maxCellName = 240

// checkNames refuses cells that cannot have a directory.
func (p *Plan) checkNames() error {
	for _, t := range p.Tasks {
		for i := range p.Arms {
			cell := Cell{TaskID: t.ID, Arm: p.Arms[i].Name, RunIndex: p.Runs}
			if name := cell.Name(); len(name) > maxCellName {
				return fmt.Errorf("task %.40s… of arm %.40s… needs a directory whose name has %d bytes, more than %d: "+
					"give the task or the arm a shorter name", t.ID, cell.Arm, len(name), maxCellName)
			}
		}
	}
	return nil
}

// identity hashes what decides the measurement. Shards of one experiment have the same, wherever
// they run.
func (p *Plan) identity() string {
	same := *p
	same.ID, same.CreatedMs, same.Shard, same.Tools, same.Host, same.Family.Origin = "", 0, Shard{}, nil, "", ""
	same.Number, same.Policy = 0, "" // the digest is of the policy, too
	same.SignedBy, same.Grown, same.TasksDigest, same.Family.Tasks, same.Family.Selected = "", nil, "", 0, ""
	same.Family.LeftOut, same.Judge.Default = nil, ""
	same.Concurrency, same.Attempts, same.Calls = 0, 0, ""
	if p.Asked() == (&Plan{}).Asked() {
		same.Question = nil // as in plans of earlier versions
	}
	same.Tasks = slices.Clone(p.Tasks)
	for i := range same.Tasks {
		same.Tasks[i].AgentTimeoutMs, same.Tasks[i].Shared = 0, "" // the digests are of them, too
	}
	same.Arms = slices.Clone(p.Arms)
	for i := range same.Arms {
		same.Arms[i].Arm = Arm{Name: p.Arms[i].Name, Hash: p.Arms[i].Hash}
		same.Arms[i].Brings = nil // the hash is of them, too
	}
	content, err := json.Marshal(same)
	if err != nil {
		return "" // structs of strings and numbers always marshal
	}
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])[:16]
}

// Kept reports whether the plan still is the one that its id, and with it every record, names. What
// it was before tasks or arms were added is not known, which readers see, nor what it was before
// secrets were removed.
func (p *Plan) Kept() bool {
	begun := *p
	if len(p.Grown) > 0 {
		first := p.Grown[0]
		if begun.Runs = first.Runs; first.Tasks != len(p.Tasks) || first.Arms != len(p.Arms) {
			return true
		}
	}
	content, err := json.Marshal(p)
	return begun.identity() == p.ID || err == nil && bytes.Contains(content, []byte("[REDACTED:"))
}

// differences describes what a wanted plan would change. Growth is the runs, tasks and arms it
// would add; any other difference forbids continuing with it.
func (p *Plan) differences(wanted *Plan) (changes, growth []string) {
	note := func(what string, before, after any) {
		if before != after {
			changes = append(changes, fmt.Sprintf("%s: %v, now %v", what, before, after))
		}
	}
	if wanted.Runs > p.Runs {
		growth = append(growth, fmt.Sprintf("runs: %d, now %d", p.Runs, wanted.Runs))
	} else {
		note("runs", p.Runs, wanted.Runs)
	}
	note("seed", p.Seed, wanted.Seed)
	note("shard", p.Shard.String(), wanted.Shard.String())
	note("stopping early", p.Stop.String(), wanted.Stop.String())
	note("question", p.Asked(), wanted.Asked())
	note("isolation", chosen(p.Isolation), chosen(wanted.Isolation))
	note("network", chosen(p.Network), chosen(wanted.Network))
	note("budget of a cell", p.Cell, wanted.Cell)
	note("plan of faults", p.Faults, wanted.Faults)
	if p.Gateway != wanted.Gateway {
		note("what the gateway does to model calls", p.policy(), wanted.policy())
	}
	note("bytes that an agent may print", p.mayPrint(), wanted.mayPrint())
	note("timeout of the agent", time.Duration(p.AgentTimeoutMs)*time.Millisecond,
		time.Duration(wanted.AgentTimeoutMs)*time.Millisecond)
	note("judge", p.Judge, wanted.Judge)
	note("skills of the family", p.Family.Skills, wanted.Family.Skills)
	changed, added := compareParts(p.Tasks, wanted.Tasks, PlannedTask.name, PlannedTask.changed)
	changes, growth = append(changes, changed...), append(growth, added...)
	changed, added = compareParts(p.Arms, wanted.Arms, PlannedArm.name, PlannedArm.changed)
	changes = append(changes, changed...)
	for _, arm := range added {
		if arm == "arm "+ControlShadow+": new" || arm == "arm "+ControlKnown+": new" {
			changes = append(changes, arm+", and controls run beside the other arms from the first run on")
		} else {
			growth = append(growth, arm)
		}
	}
	if len(changes)+len(growth) == 0 {
		note("revision of the family", p.revision(), wanted.Family.Revision)
	}
	return changes, growth
}

// chosen is a setting that the command may leave to the tasks.
func chosen(setting string) string { return cmp.Or(setting, "as the tasks say") }

// policy says what the gateway does to model calls.
func (p *Plan) policy() string {
	if p.Policy == "" && p.Gateway != "" { // a plan of an earlier version
		return "policy " + p.Gateway
	}
	return cmp.Or(p.Policy, "they pass as they are")
}

func (p *Plan) mayPrint() string {
	if p.MaxOutput == 0 {
		return "as many as usual"
	}
	return fmt.Sprint(p.MaxOutput)
}

// fixedSize returns why nothing can be added to the experiment; empty if it can.
func (p *Plan) fixedSize() string {
	switch {
	case p.Stop != nil:
		return "an experiment that may stop early has a fixed size: its rule counts the tasks in their order"
	case p.Shard.N > 1:
		return "a shard has a fixed size: another size would give its cells to other shards"
	}
	return ""
}

// revision returns the revision of the family that was used last.
func (p *Plan) revision() string {
	for _, g := range slices.Backward(p.Grown) {
		if g.Revision != "" {
			return g.Revision
		}
	}
	return p.Family.Revision
}

// grow returns the plan with what a wanted one adds to it. It is the same experiment: it keeps its
// id, and its cells keep their seeds.
func (p *Plan) grow(wanted *Plan, records int, atMs int64) *Plan {
	grown := *p
	grown.Runs, grown.Concurrency, grown.Tools, grown.Host = wanted.Runs, wanted.Concurrency, wanted.Tools, wanted.Host
	grown.Attempts, grown.Calls = wanted.Attempts, wanted.Calls
	if len(wanted.Tasks) > len(p.Tasks) {
		grown.Tasks, grown.Family = wanted.Tasks, wanted.Family
		grown.Family.Revision = p.Family.Revision
	}
	if len(wanted.Arms) > len(p.Arms) {
		grown.Arms = wanted.Arms
	}
	growth := Growth{
		AtMs:    atMs,
		Records: records,
		Runs:    p.Runs,
		Tasks:   len(p.Tasks),
		Arms:    len(p.Arms),
	}
	if wanted.Family.Revision != p.revision() {
		growth.Revision = wanted.Family.Revision
	}
	grown.Grown = append(slices.Clone(p.Grown), growth)
	return &grown
}

// compareParts compares the tasks or the arms of two plans: what was removed or changed, and what
// is new.
func compareParts[T any](before, after []T, name func(T) string, changed func(before, now T) string,
) (diffs, added []string) {
	byName := map[string]T{}
	for _, part := range after {
		byName[name(part)] = part
	}
	for _, part := range before {
		now, there := byName[name(part)]
		delete(byName, name(part))
		if !there {
			diffs = append(diffs, name(part)+": no longer there")
		} else if change := changed(part, now); change != "" {
			diffs = append(diffs, name(part)+": "+change)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		added = append(added, name+": new")
	}
	return diffs, added
}

func (t PlannedTask) name() string { return "task " + t.ID }

func (t PlannedTask) changed(now PlannedTask) string {
	switch {
	case t.Visible != now.Visible:
		return "what the agent sees has changed"
	case t.Hidden != now.Hidden:
		return "its hidden part (hooks, tests, settings) has changed"
	}
	return ""
}

func (a PlannedArm) name() string { return "arm " + a.Name }

func (a PlannedArm) changed(now PlannedArm) string {
	switch {
	case a.Hash != now.Hash:
		return fieldDifferences(a, now)
	case a.AgentVersion != now.AgentVersion:
		return fmt.Sprintf("version of the agent: %s, now %s", a.AgentVersion, now.AgentVersion)
	case a.LeadVersion != now.LeadVersion:
		return fmt.Sprintf("version of the lead: %s, now %s", a.LeadVersion, now.LeadVersion)
	}
	return ""
}

// fieldDifferences names the settings of an arm that differ, and what it brings. Arms of plans that
// say nothing about their context had none.
func fieldDifferences(before, after PlannedArm) string {
	fields := func(a Arm) map[string]any {
		a.Context = cmp.Or(a.Context, contextNone)
		content, _ := json.Marshal(a) // strings and numbers always marshal
		var m map[string]any
		_ = json.Unmarshal(content, &m)
		delete(m, "hash")
		return m
	}
	old, now := fields(before.Arm), fields(after.Arm)
	names := maps.Clone(old)
	maps.Copy(names, now)
	var diffs []string
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if a, b := fmt.Sprint(old[name]), fmt.Sprint(now[name]); a != b {
			diffs = append(diffs, fmt.Sprintf("%s: %v, now %v", name, old[name], now[name]))
		}
	}
	for _, b := range after.Brings {
		at := slices.IndexFunc(before.Brings,
			func(other Brought) bool { return other.Kind == b.Kind && other.Name == b.Name })
		if at >= 0 && before.Brings[at].Digest != b.Digest {
			diffs = append(diffs, fmt.Sprintf("the content of %s %s has changed", b.Kind, b.Name))
		}
	}
	if len(diffs) == 0 {
		return "the content of what it brings has changed"
	}
	return strings.Join(diffs, "; ")
}
