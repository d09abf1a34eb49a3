package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fit-eval/fit/internal/judge"
	"github.com/fit-eval/fit/internal/report/failure"
	"github.com/fit-eval/fit/ledger"
	"github.com/fit-eval/fit/stats"
)

// Version is the version of the report's JSON. Fields may be added; none is renamed or removed.
const Version = 1

// Input is the input of a report.
type Input struct {
	Records []ledger.Record
	// Directories name experiments by where they are, if there are several.
	Directories map[string]string
	// Planned is the size of the experiment; nil is unknown.
	Planned *Planned
	// Order has the experiments and arms in the order of their groups, where no plan says it.
	Order [][2]string
	// Unplanned says why Planned is unknown; nothing is claimed then, because runs may be missing.
	Unplanned string
	// Findings are what an audit found in the files of attempts; those without one were not
	// examined. Unexamined says why nobody could look; nothing is claimed then.
	Findings   map[Attempt]Finding
	Unexamined string
	// Signed says what of the records is signed; nil where nobody looked.
	Signed *Signing
	// Skipped counts lines of the ledger that failed verification and were skipped.
	Skipped int
	// K are the k of pass@k; empty is 1, 3 and 5.
	K []int
	// Level is the confidence level; 0 is 0.95.
	Level float64
	// Detail adds the single runs to every task.
	Detail bool
	// Probes holds the cost of checking that the models reply, before the first run; nil is none.
	Probes *Probes
	// Labels are the verdicts of people on judged runs; nil corrects nothing.
	Labels *judge.Labels
	// Allow are the reasons to withhold claims that are accepted, such as "drift": an arm whose
	// model or agent changed is then one group.
	Allow []string

	labelled *labelled
	sequence *sequence
}

// Report is the summary of one or more ledgers.
type Report struct {
	Version int     `json:"version"`
	Groups  []Group `json:"groups"`
	// Controls say what the controls of the experiment showed; they are not among the groups.
	Controls []Control `json:"controls,omitempty"`
	// Tasks and Totals repeat those of the group where there is only one.
	Tasks  []Task `json:"tasks"`
	Totals Totals `json:"totals"`
	// Sequential is set for a sequential analysis.
	Sequential *SequentialReport `json:"sequential,omitempty"`
	Warnings   []string          `json:"warnings,omitempty"`
	// Validity is the page that says what a claim rests on.
	Validity string `json:"validity"`
}

// Provenance is the set of conditions a group was measured under.
type Provenance struct {
	Experiment     string `json:"experiment"`
	Arm            string `json:"arm"`
	ArmHash        string `json:"armHash"`
	FamilyRevision string `json:"familyRevision"`
	Agent          string `json:"agent"`
	AgentVersion   string `json:"agentVersion,omitempty"`
	Model          string `json:"model,omitempty"`
	Supervisor     string `json:"supervisor,omitempty"`
	Judge          string `json:"judge,omitempty"`
	SkillSetHash   string `json:"skillSetHash,omitempty"`
	Isolation      string `json:"isolation,omitempty"`
	Network        string `json:"network,omitempty"` // what agents reached: host, model, none
	Faults         string `json:"faults,omitempty"`  // digest of the plan of faults; empty: none on purpose
}

