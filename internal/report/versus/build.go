package versus

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fit-eval/fit/internal/evidence"
	"github.com/fit-eval/fit/internal/judge"
	"github.com/fit-eval/fit/internal/report"
	"github.com/fit-eval/fit/internal/report/results"
	"github.com/fit-eval/fit/ledger"
	"github.com/fit-eval/fit/session"
	"github.com/fit-eval/fit/stats"
)

// Report builds the report of the directory.
func (s *Source) Report() (*EvalReport, error) {
	judgement, err := s.Judgement()
	if err != nil {
		return nil, err
	}
	b := &builder{source: s, judgement: judgement, known: judgement.known()}
	return b.build()
}

// builder holds what the parts of a report share.
type builder struct {
	source    *Source
	judgement *Judgement // nil: nobody was asked
	report    *EvalReport
	arms      []arm
	// known holds what labels say about the panel, by dimension.
	known map[string]*judge.Calibration
	// prompted are the system prompts of the runs for which they were compared.
	prompted map[*evidence.Run][]evidence.PromptText
}

// arm is one arm with its runs that count, in the order of the group's records.
type arm struct {
	*report.Group
	runs []run
}

// run is a cell of the report with the attempt that it is about.
type run struct {
	*Cell
	attempt *attempt
}

func (b *builder) build() (*EvalReport, error) {
	s := b.source
	b.report = &EvalReport{
		SchemaVersion: schemaVersion,
		Weights:       s.options.Weights,
		Agents:        []Agent{},
		Tasks:         b.tasks(),
		Cells:         b.cells(),
		PerAgent:      []AgentSummary{},
		Pairs:         []Pair{},
		Calibration:   []judge.Calibration{},
		Warnings:      []string{},
		Signed:        &s.signed,
		Validity:      report.ValidityPage,
	}
	b.head()
	b.panel()
	if err := b.group(); err != nil {
		return nil, err
	}
	b.costs()
	for i := range b.arms {
		summary, err := b.summary(&b.arms[i])
		if err != nil {
			return nil, err
		}
		b.report.PerAgent = append(b.report.PerAgent, summary)
		b.report.Agents = append(b.report.Agents, b.agent(&b.arms[i]))
	}
	if err := b.compareAll(); err != nil {
		return nil, err
	}
	b.state()
	b.warn()
	b.report.first = firstLines(b.arms)
	if r := b.report; !maps.Equal(r.Weights, judge.DefaultWeights()) {
		r.NotPlanned = []string{"other weights of the blended score than the usual ones"}
		r.first = append([]string{"not what was planned: " + r.NotPlanned[0]}, r.first...)
	}
	return b.report, nil
}

// head fills in what is known about the whole run.
func (b *builder) head() {
	r, s := b.report, b.source
	isolations, sandboxes, networks := map[string]bool{}, map[string]bool{}, map[string]bool{}
	version := ""
	for i := range s.contents.Records {
		record := &s.contents.Records[i]
		r.RunID = record.Experiment
		r.CreatedMs = max(r.CreatedMs, record.EndMs)
		if record.Isolation != "" {
			sandboxes[record.Isolation] = true
		}
		if record.Network != "" {
			networks[record.Network] = true
		}
		if tool := record.Tools["fit"]; tool != "" {
			version = tool
		}
	}
	for _, task := range s.tasks {
		switch task.Workspace {
		case "":
		case "worktree":
			isolations["worktree (leaky)"] = true
		default:
			isolations[task.Workspace] = true
		}
	}
	if s.plan != nil {
		r.RunID, r.Seed = s.plan.ID, s.plan.Seed
		if tool := s.plan.Tools["fit"]; tool != "" {
			version = tool
		}
	}
	if b.judgement != nil {
		r.CreatedMs = max(r.CreatedMs, b.judgement.newestMs)
	}
	for i := range s.reviews {
		r.CreatedMs = max(r.CreatedMs, s.reviews[i].AtMs)
	}
	r.Isolation = strings.Join(slices.Sorted(maps.Keys(isolations)), ", ")
	r.Sandbox = strings.Join(slices.Sorted(maps.Keys(sandboxes)), ", ")
	r.Network = strings.Join(slices.Sorted(maps.Keys(networks)), ", ")
	r.Tool = toolOf(version)
}

// toolOf takes apart what "fit version" prints.
func toolOf(text string) Tool {
	version, rest, _ := strings.Cut(text, ", ")
	commit, _, _ := strings.Cut(strings.TrimPrefix(rest, "revision "), ", ")
	return Tool{Version: version, Commit: commit}
}

