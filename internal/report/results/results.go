// Package results reads run directories for reports.
//
//  1. Load reads one or several run directories, or the shards of an experiment below one: ledgers,
//     plans, probes and the labels of the family.
//  2. Results.Build makes the report of them, the same wherever it is shown.
//  3. Answer compares the arms of a report.
package results

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fit-eval/fit/internal/experiment"
	"github.com/fit-eval/fit/internal/judge"
	"github.com/fit-eval/fit/internal/report"
	"github.com/fit-eval/fit/internal/report/foreign"
	"github.com/fit-eval/fit/ledger"
)

// Results are the records of one or several run directories, and what was planned there.
type Results struct {
	Records []ledger.Record
	Planned *report.Planned // nil where there is no plan, or several experiments
	Plans   []*experiment.Plan
	// Problems are those of ledgers that failed verification, for callers that use the rest.
	Problems []Problem
	Ledgers  []Ledger
	// Doubts are warnings about the ledgers as a whole, for every group of the report.
	Doubts []string
	Probes report.Probes
	Labels *judge.Labels // those of the family, if it has any
	// Stopped says why the processes that worked in the directories last ended before their
	// experiment did.
	Stopped []string
	// Allow are the reasons to withhold claims that the user accepts.
	Allow []string

	order   [][2]string // the experiments and arms of other harnesses, the baseline first
	signing *report.Signing
	leftOut string   // which tasks are not compared
	copies  []string // which tasks of other harnesses are the same
}

// Ledger is one that was read.
type Ledger struct {
	Path     string
	Contents *ledger.Contents
	tasks    string // the digest of the tasks beside it; empty: nobody recorded it
	signedBy string // the key that signed it when it ran, as the plan says; empty: none did
}

// Problem is something that is wrong with a ledger.
type Problem struct {
	Path string
	ledger.Problem
}

