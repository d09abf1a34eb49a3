package fleet

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fit-eval/fit/internal/experiment"
	"github.com/fit-eval/fit/internal/experiment/fleet/portable"
	"github.com/fit-eval/fit/internal/experiment/local"
	"github.com/fit-eval/fit/internal/sandbox"
	"github.com/fit-eval/fit/internal/scratch"
	"github.com/fit-eval/fit/internal/tree"
	"github.com/fit-eval/fit/ledger"
)

// The bounds of a record.
const (
	maxRecord   = 8 << 20
	maxTokens   = 1e9
	maxTurns    = 1e6
	costFactor  = 10   // how far an agent's own account may be from ours
	costAllowed = 10   // dollars, in addition: tokens of judges and leads are not counted
	dearest     = 1e-4 // dollars for a token whose price is not known
	perMinute   = 10   // dollars that an attempt can spend in a minute, whatever it says
	// timeTolerance is how far the times of a record may be outside those of its attempt.
	timeTolerance = 2 * clockTolerance
)

// errRecord is returned for a record that does not belong to the attempt, or that no attempt has.
var errRecord = errors.New("its record is not valid")

// acceptResult puts the files of an attempt into the run directory and returns its record as this
// machine would have made it.
func (e *Executor) acceptResult(ctx context.Context, w work, p *pool, came arrival) (ledger.Record, error) {
	result, stored, err := e.fetchWhole(ctx, came)
	if err != nil {
		return ledger.Record{}, err
	}
	record, err := e.recordOf(ctx, result)
	if err != nil {
		return ledger.Record{}, err
	}
	record.RunDir, record.Worker, record.Host, record.SignedBy = w.name(), result.Worker, result.Host, result.key
	record.TaskID, record.Arm, record.Regraded = w.Cell.TaskID, w.Cell.Arm, ""
	record.Imported, record.Origin, record.Replay, record.OriginalCostUSD = nil, "", "", nil // no worker does that
	since := e.sinceOf(w.token())
	if err := cmp.Or(insideRunDir(&record), checkNumbers(&record, since, stored), e.checkCost(&record, since, stored),
		checkSetup(&record, p)); err != nil {
		return ledger.Record{}, err
	}
	if err := e.unpackResult(ctx, result, w.name()); err != nil {
		return ledger.Record{}, err
	}
	if err = e.checkEvidence(&record); err == nil {
		err = e.regrade(ctx, &record)
	}
	if err != nil {
		dir := filepath.Join(e.cfg.Dir, filepath.FromSlash(w.name()))
		return ledger.Record{}, errors.Join(err, scratch.RemoveAll(dir))
	}
	return record, nil
}

// recordOf reads the record of a result, without the secrets that this machine knows of.
func (e *Executor) recordOf(ctx context.Context, result done) (ledger.Record, error) {
	content := []byte(result.Record)
	if f := result.RecordFile; f != nil {
		if f.Size > maxRecord {
			return ledger.Record{}, fmt.Errorf("%w: it has %d bytes, and may have %d", errRecord, f.Size, maxRecord)
		}
		var err error
		if content, err = io.ReadAll(io.LimitReader(e.open(ctx, result.key, f), maxRecord)); err != nil {
			return ledger.Record{}, fmt.Errorf("its record: %w", err)
		}
	}
	var record ledger.Record
	if err := json.Unmarshal(e.cfg.Redactor.JSON(content), &record); err != nil {
		return ledger.Record{}, fmt.Errorf("%w: it is not JSON", errRecord)
	}
	result.correct(&record)
	return record, nil
}

// open reads a file that a worker sent.
func (e *Executor) open(ctx context.Context, key string, f *file) io.Reader {
	e.mu.Lock()
	stream := e.files
	e.mu.Unlock()
	return &chunks{
		ctx:     ctx,
		stream:  stream,
		subject: fileSubject(e.run, key, f.Name),
		left:    f.Size,
	}
}

// filesOf returns the files that a record names.
func filesOf(r *ledger.Record) []string {
	paths := []string{r.AgentTracePath, r.SupervisorTracePath, r.JudgeTracePath, r.DiffPath, r.CallsPath}
	for _, artefact := range r.Artifacts {
		paths = append(paths, artefact.Path)
	}
	for _, vote := range r.JudgeVotes {
		paths = append(paths, vote.TracePath)
	}
	if r.Verify != nil {
		paths = append(paths, r.Verify.OutputPath)
	}
	return slices.DeleteFunc(paths, func(name string) bool { return name == "" })
}

