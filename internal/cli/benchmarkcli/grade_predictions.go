package benchmarkcli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/internal/grade"
	"github.com/fit-eval/fit/internal/jsonenc"
	"github.com/fit-eval/fit/internal/report"
	"github.com/fit-eval/fit/internal/sandbox"
	"github.com/fit-eval/fit/internal/task"
	"github.com/fit-eval/fit/internal/workspace"
	"github.com/fit-eval/fit/ledger"
)

// predictionsReport is the report about a file of predictions, with SWE-bench's fields.
type predictionsReport struct {
	Total      int `json:"total_instances"`
	Submitted  int `json:"submitted_instances"`
	Completed  int `json:"completed_instances"`
	Resolved   int `json:"resolved_instances"`
	Unresolved int `json:"unresolved_instances"`
	Empty      int `json:"empty_patch_instances"`
	Errors     int `json:"error_instances"`
	Infra      int `json:"infra_failure_instances"`
	Ambiguous  int `json:"ambiguous_failure_instances"`

	CompletedIDs  []string `json:"completed_ids"`
	IncompleteIDs []string `json:"incomplete_ids"`
	EmptyIDs      []string `json:"empty_patch_ids"`
	SubmittedIDs  []string `json:"submitted_ids"`
	ResolvedIDs   []string `json:"resolved_ids"`
	UnresolvedIDs []string `json:"unresolved_ids"`
	ErrorIDs      []string `json:"error_ids"`
	InfraIDs      []string `json:"infra_failure_ids"`
	AmbiguousIDs  []string `json:"ambiguous_failure_ids"`

	SchemaVersion int `json:"schema_version"`
	// Model and Instances are ours: who made the predictions, and the report about each.
	Model     string                           `json:"model_name_or_path,omitempty"`
	Instances map[string]*grade.InstanceReport `json:"instances"`
}

// predictions grades a file of predictions without an agent.
func (g *grader) predictions(ctx context.Context) error {
	all, err := readPredictions(g.con, g.opts.predictions)
	if err != nil {
		return err
	}
	tasks, err := g.predicted(ctx, all)
	if err != nil {
		return err
	}
	out, err := g.openOutput() // before the work of hours, which a mistake in a name must not lose
	if err != nil {
		return err
	}
	defer out.Close()
	made := newPredictionsReport(g.family, all)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.NumCPU())
	var mu sync.Mutex
	done, unsettled := 0, 0
	for i := range all {
		p := &all[i]
		group.Go(func() error {
			began := time.Now()
			result, err := g.gradePrediction(ctx, i, tasks[i], p)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err != nil { // what prevented this one need not prevent the others
				result = grade.Result{
					Grade:    ledger.Grade{Verdict: ledger.Error},
					Instance: &grade.InstanceReport{PatchExists: true, InfraFailure: true, Error: err.Error()},
				}
			}
			mu.Lock()
			defer mu.Unlock()
			done++
			if result.Grade.Verdict == ledger.Error {
				unsettled++
			}
			said := made.add(p, result)
			fmt.Fprintf(g.con.Stderr, "%d/%d %s: %s (%s)\n", done, len(all), p.InstanceID, said,
				display.Duration(time.Since(began)))
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	made.conclude()
	if err := g.writeReport(out, made); err != nil {
		return err
	}
	if unsettled > 0 {
		return console.Exitf(console.ExitIncomplete, "%s reached no verdict: the tests do not run without the "+
			"patch either; fit-benchmark lint shows why", report.Count(unsettled, "prediction"))
	}
	return nil
}

// predicted finds the tasks of predictions, and makes sure that all of them can be graded.
func (g *grader) predicted(ctx context.Context, all []prediction) ([]*task.Task, error) {
	known := map[string]*task.Task{}
	for i := range g.family.Tasks {
		known[g.family.Tasks[i].ID] = &g.family.Tasks[i]
	}
	var problems []error
	tasks := make([]*task.Task, len(all))
	for i, p := range all {
		place := fmt.Sprintf("%s:%d: ", g.opts.predictions, p.line)
		t := known[p.InstanceID]
		switch {
		case t == nil:
			problems = append(problems, fmt.Errorf("%sthe family has no task %s", place, p.InstanceID))
		case t.Instance == nil:
			problems = append(problems, fmt.Errorf("%s%s is not a task of SWE-bench", place, p.InstanceID))
		case len(t.Instance.Lacks) > 0:
			problems = append(problems, fmt.Errorf("%s%s cannot be graded: its row has no %s", place, p.InstanceID,
				strings.Join(t.Instance.Lacks, ", ")))
		case !p.empty():
			if err := g.engines.Check(ctx, g.isolation, t); err != nil {
				problems = append(problems, err)
			}
		}
		tasks[i] = t
		if len(problems) == 5 {
			break
		}
	}
	if g.isolation == sandbox.IsolationNone {
		problems = append(problems, errors.New("predictions are untrusted patches: they are graded in a sandbox, "+
			"which also shows the repository at "+task.Testbed))
	}
	if err := errors.Join(problems...); err != nil {
		return nil, console.Exit(console.ExitUsage, err)
	}
	return tasks, nil
}

func (g *grader) gradePrediction(ctx context.Context, number int, t *task.Task, p *prediction,
) (result grade.Result, err error) {
	if p.empty() {
		return grade.Result{}, nil
	}
	name := fmt.Sprintf("p%d", number)
	nothing := filepath.Join(g.work, "none-"+name) // the patch is laid over the base, not over a final directory
	if err := os.Mkdir(nothing, 0o700); err != nil {
		return result, err
	}
	cfg := g.space(name, t)
	cfg.Ports, cfg.Caches = nil, nil // the tests of SWE-bench use neither
	space, err := workspace.Adopt(ctx, cfg, nothing)
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, space.Remove(context.WithoutCancel(ctx))) }()
	config := grade.Config{
		Task:     t,
		Source:   space,
		Baseline: g.baseline,
		Redactor: g.redactor,
		Patch:    p.Patch,
	}
	if g.opts.logs != "" {
		config.Artifacts = filepath.Join(g.con.Path(g.opts.logs), fileNameOf(t.ID))
		if err := os.MkdirAll(config.Artifacts, 0o700); err != nil {
			return result, err
		}
		if err := os.WriteFile(filepath.Join(config.Artifacts, "patch.diff"), g.redactor.Bytes([]byte(*p.Patch)),
			0o600); err != nil {
			return result, err
		}
	}
	return grade.Run(ctx, config)
}