func (b *builder) tasks() []Task {
	var tasks []Task
	for _, id := range slices.Sorted(maps.Keys(b.source.tasks)) {
		task := b.source.tasks[id]
		digest := ""
		if task.Prompt != "" {
			sum := sha256.Sum256([]byte(task.Prompt))
			digest = hex.EncodeToString(sum[:])
		}
		tasks = append(tasks, Task{
			ID:           id,
			SHA:          task.Repo.SHA,
			PromptSHA256: digest,
			Cluster:      task.Cluster,
			Split:        task.Split,
		})
	}
	return tasks
}

// group sorts the records by the conditions they were made under. What the audit found decides who
// counts, as in every other report.
func (b *builder) group() error {
	runs := map[ledger.Cell]run{}
	findings := map[report.Attempt]report.Finding{}
	for i := range b.source.cells {
		one := run{&b.report.Cells[i], &b.source.cells[i]}
		runs[one.attempt.Record.Cell()] = one
		findings[report.AttemptOf(one.attempt.Record)] = results.FindingOf(&one.attempt.Examined)
	}
	unplanned := ""
	if b.source.planned == nil {
		unplanned = results.NoPlan
	}
	built, err := report.Build(report.Input{
		Records:   b.source.contents.Records,
		Planned:   b.source.planned,
		Findings:  findings,
		Unplanned: unplanned,
		K:         b.ks(),
		Allow:     b.source.options.Allow,
		Signed:    &b.source.signed,
	})
	if err != nil {
		return err
	}
	b.report.Controls = built.Controls
	for i := range built.Groups {
		one := arm{Group: &built.Groups[i]}
		for _, record := range one.Records() {
			one.runs = append(one.runs, runs[record.Cell()])
		}
		b.arms = append(b.arms, one)
	}
	return nil
}

// ks returns the k of pass@k for which there are enough runs.
func (b *builder) ks() []int {
	runs := 1
	for i := range b.source.cells {
		runs = max(runs, b.source.cells[i].Record.RunIndex+1)
	}
	return slices.DeleteFunc([]int{1, 3, 5}, func(k int) bool { return k > runs })
}

// panel fills in who judged.
func (b *builder) panel() {
	panel := &b.report.Panel
	panel.Models, panel.Members, panel.Choices = []string{}, []judge.MemberReport{}, []judge.Choice{}
	if b.judgement == nil {
		return
	}
	b.report.Calibration = orEmpty(b.judgement.Calibrations)
	panel.Choices = orEmpty(b.judgement.Choices)
	for _, choice := range panel.Choices {
		if choice.EffectiveVotes != nil && (panel.NEff == nil || *choice.EffectiveVotes < *panel.NEff) {
			panel.NEff, panel.ErrorCorrelation = choice.EffectiveVotes, choice.ErrorCorrelation
		}
	}
	settings, result := b.judgement.Settings, b.judgement.Result
	for _, member := range result.Members {
		panel.Models = append(panel.Models, member.Model)
	}
	panel.Members = result.Members
	panel.Mode, panel.Pairwise = settings.Mode, settings.Pairwise
	panel.SelfTest, panel.SameFamily, panel.Missing = settings.SelfTest, settings.SameFamily, result.Missing
}

// costs adds up what was spent.
func (b *builder) costs() {
	spent := ledger.SpendingOf(b.source.contents.Records)
	cost := &b.report.Cost
	cost.AgentsUSD, cost.AgentsKnownUSD = spent.CostUSD, spent.KnownCostUSD
	cost.PerMember, cost.PerDimension = map[string]judge.Cost{}, map[string]judge.Cost{}
	if b.judgement == nil {
		return
	}
	result := b.judgement.Result
	cost.Replies, cost.JudgesKnownUSD = result.Cost.Replies, result.Cost.USD
	cost.PerDimension = result.PerDimension
	for _, member := range result.Members {
		cost.PerMember[member.Name] = member.Cost
	}
	if result.Cost.Unpriced > 0 || result.Cost.Replies == 0 {
		return
	}
	usd := result.Cost.USD
	each := usd / float64(result.Cost.Replies)
	cost.JudgesUSD, cost.PerReplyUSD = &usd, &each
	if cost.AgentsUSD != nil && *cost.AgentsUSD > 0 {
		share := usd / *cost.AgentsUSD
		cost.JudgesShare = &share
	}
}

// state says in one sentence what the report claims.
func (b *builder) state() {
	r := b.report
	var claims []string
	for i := range r.Pairs {
		claims = append(claims, r.Pairs[i].claims()...)
	}
	notOne := slices.IndexFunc(r.Pairs, func(p Pair) bool { return p.Observed != "" })
	switch {
	case len(claims) == 0 && notOne >= 0:
		r.Statement = fmt.Sprintf("observed (%s): nothing is claimed", r.Pairs[notOne].Observed)
	case len(r.Tasks) == 1:
		r.Statement = "no statistical claim: one task says nothing about others, however often it is run"
	case len(r.Tasks) < stats.MinClaimTasks:
		r.Statement = fmt.Sprintf("no statistical claim: %d tasks, and a claim needs at least %d", len(r.Tasks),
			stats.MinClaimTasks)
	case len(r.Pairs) == 0:
		r.Statement = "no comparison: there is one arm"
	case len(claims) == 0:
		r.Statement = "no claim: no difference between the agents is proven"
	default:
		r.Statement = "claimed: " + strings.Join(claims, "; ")
	}
	r.Statement = strings.Join(append([]string{r.Statement}, b.remarks()...), "; ")
}