// insideRunDir makes sure that a record names only files of its own attempt.
func insideRunDir(r *ledger.Record) error {
	for _, name := range filesOf(r) {
		if path.Clean(name) != name || !strings.HasPrefix(name, r.RunDir+"/") {
			return fmt.Errorf("%w: it names %.80q, which is not a file of the attempt", errRecord, name)
		}
	}
	return nil
}

// checkLinks makes sure that no file that a record names is reached by a symlink, which may lead to
// any file of this machine.
func (e *Executor) checkLinks(r *ledger.Record) error {
	root, err := os.OpenRoot(filepath.Join(e.cfg.Dir, filepath.FromSlash(r.RunDir)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // nothing was left
	}
	if err != nil {
		return err
	}
	defer root.Close()
	for _, name := range filesOf(r) {
		below := strings.TrimPrefix(name, r.RunDir+"/")
		if end, err := tree.Beneath(root, below); !errors.Is(err, fs.ErrNotExist) && (err != nil || end != below) {
			return fmt.Errorf("%w: it names %.80q, which is a symlink or leads through one", errRecord, name)
		}
	}
	return nil
}

// sinceOf returns when an attempt was first published, by the clock of the hub.
func (e *Executor) sinceOf(tok string) time.Time {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.since[tok]
}

// checkNumbers makes sure that times are between the publication of the attempt and the arrival of
// its result, and that amounts can be.
func checkNumbers(r *ledger.Record, since, stored time.Time) error {
	from, to := since.Add(-timeTolerance).UnixMilli(), stored.Add(timeTolerance).UnixMilli()
	times := []int64{r.StartMs, r.EndMs}
	if r.Verify != nil {
		times = append(times, r.Verify.StartMs, r.Verify.EndMs)
	}
	for _, at := range times {
		if at != 0 && (at < from || at > to) { // 0: nobody has noted it
			return fmt.Errorf("%w: its times are not those of the attempt", errRecord)
		}
	}
	durations := append(slices.Collect(maps.Values(r.PhaseMs)), r.DurationMs, r.HeldMs)
	for i := range r.JudgeVotes {
		durations = append(durations, r.JudgeVotes[i].DurationMs)
	}
	for _, ms := range durations {
		if ms < 0 || ms > to-from {
			return fmt.Errorf("%w: it lasted longer than the attempt was with workers", errRecord)
		}
	}
	scores := []*float64{r.Score}
	if r.Grade != nil {
		scores = append(scores, r.Grade.Score)
	}
	for _, score := range scores {
		if score != nil && !(*score >= 0 && *score <= 1) {
			return fmt.Errorf("%w: its score is %.3g", errRecord, *score)
		}
	}
	if r.Turns < 0 || r.Turns > maxTurns {
		return fmt.Errorf("%w: it has %d turns", errRecord, r.Turns)
	}
	if t := r.Tokens; t != nil {
		for _, n := range []int64{t.InputTokens, t.OutputTokens, t.CacheReadTokens, t.CacheWriteTokens} {
			if n < 0 || n > maxTokens {
				return fmt.Errorf("%w: it has %d tokens", errRecord, n)
			}
		}
	}
	return nil
}

// checkCost compares the cost of a record with what its tokens cost by the prices of this machine,
// or by a price that no model has, with what the time allows, and with the budget of a cell.
func (e *Executor) checkCost(r *ledger.Record, since, stored time.Time) error {
	limit := perMinute * stored.Sub(since).Minutes()
	own := (*float64)(nil)
	if e.cfg.Cost != nil {
		own = e.cfg.Cost(r)
	}
	switch t := r.Tokens; {
	case own != nil:
		limit = min(limit, costFactor**own)
	case t != nil:
		limit = min(limit, dearest*float64(t.InputTokens+t.OutputTokens+t.CacheReadTokens+t.CacheWriteTokens))
	}
	limit = costAllowed + max(limit, 0)
	if p := e.cfg.Prepared; p.CellBudget.USD > 0 {
		limit = min(limit, costFactor*p.CellBudget.USD)
	}
	amounts := []float64{}
	if r.CostUSD != nil {
		amounts = append(amounts, *r.CostUSD)
	}
	if b := r.CostBreakdown; b != nil {
		amounts = append(amounts, b.Agent, b.Supervisor, b.Judge)
	}
	for i := range r.JudgeVotes {
		if usd := r.JudgeVotes[i].CostUSD; usd != nil {
			amounts = append(amounts, *usd)
		}
	}
	for _, usd := range amounts {
		if !(usd >= 0 && usd <= limit) {
			return fmt.Errorf("%w: it says that it cost %.3g dollars", errRecord, usd)
		}
	}
	return nil
}

// checkSetup makes sure that an attempt with a verdict ran as the pool asks for.
func checkSetup(r *ledger.Record, p *pool) error {
	switch {
	case r.Verdict == ledger.Error:
		return nil
	case r.Verdict != ledger.Pass && r.Verdict != ledger.Fail:
		return fmt.Errorf("%w: it has no verdict", errRecord)
	case r.Grade == nil || r.Verdict == ledger.Pass && r.Grade.Verdict != ledger.Pass:
		return fmt.Errorf("%w: its grade is not that of its verdict", errRecord)
	case !hasAgent(p.Needs, r.Agent, r.AgentVersion):
		return fmt.Errorf("%w: it ran with another agent than the plan's", errRecord)
	case r.Isolation == "" || !strings.HasPrefix(r.Isolation, p.Needs.Isolation):
		return fmt.Errorf("%w: it ran with isolation %.40q, not %q", errRecord, r.Isolation, p.Needs.Isolation)
	case r.Container != nil &&
		slices.Contains([]string{sandbox.IsolationNone, sandbox.IsolationBwrap}, p.Needs.Isolation):
		return fmt.Errorf("%w: it ran in a container, but its task has none", errRecord)
	}
	return nil
}

func hasAgent(n Needs, id, version string) bool {
	want, there := n.Agents[id]
	return there && want == version
}

// checkEvidence makes sure that a verdict comes with what it was made from: the trace of the agent,
// and every file that the record names, as it was recorded.
func (e *Executor) checkEvidence(r *ledger.Record) error {
	if err := e.checkLinks(r); err != nil || r.Verdict == ledger.Error {
		return err
	}
	if r.AgentTracePath == "" {
		return fmt.Errorf("%w: a verdict without a trace", errRecord)
	}
	info, err := os.Lstat(filepath.Join(e.cfg.Dir, filepath.FromSlash(r.AgentTracePath)))
	if err != nil || !info.Mode().IsRegular() {
		return fmt.Errorf("%w: a verdict without a trace", errRecord)
	}
	if _, problems := local.CheckArtefacts(e.cfg.Dir, []ledger.Record{*r}); len(problems) > 0 {
		return fmt.Errorf("%w: %s", errRecord, problems[0])
	}
	final := filepath.Join(e.cfg.Dir, filepath.FromSlash(r.RunDir), local.FinalDir)
	if r.Digests.Final == "" {
		return nil
	}
	if digest, err := experiment.TreeDigest(final); err != nil || digest != r.Digests.Final {
		return fmt.Errorf("%w: what the agent left is not what was graded", errRecord)
	}
	return nil
}

// unpackResult unpacks what an attempt left below the run directory. A complete directory stays: an
// earlier process put it there.
func (e *Executor) unpackResult(ctx context.Context, result done, name string) error {
	if result.File == nil && len(result.Tree) == 0 {
		return nil
	}
	e.unpackAt <- struct{}{}
	defer func() { <-e.unpackAt }()
	dir := filepath.Join(e.cfg.Dir, filepath.FromSlash(name))
	if _, err := os.Lstat(dir); err == nil {
		// names are given last, so a named directory is complete; it may be that of another try
		hash, err := portable.Hash(dir, nil)
		if err == nil && hash == result.SHA256 {
			return nil
		}
		if err := scratch.RemoveAll(dir); err != nil {
			return err
		}
	} else if !errors.Is(err, os.ErrNotExist) {
		return err
	}
	var from io.Reader = bytes.NewReader(result.Tree)
	size := int64(len(result.Tree))
	if size == 0 {
		from, size = e.open(ctx, result.key, result.File), result.File.Size
	}
	if err := unpackTree(from, result.SHA256, dir, resultLimit(size), resultUnpack); err != nil {
		return fmt.Errorf("what the attempt left: %w", err)
	}
	return nil
}