// Group is everything measured under the same conditions: one arm of one experiment.
type Group struct {
	Name string `json:"name"`
	// Directory is the run directory that the group was read from, where several are compared.
	Directory  string     `json:"-"`
	Provenance Provenance `json:"provenance"`
	// Scope says which tasks the results hold for, if not for all of a family.
	Scope string `json:"scope,omitempty"`
	// Number says which experiment on its family this is with one key.
	Number string `json:"number,omitempty"`
	// Signed says what is signed of the ledgers that the group is from.
	Signed *Signing `json:"signed,omitempty"`
	Tasks  []Task   `json:"tasks"`
	Totals Totals   `json:"totals"`
	// PassRate is the mean over tasks of their pass rates; nil without any verdict.
	PassRate *stats.Interval `json:"passRate,omitempty"`
	// Bounds are what the pass rate would be if every run whose outcome is not certain had failed
	// or passed.
	Bounds  *Bounds              `json:"bounds,omitempty"`
	PassAtK map[string]stats.AtK `json:"passAtK"`
	// BoundsOf are the same of pass@k, atLeast@k, score@k and score.
	BoundsOf map[string]Bounds `json:"boundsOf,omitempty"`
	// AtLeastK are the shares of tasks of which at least k runs passed, where tasks have several.
	AtLeastK  map[string]stats.AtK `json:"atLeastK,omitempty"`
	MeanScore *stats.Interval      `json:"meanScore,omitempty"`
	ScoreAtK  map[string]stats.AtK `json:"scoreAtK,omitempty"`
	// Judge describes the judge; nil where it was not asked.
	Judge *JudgeReport `json:"judge,omitempty"`
	// Errors counts attempts that ended in errors, by class, those that were repeated included.
	Errors map[string]int `json:"errors,omitempty"`
	// Causes are the reasons why runs have no verdict, with their way out.
	Causes []failure.Cause `json:"causes,omitempty"`
	// Cheats say for what runs were disqualified, the most frequent first.
	Cheats []Cheat `json:"cheats,omitempty"`
	// Limits counts the runs with a verdict whose agent a limit of turns, time, budget or output
	// ended.
	Limits map[string]int `json:"limits,omitempty"`
	// Flow counts what became of the planned runs.
	Flow *Flow `json:"flow,omitempty"`
	Load *Load `json:"load,omitempty"`
	// Differs says in what the arm differs from the baseline.
	Differs []string `json:"differs,omitempty"`
	// Treatment says what the models were given.
	Treatment *Treatment `json:"treatment,omitempty"`
	// Withheld are the reasons for which nothing is claimed about the group, and no gate passes.
	Withheld []Reason `json:"withheld,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
	// Imported says which formats of other harnesses the records were read from, and what these
	// cannot promise; empty where fit ran everything.
	Imported string `json:"imported,omitempty"`

	conditions []string // those of imported records, in words
	fractional bool     // the outcomes of imported records are scores

	records  []ledger.Record // that count, sorted
	attempts []ledger.Record // all of them
	alone    []string        // warnings that comparisons do not repeat
	drifted  string          // says that a model or a program changed, so that the arm has several groups

	requests []RequestPair

	controls []Control // what the controls of the experiment showed

	sequence *sequence           // nil unless the experiment was evaluated while it ran
	redraws  map[ledger.Cell]int // attempts that ended in an error after the agent had begun
	// failedCalls are model calls that the provider failed; uneven says that the arm that the group
	// is compared with met another share of them.
	failedCalls map[ledger.Cell]int
	uneven      bool
	flags       int      // critical signs of cheating that nobody has cleared
	unread      []string // why runs could not be examined
	unexamined  string   // why no run could

	limits    string            // how far the agents may go, in words
	ofTasks   map[string]string // how far on single tasks
	unplanned string            // why nobody knows which runs were planned; empty: it is known

	clusters int // where tasks share some, how many there are
	question Question
	level    float64
	looks    int // how often the experiment was looked at and enlarged
}

// Bounds enclose a rate or a mean for all possible outcomes of the runs whose outcome is not
// certain: they are missing, or the agent may have had them drawn again.
type Bounds struct {
	Worst float64 `json:"worst"`
	Best  float64 `json:"best"`
	// Lo is the lower limit of the interval if each of them had failed, Hi the upper one if each
	// had passed.
	Lo float64 `json:"lo"`
	Hi float64 `json:"hi"`
}

// Build makes a report.
func Build(in Input) (*Report, error) {
	if len(in.K) == 0 {
		in.K = []int{1, 3, 5}
	}
	in.Level = cmp.Or(in.Level, stats.DefaultLevel)
	in.Records = audited(in.Records, in.Findings)
	r := &Report{Version: Version, Groups: []Group{}, Tasks: []Task{}}
	r.Validity = ValidityPage
	var err error
	if in.labelled, err = match(in.Labels, ledger.Counting(in.Records)); err != nil {
		return nil, err
	}
	if in.labelled != nil && in.labelled.Unjudged > 0 {
		r.Warnings = append(r.Warnings, fmt.Sprintf("skipped %s: the runs are not here, or were not judged",
			Count(in.labelled.Unjudged, "label")))
	}
	in.sequence = sequenceOf(ledger.Counting(in.Records), redrawsOf(in.Records))
	r.Sequential = in.sequence.report()
	add := func(arm string, records []ledger.Record) error {
		group, err := buildGroup(arm, records, in)
		r.Groups = append(r.Groups, group)
		return err
	}
	for _, records := range grouped(in, slices.Contains(in.Allow, reasonDrift)) {
		if err := add(records[0].Arm, records); err != nil {
			return nil, err
		}
	}
	if len(r.Groups) > 0 { // without any result there is nothing to say about arms
		for _, arm := range in.Planned.armsWithout(in.Records) {
			if err := add(arm, nil); err != nil {
				return nil, err
			}
		}
	}
	r.nameGroups(in.Planned, in.Directories)
	r.markDrift()
	if err := r.control(in.Planned); err != nil {
		return nil, err
	}
	var arms []string
	for i := range r.Groups {
		r.Groups[i].proveTreatment(in)
		arms = append(arms, r.Groups[i].Name)
	}
	for i := range r.Groups {
		if g := &r.Groups[i]; g.Imported != "" { // fit did not plan them: all of their arms are the question
			g.question.Arms = arms
		}
	}
	r.warnOfPairs(in.Allow)
	r.Totals.Skipped = in.Skipped
	if len(r.Groups) == 1 {
		r.Groups[0].Totals.Skipped = in.Skipped
		r.Tasks, r.Totals = r.Groups[0].Tasks, r.Groups[0].Totals
	} else {
		var counting []ledger.Record
		for _, group := range r.Groups {
			r.Totals.add(group.Totals)
			counting = append(counting, group.records...)
		}
		r.Totals.measure(in.Records, counting)
	}
	r.Totals.addProbes(in.Probes)
	if in.Skipped > 0 {
		r.Warnings = append(r.Warnings,
			fmt.Sprintf("skipped %s of the ledger that failed verification", Count(in.Skipped, "line")))
	}
	return r, nil
}

// grouped splits records by the conditions they were made under; with mixed, the model and the
// version of the agent are not among them. Attempts that ended before an agent ran do not know all
// of them; they join the group of their arm.
func grouped(in Input, mixed bool) [][]ledger.Record {
	type conditions struct{ experiment, arm, armHash, revision, version, model, skills string }
	full := func(r *ledger.Record) conditions {
		c := conditions{
			r.Experiment, r.Arm, r.ArmHash, r.FamilyRevision, r.AgentVersion, r.Model.Agent,
			r.SkillSetHash,
		}
		if mixed {
			c.version, c.model = "", ""
		}
		return c
	}
	groups, order := map[conditions][]int{}, []conditions{} // the places of records, which are large
	add := func(c conditions, i int) {
		if groups[c] == nil {
			order = append(order, c)
		}
		groups[c] = append(groups[c], i)
	}
	var unknown []int
	for i := range in.Records {
		if in.Records[i].Verdict == ledger.Error {
			unknown = append(unknown, i)
			continue
		}
		add(full(&in.Records[i]), i)
	}
	for _, i := range unknown {
		c := full(&in.Records[i])
		at := slices.IndexFunc(order, func(o conditions) bool {
			return o.experiment == c.experiment && o.arm == c.arm && o.armHash == c.armHash && o.revision == c.revision
		})
		if at >= 0 {
			c = order[at]
		}
		add(c, i)
	}
	place := func(c conditions) int { return slices.Index(in.Order, [2]string{c.experiment, c.arm}) }
	slices.SortStableFunc(order, func(a, b conditions) int {
		return cmp.Or(place(a)-place(b), strings.Compare(a.experiment, b.experiment), strings.Compare(a.arm, b.arm))
	})
	out := make([][]ledger.Record, len(order))
	if len(order) == 1 {
		return [][]ledger.Record{in.Records}
	}
	for k, c := range order {
		for _, i := range groups[c] {
			out[k] = append(slices.Grow(out[k], len(groups[c])-len(out[k])), in.Records[i])
		}
	}
	return out
}

func buildGroup(arm string, records []ledger.Record, in Input) (Group, error) {
	counting := ledger.Counting(records)
	g := Group{
		PassAtK:     map[string]stats.AtK{},
		records:     counting,
		redraws:     redrawsOf(records),
		failedCalls: failedCallsOf(records),
		unplanned:   in.Unplanned,
		sequence:    in.sequence,
		Signed:      in.Signed,
	}
	g.examine(in)
	g.importing()
	if in.Planned != nil {
		g.looks, g.limits, g.Scope = len(in.Planned.Grown), in.Planned.Limits[arm], in.Planned.Scope
		g.Number = in.Planned.Number
		g.ofTasks, g.question = in.Planned.TaskLimits, in.Planned.Question
		g.question.Arms = in.Planned.compared()
		g.unplanned = cmp.Or(g.unplanned, in.Planned.Changed)
	}
	g.Provenance = Provenance{Arm: arm}
	if len(counting) > 0 {
		g.Provenance = provenanceOf(counting)
	}
	g.Name = g.Provenance.Arm
	byTask := map[string][]ledger.Record{}
	for i := range counting { // they are sorted by task
		id := counting[i].TaskID
		byTask[id] = counting[i-len(byTask[id]) : i+1 : i+1]
	}
	planned := map[string][]int{}
	if in.Planned != nil && slices.Contains(in.Planned.Arms, g.Provenance.Arm) {
		planned = in.sequence.planned(in.Planned.Runs, byTask)
		for id := range planned {
			byTask[id] = append(byTask[id], []ledger.Record{}...)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(byTask)) {
		one, err := buildTask(id, byTask[id], planned[id], in)
		if err != nil {
			return Group{}, fmt.Errorf("task %s: %w", id, err)
		}
		g.Tasks = append(g.Tasks, one)
	}
	g.Limits, g.Load = limited(counting), loadOf(records)
	g.addUp(records)
	g.follow(records)
	if err := g.estimate(in); err != nil {
		return Group{}, err
	}
	if err := g.judge(in); err != nil {
		return Group{}, err
	}
	g.warn(in, records)
	return g, nil
}

func provenanceOf(records []ledger.Record) Provenance {
	at := slices.IndexFunc(records, func(r ledger.Record) bool { return r.Verdict != ledger.Error })
	best := &records[max(at, 0)] // a run with a verdict knows the most conditions
	return Provenance{
		Experiment:     best.Experiment,
		Arm:            best.Arm,
		ArmHash:        best.ArmHash,
		FamilyRevision: best.FamilyRevision,
		Agent:          best.Agent,
		AgentVersion:   best.AgentVersion,
		Model:          best.Model.Agent,
		Supervisor:     best.Model.Supervisor,
		Judge:          best.Model.Judge,
		SkillSetHash:   best.SkillSetHash,
		Isolation:      best.Isolation,
		Network:        best.Network,
		Faults:         best.Faults,
	}
}

// nameGroups gives groups that share the name of their arm distinct names, and sorts groups in the
// order of the plan.
func (r *Report) nameGroups(planned *Planned, directories map[string]string) {
	count := map[string]int{}
	for _, g := range r.Groups {
		count[g.Name]++
	}
	for i := range r.Groups {
		g := &r.Groups[i]
		if count[g.Provenance.Arm] > 1 {
			g.Name = fmt.Sprintf("%s (%s)", g.Provenance.Arm, distinguishing(r.Groups, i, directories))
			g.Warnings = append(g.Warnings,
				fmt.Sprintf("arm %s was measured under different conditions; its results are not mixed",
					g.Provenance.Arm))
		}
	}
	if planned != nil {
		slices.SortStableFunc(r.Groups, func(a, b Group) int {
			return slices.Index(planned.Arms, a.Provenance.Arm) - slices.Index(planned.Arms, b.Provenance.Arm)
		})
	}
}

// distinguishing names the first condition in which a group differs from another group of the same
// arm.
func distinguishing(groups []Group, at int, directories map[string]string) string {
	own := groups[at].Provenance
	fields := func(p Provenance) []string {
		return []string{
			cmp.Or(directories[p.Experiment], p.Experiment), p.Model, p.Agent + " " + p.AgentVersion, p.SkillSetHash,
			p.FamilyRevision, p.ArmHash,
		}
	}
	mine := fields(own)
	for i, g := range groups {
		if i == at || g.Provenance.Arm != own.Arm {
			continue
		}
		for f, value := range fields(g.Provenance) {
			if value != mine[f] {
				return short(mine[f])
			}
		}
	}
	return fmt.Sprint(at + 1)
}

// short shortens hashes for people.
func short(text string) string {
	if rest, ok := strings.CutPrefix(text, "sha256:"); ok && len(rest) > 12 {
		return "sha256:" + rest[:12]
	}
	if rest, ok := strings.CutPrefix(text, "git:"); ok && len(rest) > 12 {
		return "git:" + rest[:12]
	}
	return text
}