// fileNameOf makes one name of a file of the name of a task.
func fileNameOf(id string) string {
	name := strings.ReplaceAll(url.PathEscape(id), "%", "+")
	if strings.HasPrefix(name, ".") {
		name = "+2E" + name[1:]
	}
	return name
}

func newPredictionsReport(family *task.Family, all []prediction) *predictionsReport {
	r := &predictionsReport{
		Total:         len(family.Tasks),
		Submitted:     len(all),
		SchemaVersion: 2,
		Instances:     map[string]*grade.InstanceReport{},
	}
	for _, list := range r.lists() {
		*list = []string{}
	}
	submitted := map[string]bool{}
	for i := range all {
		submitted[all[i].InstanceID] = true
		r.SubmittedIDs = append(r.SubmittedIDs, all[i].InstanceID)
		r.Model = cmp.Or(r.Model, all[i].Model)
	}
	for i := range family.Tasks {
		if id := family.Tasks[i].ID; !submitted[id] {
			r.IncompleteIDs = append(r.IncompleteIDs, id)
		}
	}
	return r
}

func (r *predictionsReport) lists() []*[]string {
	return []*[]string{
		&r.CompletedIDs, &r.IncompleteIDs, &r.EmptyIDs, &r.SubmittedIDs, &r.ResolvedIDs, &r.UnresolvedIDs, &r.ErrorIDs,
		&r.InfraIDs, &r.AmbiguousIDs,
	}
}

// add takes the result of one prediction and says in a word what it is.
func (r *predictionsReport) add(p *prediction, result grade.Result) string {
	id := p.InstanceID
	if p.empty() {
		r.EmptyIDs = append(r.EmptyIDs, id)
		return "empty patch"
	}
	instance := result.Instance
	r.Instances[id] = instance
	if instance.InfraFailure {
		r.InfraIDs = append(r.InfraIDs, id)
	}
	if instance.Ambiguous {
		r.AmbiguousIDs = append(r.AmbiguousIDs, id)
	}
	if instance.Error != "" {
		r.ErrorIDs = append(r.ErrorIDs, id)
		return "error: " + strings.Join(strings.Fields(instance.Error), " ")
	}
	r.CompletedIDs = append(r.CompletedIDs, id)
	if instance.Resolved {
		r.ResolvedIDs = append(r.ResolvedIDs, id)
		return "resolved"
	}
	r.UnresolvedIDs = append(r.UnresolvedIDs, id)
	return "unresolved"
}

func (r *predictionsReport) conclude() {
	for _, list := range r.lists() {
		slices.Sort(*list)
	}
	r.Completed, r.Resolved, r.Unresolved = len(r.CompletedIDs), len(r.ResolvedIDs), len(r.UnresolvedIDs)
	r.Empty, r.Errors = len(r.EmptyIDs), len(r.ErrorIDs)
	r.Infra, r.Ambiguous = len(r.InfraIDs), len(r.AmbiguousIDs)
}

func (g *grader) writeReport(out io.Writer, made *predictionsReport) error {
	if err := jsonenc.WriteIndented(out, made); err != nil {
		return err
	}
	fmt.Fprintf(g.con.Stderr, "%d of %s resolved, %d unresolved, %d empty, %d errors\n", made.Resolved,
		report.Count(made.Submitted, "prediction"), made.Unresolved, made.Empty, made.Errors)
	if made.Resolved > 0 {
		fmt.Fprintln(g.con.Stderr, "note: the tested code can also print to the log of the tests: look at the "+
			"patches that matter")
	}
	return nil
}
