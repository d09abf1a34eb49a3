package benchmarkcli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fit-eval/fit/experiment"
	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/ledger"
	"github.com/fit-eval/fit/report"
)

// results are the records of one or several run directories, and what was planned there.
type results struct {
	records []ledger.Record
	planned *report.Planned
	plans   []*experiment.Plan
	skipped int
	ledgers int
	probes  report.Probes
	labels  *report.Labels // those of the family, if it has any
}

// loadResults reads run directories. Each is a directory with a ledger, or a directory whose
// sub-directories have one: the shards of an experiment. Nothing is looked for in places that
// agents can write to. A ledger that does not verify is refused, unless the caller takes what is
// left of it.
func loadResults(con *console.Console, dirs []string, damagedToo bool) (*results, error) {
	all := &results{}
	var parts [][]ledger.Record
	for _, dir := range dirs {
		found, err := findLedgers(con.Path(dir))
		if err != nil {
			return nil, err
		}
		for _, at := range found {
			if file := filepath.Join(at, experiment.LabelsFile); all.labels == nil && isFile(file) {
				if all.labels, err = report.LoadLabels(file); err != nil {
					return nil, console.Exit(console.ExitUsage, err)
				}
			}
			records, err := all.load(con, at, damagedToo)
			if err != nil {
				return nil, err
			}
			if err := all.addProbes(at); err != nil {
				return nil, err
			}
			parts = append(parts, records)
			all.ledgers++
		}
	}
	all.addPlans()
	var err error
	if all.records, err = mergeByExperiment(parts); err != nil {
		return nil, console.Exit(console.ExitIncomplete, err)
	}
	return all, nil
}

// needRecords refuses input that holds nothing: an answer about nothing would be taken for a good
// one.
func (all *results) needRecords(dirs ...string) error {
	switch {
	case all.ledgers == 0:
		return console.Usagef("%s: no results: there is no %s", strings.Join(dirs, ", "), experiment.LedgerFile)
	case len(all.records) == 0 && !all.nothingPlanned():
		return console.Exitf(console.ExitIncomplete, "%s: no results yet", strings.Join(dirs, ", "))
	}
	return nil
}

// nothingPlanned reports whether the results are empty because the plans have no cells, as in a
// shard that selects none.
func (all *results) nothingPlanned() bool {
	return len(all.plans) > 0 && !slices.ContainsFunc(all.plans, func(plan *experiment.Plan) bool {
		return len(plan.Cells()) > 0
	})
}

// withLabels takes the labels that the user names in place of the family's.
func (all *results) withLabels(con *console.Console, path string) error {
	if path == "" {
		return nil
	}
	var err error
	if all.labels, err = report.LoadLabels(con.Path(path)); err != nil {
		return console.Exit(console.ExitUsage, err)
	}
	return nil
}

// build makes the report of results.
func (all *results) build(ks []int, detail bool) (*report.Report, error) {
	built, err := report.Build(report.Input{
		Records: all.records,
		Planned: all.planned,
		Skipped: all.skipped,
		K:       ks,
		Detail:  detail,
		Labels:  all.labels,
		Probes:  &all.probes,
	})
	if err != nil {
		return nil, console.Exit(console.ExitUsage, err)
	}
	if len(all.plans) == 0 {
		for i := range built.Groups {
			built.Groups[i].Warnings = append(built.Groups[i].Warnings,
				"there is no "+experiment.PlanFile+" beside the results: whether runs are missing is not known")
		}
	}
	return built, nil
}

// findLedgers returns the directories with ledgers.
func findLedgers(dir string) ([]string, error) {
	if _, err := os.Stat(dir); err != nil {
		return nil, console.Exit(console.ExitUsage, fmt.Errorf("no results: %w", err))
	}
	if isFile(filepath.Join(dir, experiment.LedgerFile)) {
		return []string{dir}, nil
	}
	var found []string
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", dir, err)
	}
	for _, entry := range entries {
		below := filepath.Join(dir, entry.Name())
		if entry.IsDir() && entry.Name() != experiment.RunsDir && !strings.HasPrefix(entry.Name(), ".") &&
			isFile(filepath.Join(below, experiment.LedgerFile)) {
			found = append(found, below)
		}
	}
	return found, nil
}

func isFile(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode().IsRegular()
}

func (all *results) load(con *console.Console, dir string, damagedToo bool) ([]ledger.Record, error) {
	path := filepath.Join(dir, experiment.LedgerFile)
	contents, err := ledger.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if err := contents.Damage(path); err != nil {
		if !damagedToo {
			return nil, console.Exitf(console.ExitIncomplete,
				"%w\naltered lines are ignored; --damaged reports the lines that are left", err)
		}
		for _, problem := range contents.Problems {
			fmt.Fprintf(con.Stderr, "%s: %s\n", path, problem)
		}
		all.skipped += len(contents.Problems)
	}
	plan, err := experiment.ReadPlan(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist): // a ledger that was downloaded alone
	case err != nil:
		return nil, err
	default:
		for i := range contents.Records {
			if contents.Records[i].Experiment != plan.ID {
				return nil, console.Exitf(
					console.ExitIncomplete,
					"%s belongs to experiment %s, but the plan beside it is that of %s",
					path,
					contents.Records[i].Experiment,
					plan.ID,
				)
			}
		}
		all.plans = append(all.plans, plan)
	}
	return contents.Records, nil
}