// claims says what the pair claims: of the pass rate, and of dimensions by the panel.
func (p *Pair) claims() []string {
	var claims []string
	add := func(claim, of string) {
		if claim == claimA || claim == claimB || claim == claimEquivalent {
			claims = append(claims, p.claimText(claim)+of)
		}
	}
	add(p.Claim, "")
	for i := range p.Dimensions {
		add(p.Dimensions[i].Claim, " in "+p.Dimensions[i].Dimension+", by the panel")
	}
	return claims
}

// remarks are what belongs in the same sentence as the claims: which tasks they are for, why some
// are withheld, what was never opened, and what is not known to have been delivered.
func (b *builder) remarks() []string {
	var remarks []string
	add := func(text string) {
		if text != "" && !slices.Contains(remarks, text) {
			remarks = append(remarks, text)
		}
	}
	for i := range b.report.Pairs {
		for _, reason := range b.report.Pairs[i].Withheld {
			add("withheld because " + reason.Sentence())
		}
	}
	for i := range b.report.Pairs {
		add(b.report.Pairs[i].Remark)
		add(b.report.Pairs[i].Treatment.Remark())
	}
	if len(b.report.Pairs) == 0 {
		for _, arm := range b.arms {
			add(arm.Treatment.Remark())
		}
	}
	for _, arm := range b.arms {
		add(arm.Scope)
	}
	return remarks
}

// warn collects what a reader must know before trusting the numbers.
func (b *builder) warn() {
	r := b.report
	add := func(format string, args ...any) { r.Warnings = append(r.Warnings, fmt.Sprintf(format, args...)) }
	if strings.Contains(r.Isolation, "leaky") {
		add("workspace: worktree (leaky): agents could read the repository's history, later commits included")
	}
	if problems := b.source.unreadable(); len(problems) > 0 {
		add("%s could not be read and may hide anything, so nothing is claimed about the arm: %s",
			report.Count(len(problems), "run"), problems[0])
	}
	if excluded := count(r.Cells, func(c *Cell) bool {
		return c.Status == evidence.StatusEnvError && c.Problem == ""
	}); excluded > 0 {
		add("pass rates exclude %s that failed for environment reasons", report.Count(excluded, "run"))
	}
	if unseen := count(r.Cells, func(c *Cell) bool { return len(c.Unseen) > 0 }); unseen > 0 {
		add("%s changed files without an edit in the trace (unseen)", report.Count(unseen, "run"))
	}
	if cleared := count(r.Cells, func(c *Cell) bool {
		return slices.ContainsFunc(c.Integrity, func(f session.IntegrityFlag) bool { return f.Cleared != nil })
	}); cleared > 0 {
		add("%s with flags cleared by a person: see fit versus audit", report.Count(cleared, "run"))
	}
	b.warnOfJudges(add)
	for _, summary := range r.PerAgent {
		for _, warning := range summary.Warnings {
			add("%s: %s", summary.Arm, warning)
		}
	}
}

// warnOfJudges collects what a reader must know about the panel.
func (b *builder) warnOfJudges(add func(format string, args ...any)) {
	r := b.report
	if b.judgement != nil {
		for i := range b.judgement.Subjects { // one that is readable for code and not for judges
			if problem := b.judgement.Subjects[i].Problem; problem != "" && r.Cells[i].Problem == "" {
				add("a run has no judges' verdicts: %s", problem)
			}
		}
	}
	for _, member := range r.Panel.Members {
		if member.LeftOut != "" {
			add("judge %s was left out: %s", member.Name, member.LeftOut)
		}
		if member.Swaps != nil && member.Swaps.Dropped {
			add("judge %s does not compare pairs: its answer depends on the order too often (flip rate %.2f)",
				member.Name, member.Swaps.FlipRate)
		}
	}
	if r.Panel.Missing > 0 {
		add("%s of judges have no reply yet: run fit versus judge to ask them",
			report.Count(r.Panel.Missing, "question"))
	}
	if r.Panel.SameFamily {
		add("judges of the family of a model under test were allowed (--same-family)")
	}
}

func count(cells []Cell, is func(*Cell) bool) int {
	n := 0
	for i := range cells {
		if is(&cells[i]) {
			n++
		}
	}
	return n
}