// Load reads run directories. Each is a directory with a ledger, a directory whose sub-directories
// have one (the shards of an experiment), or a ledger itself, such as a merged one, of which no
// plan is known. It does not search directories that agents can write to. A ledger that does not
// verify is refused, unless the caller accepts its valid part.
//
// With from, each may also be results of another harness, in any format that package foreign
// reads.
func Load(dirs []string, damagedToo bool, from *foreign.Options) (*Results, error) {
	all := &Results{}
	var parts [][]ledger.Record
	for _, dir := range dirs {
		if IsLedger(dir) && (from == nil || from.Format == "") {
			contents, err := all.read(dir, damagedToo)
			if err != nil {
				return nil, err
			}
			parts = append(parts, contents.Records)
			continue
		}
		found, err := Find(dir)
		if from != nil && (from.Format != "" || len(found) == 0) {
			runs, err := foreign.Read(dir, *from)
			if errors.Is(err, foreign.ErrUnknown) || errors.Is(err, fs.ErrNotExist) {
				err = fmt.Errorf("%w: there is no %s, and %w", ErrNone, experiment.LedgerFile, err)
			}
			if err != nil {
				return nil, err
			}
			parts = append(parts, runs.Records())
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, at := range found {
			if file := filepath.Join(at, experiment.LabelsFile); all.Labels == nil && isFile(file) {
				if all.Labels, err = judge.LoadLabels(file); err != nil {
					return nil, err
				}
			}
			records, err := all.load(at, damagedToo)
			if err != nil {
				return nil, err
			}
			if err := errors.Join(all.addProbes(at), all.addStop(at)); err != nil {
				return nil, err
			}
			parts = append(parts, records)
		}
	}
	all.addPlans()
	all.order = orderOf(parts)
	var err error
	if len(parts) == 1 && len(all.Ledgers) == 0 { // one source, whose records nobody else has: they are large
		all.Records = parts[0]
		slices.SortFunc(all.Records, func(a, b ledger.Record) int {
			return cmp.Or(strings.Compare(a.TaskID, b.TaskID), a.RunIndex-b.RunIndex, strings.Compare(a.Arm, b.Arm))
		})
	} else {
		all.Records, err = mergeByExperiment(parts)
	}
	groupCopies(all)
	return all, err
}

// NothingPlanned reports whether the results are empty because the plans have no cells, as in a
// shard that selects none.
func (all *Results) NothingPlanned() bool {
	return len(all.Plans) > 0 && !slices.ContainsFunc(all.Plans, func(plan *experiment.Plan) bool {
		return len(plan.Cells()) > 0
	})
}

// Build makes the report of results, with what the auditor finds in them. Detail adds the single
// runs.
func (all *Results) Build(ctx context.Context, auditor Auditor, ks []int, detail bool) (*report.Report, error) {
	findings, unexamined, err := auditor.audit(ctx, all.Ledgers)
	if err != nil {
		return nil, err
	}
	if all.signing == nil {
		all.Signers(nil)
	}
	built, err := report.Build(report.Input{
		Records:     all.Records,
		Directories: all.directories(),
		Planned:     all.Planned,
		Order:       all.order,
		Unplanned:   all.unplanned(),
		Findings:    findings,
		Unexamined:  unexamined,
		Skipped:     len(all.Problems),
		K:           ks,
		Detail:      detail,
		Labels:      all.Labels,
		Probes:      &all.Probes,
		Allow:       all.Allow,
		Signed:      all.signing,
	})
	if err != nil {
		return nil, err
	}
	built.Warnings = append(slices.Compact(slices.Clone(all.Stopped)), built.Warnings...)
	for i := range built.Groups {
		built.Groups[i].Warnings = append(built.Groups[i].Warnings, all.Doubts...)
		built.Groups[i].Warnings = append(built.Groups[i].Warnings, all.copies...)
		if all.leftOut != "" {
			built.Groups[i].Warnings = append(built.Groups[i].Warnings, all.leftOut)
		}
	}
	return built, nil
}

// directories names each experiment by the directory it is in, as far as that tells it from others.
func (all *Results) directories() map[string]string {
	names, bases := map[string]string{}, map[string]int{}
	for i := range all.Ledgers {
		records, dir := all.Ledgers[i].Contents.Records, filepath.Dir(all.Ledgers[i].Path)
		if len(records) == 0 || names[records[0].Experiment] != "" {
			continue
		}
		names[records[0].Experiment] = dir
		bases[filepath.Base(dir)]++
	}
	for id, dir := range names {
		if bases[filepath.Base(dir)] == 1 {
			names[id] = filepath.Base(dir)
		}
	}
	return names
}

// Signers looks at the signatures of the ledgers. The key is the user's; nil where there is none.
func (all *Results) Signers(key *ledger.SigningKey) []ledger.Signer {
	signers := make([]ledger.Signer, len(all.Ledgers))
	all.signing, all.Doubts = &report.Signing{}, nil
	for i := range all.Ledgers {
		read := &all.Ledgers[i]
		signers[i] = ledger.SignerOf(key, read.Path, read.Contents)
		if signers[i].Doubt {
			all.Doubts = append(all.Doubts, signers[i].Note)
		}
		CountSigned(all.signing, signers[i], read.signedBy, read.Path)
	}
	return signers
}

// SignatureGone says why the results are no longer signed as they were when they ran; empty where
// they are, or never were. Signers has looked.
func (all *Results) SignatureGone() string { return all.signing.Gone }

// CountSigned adds the records of a ledger. Where its plan names the key that signed it when it
// ran, and the signature is not there for all records, it is gone.
func CountSigned(s *report.Signing, found ledger.Signer, planned, path string) {
	s.Records += found.Records
	s.Signed += found.Signed
	if found.Own {
		s.Own = found.By
	}
	if found.Signed > 0 && !slices.Contains(s.By, found.By) {
		s.By = append(s.By, found.By)
	}
	switch {
	case s.Gone != "" || found.Records == 0:
	case found.Doubt:
		s.Gone = found.Note
	case planned != "" && found.By != planned:
		s.Gone = fmt.Sprintf("%s was signed when it ran, and 0 of %s are signed now by its key", path,
			report.Count(found.Records, "record"))
	case planned != "" && found.Signed < found.Records:
		s.Gone = fmt.Sprintf("%s was signed when it ran, and %d of %s are signed now", path, found.Signed,
			report.Count(found.Records, "record"))
	}
}

// Claimable reports whether the results in a run directory, as they are, claim that its two arms
// differ.
func Claimable(ctx context.Context, auditor Auditor, dir string, alpha float64) (bool, error) {
	found, err := Load([]string{dir}, true, nil) // the last line may be half written
	if err != nil {
		return false, err
	}
	built, err := found.Build(ctx, auditor, []int{1}, false)
	if err != nil {
		return false, err
	}
	comparison, _, err := Answer(built, report.CompareConfig{Alpha: alpha})
	if err != nil || comparison == nil {
		return false, err
	}
	return comparison.Differ(), nil
}

// unplanned says why nobody knows which runs were planned; empty where it is known.
func (all *Results) unplanned() string {
	switch {
	case all.Planned != nil:
		return ""
	case !slices.ContainsFunc(all.Records, func(r ledger.Record) bool { return r.Imported == nil }):
		return "" // what is withheld about imported records says so
	case len(all.Plans) > 1:
		return "the results are of several experiments with different plans: whether runs are missing is not known"
	}
	return NoPlan
}

// NoPlan is why nothing is claimed about a ledger without its plan.
const NoPlan = "there is no " + experiment.PlanFile + " beside the results: whether runs are missing is not known"

// noJournal is why nothing is claimed about a run directory without its journal.
const noJournal = "there is no " + experiment.AttemptsFile + " beside the results: whether attempts were started of " +
	"which nothing is recorded is not known"

// Answer compares the arms of a report: a Comparison of two, a MultiComparison of more. Both are
// nil where there is only one arm.
func Answer(built *report.Report, cfg report.CompareConfig) (*report.Comparison, *report.MultiComparison, error) {
	groups := groupsOf(built)
	switch {
	case len(groups) < 2:
		return nil, nil, nil
	case len(groups) > 2:
		family, err := report.CompareArms(groups, groups[0].ToBaseline(), cfg)
		return nil, family, err
	}
	comparison, err := report.Compare(groups[0], groups[1], cfg)
	return comparison, nil, err
}

// groupsOf returns the groups of a report, to be compared.
func groupsOf(built *report.Report) []*report.Group {
	groups := make([]*report.Group, len(built.Groups))
	for i := range built.Groups {
		groups[i] = &built.Groups[i]
	}
	return groups
}

// read reads a ledger. One that is damaged is refused, unless its valid part is accepted.
func (all *Results) read(path string, damagedToo bool) (*ledger.Contents, error) {
	contents, err := ledger.ReadFile(path)
	if err != nil {
		return nil, err
	}
	all.Ledgers = append(all.Ledgers, Ledger{Path: path, Contents: contents})
	if err := contents.Damage(path); err != nil {
		if !damagedToo {
			return nil, refused(err)
		}
		for _, problem := range contents.Problems {
			all.Problems = append(all.Problems, Problem{Path: path, Problem: problem})
		}
	}
	return contents, nil
}

func (all *Results) load(dir string, damagedToo bool) ([]ledger.Record, error) {
	path := filepath.Join(dir, experiment.LedgerFile)
	contents, err := all.read(path, damagedToo)
	if err != nil {
		return nil, err
	}
	plan, planned, err := Planned(dir, contents)
	if err != nil || plan == nil { // a ledger that was downloaded alone
		return contents.Records, err
	}
	for i := range contents.Records {
		if contents.Records[i].Experiment != plan.ID {
			return nil, fmt.Errorf("%s belongs to experiment %s, but the plan beside it is that of %s", path,
				contents.Records[i].Experiment, plan.ID)
		}
	}
	problems, err := Strays(dir, plan, contents.Records)
	switch {
	case err != nil:
		return nil, err
	case len(problems) > 0 && !damagedToo:
		return nil, refused(&ledger.Damage{Path: path, Problems: problems})
	}
	for _, problem := range problems {
		all.Problems = append(all.Problems, Problem{Path: path, Problem: problem})
	}
	contents.Records = without(contents.Records, problems)
	all.Plans = append(all.Plans, plan)
	last := &all.Ledgers[len(all.Ledgers)-1]
	last.tasks, last.signedBy = plan.TasksDigest, plan.SignedBy
	if all.Planned == nil { // shards have the same arms
		all.Planned = planned
	}
	all.Planned.Changed = cmp.Or(all.Planned.Changed, planned.Changed)
	return WithSentences(dir, plan, contents.Records)
}

// refused says how to see the rest of a ledger that is damaged.
func refused(damage error) error {
	return fmt.Errorf("%w\naltered lines are ignored; fit-benchmark report --damaged shows the lines that are left",
		damage)
}

// Planned reads the plan of a run directory with this ledger and what should be there: the whole
// experiment, whichever of its shards it is. Both are nil where there is no plan.
func Planned(dir string, contents *ledger.Contents) (*experiment.Plan, *report.Planned, error) {
	plan, err := experiment.ReadPlan(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	planned := plannedOf(plan, plan.Slots())
	if planned.Changed, err = changed(dir, plan, contents); err != nil {
		return nil, nil, err
	}
	if !isFile(filepath.Join(dir, experiment.AttemptsFile)) {
		planned.Changed = cmp.Or(planned.Changed, noJournal)
	}
	planned.Declared, err = declared(dir, plan)
	return plan, planned, err
}

// changed says how a plan is not the one of the records; empty where it is.
func changed(dir string, plan *experiment.Plan, contents *ledger.Contents) (string, error) {
	if !plan.Kept() {
		return experiment.PlanFile + " was changed after the experiment had begun: its records name another plan", nil
	}
	digest, err := experiment.PlanDigest(dir)
	if noted := contents.Plan(); err != nil || noted == "" || noted == digest {
		return "", err
	}
	return experiment.PlanFile + " was changed after the last record was written", nil
}

// declared reads in what the arms of a run directory differ: what its plan says, and what their
// first requests showed in the rehearsal.
func declared(dir string, plan *experiment.Plan) (*report.Declared, error) {
	found := &report.Declared{Differs: map[string][]string{}}
	for i := range plan.Arms {
		if i > 0 {
			found.Differs[plan.Arms[i].Name] = experiment.Differences(plan.Arms[0], plan.Arms[i])
		}
	}
	rehearsal, err := experiment.ReadRehearsal(dir)
	if err != nil || rehearsal == nil {
		return found, err
	}
	for _, pair := range rehearsal.Pairs {
		own := report.RequestPair{Baseline: pair.Baseline, Arm: pair.Arm}
		for _, d := range pair.Differences {
			own.Differences = append(own.Differences, report.RequestDifference{
				What:       d.What,
				Before:     d.Before,
				After:      d.After,
				Cause:      d.Cause,
				Undeclared: d.Cause == experiment.CauseAgent || d.Cause == "",
			})
		}
		found.Requests = append(found.Requests, own)
	}
	return found, nil
}

// addProbes adds what the probes in a run directory cost.
func (all *Results) addProbes(dir string) error {
	probes, err := experiment.ReadProbes(dir)
	if err != nil {
		return err
	}
	p := &all.Probes
	if p.Replies == 0 {
		p.CostUSD = new(float64)
	}
	for _, one := range probes {
		p.Replies++
		p.Tokens.Add(one.Tokens)
		switch {
		case one.CostUSD == nil:
			p.CostUSD = nil
		case p.CostUSD != nil:
			*p.CostUSD += *one.CostUSD
		}
		if one.CostUSD != nil {
			p.KnownCostUSD += *one.CostUSD
		}
	}
	return nil
}

// addStop adds why the last process in a run directory ended before its experiment did. What a rule
// decided is in the report.
func (all *Results) addStop(dir string) error {
	process, err := experiment.ReadProcess(dir)
	if err == nil && process != nil && process.Status != experiment.Decided && process.Why() != "" {
		all.Stopped = append(all.Stopped, process.Why())
	}
	return err
}

// addPlans finds what should be there: the whole experiment, whichever of its shards are present.
func (all *Results) addPlans() {
	for _, plan := range all.Plans {
		if plan.ID != all.Plans[0].ID {
			all.Planned = nil // different experiments have no plan in common
			return
		}
	}
	if len(all.Plans) == 0 {
		return
	}
	first := all.Plans[0]
	for i := 1; i <= first.Shard.N; i++ {
		if !slices.ContainsFunc(all.Plans, func(p *experiment.Plan) bool { return p.Shard.I == i }) {
			all.Planned.Absent = append(all.Planned.Absent, fmt.Sprintf("shard %d/%d", i, first.Shard.N))
		}
	}
}

// KeepToShard treats the part that a process has run as the whole: what others run is not missing.
func (all *Results) KeepToShard() {
	if len(all.Plans) == 1 {
		plan := all.Plans[0]
		mine := plannedOf(plan, plan.Shard.Of(plan.Slots()))
		mine.Declared, mine.Changed, all.Planned = all.Planned.Declared, all.Planned.Changed, mine
	}
}

func plannedOf(plan *experiment.Plan, slots []experiment.Slot) *report.Planned {
	planned := &report.Planned{
		Runs:       map[string][]int{},
		Limits:     map[string]string{},
		TaskLimits: map[string]string{},
		Scope:      plan.Scope(),
	}
	for i := range plan.Arms {
		switch name := plan.Arms[i].Name; name {
		case experiment.ControlShadow:
			planned.Controls.Shadow = name
		case experiment.ControlKnown:
			planned.Controls.Known, planned.Controls.Effect = name, plan.Asked().Control
		}
	}
	if plan.Number > 0 {
		planned.Number = fmt.Sprintf("experiment %d on family %s with this key", plan.Number, plan.Family.Name)
	}
	asked := plan.Asked()
	planned.Question = report.Question{
		Measure:     asked.Measure,
		Alpha:       asked.Alpha,
		Margin:      asked.Margin,
		NonInferior: asked.NonInferior,
		ToBaseline:  asked.Pairs == experiment.PairsBaseline,
	}
	for i := range plan.Arms {
		arm := &plan.Arms[i]
		planned.Arms = append(planned.Arms, arm.Name)
		planned.Limits[arm.Name] = limitsOf(plan, arm)
	}
	for i := range plan.Tasks {
		if ms := plan.Tasks[i].AgentTimeoutMs; ms > 0 {
			planned.TaskLimits[plan.Tasks[i].ID] = (time.Duration(ms) * time.Millisecond).String()
		}
	}
	for _, slot := range slots {
		planned.Runs[slot.TaskID] = append(planned.Runs[slot.TaskID], slot.RunIndex)
	}
	var sizes []report.Size
	for _, g := range plan.Grown {
		sizes = append(sizes, report.Size{
			Records: g.Records,
			Tasks:   g.Tasks,
			Runs:    g.Runs,
			Arms:    g.Arms,
			AtMs:    g.AtMs,
		})
	}
	planned.Grow(append(sizes, report.Size{Tasks: len(plan.Tasks), Runs: plan.Runs, Arms: len(plan.Arms)})...)
	return planned
}

// limitsOf says in words how far the agents of an arm may go, beside the limits of tasks.
func limitsOf(plan *experiment.Plan, arm *experiment.PlannedArm) string {
	var limits []string
	if arm.MaxTurns > 0 {
		limits = append(limits, report.Count(arm.MaxTurns, "turn"))
	}
	if plan.AgentTimeoutMs > 0 {
		limits = append(limits, (time.Duration(plan.AgentTimeoutMs) * time.Millisecond).String())
	}
	if plan.Cell.USD > 0 {
		limits = append(limits, fmt.Sprintf("$%g a cell", plan.Cell.USD))
	}
	if plan.Cell.Tokens > 0 {
		limits = append(limits, fmt.Sprintf("%d tokens a cell", plan.Cell.Tokens))
	}
	if len(limits) == 0 {
		return "no limit"
	}
	return strings.Join(limits, ", ")
}

// mergeByExperiment unites the ledgers of each experiment and keeps experiments apart.
func mergeByExperiment(parts [][]ledger.Record) ([]ledger.Record, error) {
	byExperiment := map[string][][]ledger.Record{}
	var order []string
	for _, records := range parts {
		if len(records) == 0 {
			continue
		}
		id := records[0].Experiment
		if byExperiment[id] == nil {
			order = append(order, id)
		}
		byExperiment[id] = append(byExperiment[id], records)
	}
	var all []ledger.Record
	for _, id := range order {
		merged, err := ledger.Merge(byExperiment[id]...)
		if err != nil {
			return nil, err
		}
		if len(order) == 1 {
			return merged, nil
		}
		all = append(all, merged...)
	}
	return all, nil
}