// addProbes adds what the probes in a run directory cost.
func (all *results) addProbes(dir string) error {
	probes, err := experiment.ReadProbes(dir)
	if err != nil {
		return err
	}
	p := &all.probes
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

// addPlans finds what should be there: all of the experiment, whichever of its shards are.
func (all *results) addPlans() {
	for _, plan := range all.plans {
		if plan.ID != all.plans[0].ID {
			all.planned = nil // different experiments have no plan in common
			return
		}
	}
	if len(all.plans) == 0 {
		return
	}
	first := all.plans[0]
	all.planned = plannedOf(first, first.Slots())
	all.planned.Grown = grownOf(first)
	for i := 1; i <= first.Shard.N; i++ {
		if !slices.ContainsFunc(all.plans, func(p *experiment.Plan) bool { return p.Shard.I == i }) {
			all.planned.Absent = append(all.planned.Absent, fmt.Sprintf("shard %d/%d", i, first.Shard.N))
		}
	}
}

// keepToShard takes the part that a process has run for the whole: what others run is not missing.
func (all *results) keepToShard() {
	if len(all.plans) == 1 {
		plan := all.plans[0]
		all.planned = plannedOf(plan, plan.Shard.Of(plan.Slots()))
		all.planned.Grown = grownOf(plan)
	}
}

// grownOf says when runs or tasks were added after results had been recorded. Arms may be added at
// any time: nothing is claimed about them that was seen before.
func grownOf(plan *experiment.Plan) []string {
	var grown []string
	for i, g := range plan.Grown {
		runs, tasks := plan.Runs, len(plan.Tasks)
		if i+1 < len(plan.Grown) {
			runs, tasks = plan.Grown[i+1].Runs, plan.Grown[i+1].Tasks
		}
		if g.Records > 0 && (runs != g.Runs || tasks != g.Tasks) {
			grown = append(grown, fmt.Sprintf("after %s from %d tasks × %d runs to %d × %d",
				report.Count(g.Records, "attempt"), g.Tasks, g.Runs, tasks, runs))
		}
	}
	return grown
}

func plannedOf(plan *experiment.Plan, slots []experiment.Slot) *report.Planned {
	planned := &report.Planned{Runs: map[string][]int{}}
	for _, arm := range plan.Arms {
		planned.Arms = append(planned.Arms, arm.Name)
	}
	for _, slot := range slots {
		planned.Runs[slot.TaskID] = append(planned.Runs[slot.TaskID], slot.RunIndex)
	}
	return planned
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
		all = append(all, merged...)
	}
	return all, nil
}

// side is one side of a comparison: a run directory, or DIR:ARM.
type side struct {
	dir, arm string
}

func parseSide(con *console.Console, text string) side {
	if _, err := os.Stat(con.Path(text)); err == nil {
		return side{dir: text}
	}
	if at := strings.LastIndex(text, ":"); at > 0 {
		return side{dir: text[:at], arm: text[at+1:]}
	}
	return side{dir: text}
}

// group reads the side's results and picks its arm.
func (s side) group(con *console.Console, labels string, damagedToo bool) (*report.Group, error) {
	found, err := loadResults(con, []string{s.dir}, damagedToo)
	if err == nil {
		err = found.withLabels(con, labels)
	}
	if err != nil {
		return nil, err
	}
	r, err := found.build([]int{1}, false)
	if err != nil {
		return nil, err
	}
	return pickArm(r, s)
}

func pickArm(r *report.Report, s side) (*report.Group, error) {
	var names []string
	var matching []*report.Group
	for i := range r.Groups {
		g := &r.Groups[i]
		if !slices.Contains(names, g.Provenance.Arm) {
			names = append(names, g.Provenance.Arm)
		}
		if s.arm == "" || g.Provenance.Arm == s.arm {
			matching = append(matching, g)
		}
	}
	switch {
	case len(r.Groups) == 0:
		return nil, console.Exitf(console.ExitIncomplete, "%s has no results yet", s.dir)
	case len(matching) == 1:
		return matching[0], nil
	case len(matching) == 0:
		return nil, console.Usagef("%s has no arm %q; it has %s", s.dir, s.arm, strings.Join(names, ", "))
	case s.arm == "":
		return nil, console.Usagef("%s has the arms %s; choose one: %s:%s", s.dir, strings.Join(names, ", "), s.dir,
			names[0])
	default:
		return nil, console.Usagef("arm %s of %s was measured under different conditions (see report); they cannot "+
			"be compared as one", s.arm, s.dir)
	}
}
