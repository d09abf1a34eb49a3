package local

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/experiment"
	"github.com/fit-eval/fit/internal/gateway"
	"github.com/fit-eval/fit/internal/grade"
	"github.com/fit-eval/fit/internal/harness"
	"github.com/fit-eval/fit/internal/harness/mcpserve"
	"github.com/fit-eval/fit/internal/judge"
	"github.com/fit-eval/fit/internal/sandbox"
	"github.com/fit-eval/fit/internal/scratch"
	"github.com/fit-eval/fit/internal/workspace"
	"github.com/fit-eval/fit/ledger"
	"github.com/fit-eval/fit/session"
)

// The default limits of a judge.
const (
	judgeTimeout = 10 * time.Minute
	judgeTurns   = 25
)

// judge asks the judge, if the task has one. It is only asked about work that the mechanical
// graders pass, and it can only turn a pass into a fail. If a judge does not conclude, the attempt
// is missing data, not a fail.
func (a *attempt) judge(ctx context.Context) bool {
	if a.task.JudgeTemplate == "" {
		return true
	}
	votes := a.prepared.Judge.VotesOn(a.task)
	a.record.Digests.Judge = a.judgeDigest(votes)
	for i := range votes {
		vote, class, err := a.vote(ctx, i)
		a.record.JudgeVotes = append(a.record.JudgeVotes, vote)
		switch {
		case ctx.Err() != nil:
			a.unjudged(ctx, ledger.ErrorInterrupted, ctx.Err())
			return true
		case class == ledger.ErrorAuth: // the next vote would end like this one
			a.unjudged(ctx, class, errors.New(vote.Error))
			return true
		case class == ledger.ErrorBudget:
			a.unjudged(ctx, class, err)
			return true
		}
	}
	verdict, summary, err := majority(a.record.JudgeVotes)
	if err != nil {
		a.unjudged(ctx, ledger.ErrorJudge, err)
		return true
	}
	if verdict == ledger.Fail {
		a.record.Verdict = ledger.Fail
	}
	a.record.JudgeVerdict = &ledger.JudgeMajority{Verdict: verdict, Summary: summary}
	g := a.record.Grade
	a.record.Score = grade.Effective(g.Score, g.Healthy, g.GatesPass, verdict == ledger.Pass)
	return true
}

// unscored begins the summary of a judge that cannot decide. The attempt has no verdict then.
const unscored = "UNSCORED"

func (a *attempt) unjudged(ctx context.Context, class string, err error) {
	a.record.Score = nil
	a.fail(ctx, class, err)
}

// majority returns the verdict of more than half of all votes. Votes without a conclusion count for
// neither side, so they can prevent a verdict.
func majority(votes []ledger.JudgeVote) (verdict, summary string, err error) {
	count := map[string]int{}
	for _, vote := range votes {
		count[vote.Verdict]++
	}
	for _, verdict := range []string{ledger.Pass, ledger.Fail} {
		if 2*count[verdict] <= len(votes) {
			continue
		}
		at := slices.IndexFunc(votes, func(v ledger.JudgeVote) bool { return v.Verdict == verdict })
		summary := votes[at].Summary
		if len(votes) > 1 {
			summary = fmt.Sprintf("%d of %d votes: %s", count[verdict], len(votes), summary)
		}
		return verdict, summary, nil
	}
	at := slices.IndexFunc(votes, func(v ledger.JudgeVote) bool { return v.Verdict == ledger.Error })
	switch {
	case at < 0:
		return "", "", errors.New("the judge was not asked")
	case len(votes) == 1:
		return "", "", errors.New(votes[0].Error)
	}
	return "", "", fmt.Errorf("no majority of the judge's %d votes: %d pass, %d fail, %d without a verdict (%s)",
		len(votes), count[ledger.Pass], count[ledger.Fail], count[ledger.Error], votes[at].Error)
}

// judgeDigest identifies the judge, so that human labels on its verdicts are not used for another
// one.
func (a *attempt) judgeDigest(votes int) string {
	sum := sha256.New()
	for _, part := range []string{
		a.prepared.Judge.Agent, a.prepared.Judge.Model, a.prepared.Family.JudgeProfile,
		a.task.JudgeTemplate,
		strconv.Itoa(votes),
	} {
		fmt.Fprintf(sum, "%d:%s", len(part), part)
	}
	return "sha256:" + hex.EncodeToString(sum.Sum(nil))
}

// vote holds one session of the judge and returns its verdict. The class says what kind of error
// it was, if any.
func (a *attempt) vote(ctx context.Context, number int) (vote ledger.JudgeVote, class string, err error) {
	began := time.Now()
	name := judgeTrace
	if number > 0 {
		name = fmt.Sprintf("judge-%d.ndjson", number+1)
	}
	result, err := a.runJudge(ctx, name, number)
	vote = ledger.JudgeVote{Verdict: ledger.Error, DurationMs: time.Since(began).Milliseconds()}
	if _, statErr := os.Stat(filepath.Join(a.dir, name)); statErr == nil {
		vote.TracePath = a.artefact(name)
		a.settleVote(name, &vote)
	}
	empty, spent := errors.AsType[*gateway.BudgetError](err)
	switch {
	case spent:
		vote.Error, class, a.record.BudgetOf = err.Error(), ledger.ErrorBudget, a.budgetOf(empty)
		if !empty.Unpriced {
			err = fmt.Errorf("%w%s", err, experiment.LargerBudget)
		}
	case err != nil:
		vote.Error, class = err.Error(), ledger.ErrorJudge
	case result.Reason == harness.ReasonAuth:
		vote.Error, class = fmt.Sprintf("the judge: %s", result.Summary), ledger.ErrorAuth
	case strings.HasPrefix(strings.ToUpper(strings.TrimSpace(result.Summary)), unscored):
		vote.Error, class = "the judge left it "+a.kept(result.Summary), ledger.ErrorJudge
	case result.Verdict == harness.VerdictSuccess:
		vote.Verdict, vote.Summary = ledger.Pass, a.kept(result.Summary)
	case result.Verdict == harness.VerdictFailure:
		vote.Verdict, vote.Summary = ledger.Fail, a.kept(result.Summary)
	default:
		vote.Error, class = fmt.Sprintf("the judge did not conclude (%s)", result.Reason), ledger.ErrorJudge
	}
	return vote, class, err
}

// runJudge runs the judge's session: in a neutral room with a copy of the work, and nothing of the
// harness, of other cells or of other votes.
func (a *attempt) runJudge(ctx context.Context, traceName string, number int) (harness.Result, error) {
	room, err := os.MkdirTemp(a.work, "judge-")
	if err != nil {
		return harness.Result{}, err
	}
	defer func() { _ = scratch.RemoveAll(room) }()
	view, home, profiles := filepath.Join(room, "room", "work"), filepath.Join(room, "home"), filepath.Join(room,
		"profiles")
	blind := a.blind()
	for _, dir := range []string{filepath.Dir(view), home, profiles} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return harness.Result{}, err
		}
	}
	if _, err := a.space.Copy(ctx, workspace.CopyConfig{Dest: view}); err != nil {
		return harness.Result{}, err
	}
	if err := a.writeSteps(blind, filepath.Join(filepath.Dir(view), judgeSteps)); err != nil {
		return harness.Result{}, err
	}
	profile := ""
	if a.prepared.Family.JudgeProfile != "" {
		profile = "family-judge"
		if err := os.WriteFile(filepath.Join(profiles, profile+".md"), []byte(a.prepared.Family.JudgeProfile),
			0o600); err != nil {
			return harness.Result{}, err
		}
		a.record.Profiles.Judge = &judgeProfileName
	}
	keys := mcpserve.NewKeyring(1)
	a.redact = a.redact.With(keys.Secrets())
	writer, err := a.openTrace(traceName)
	if err != nil {
		return harness.Result{}, err
	}
	if number == 0 {
		a.record.JudgeTracePath = a.artefact(traceName)
	}
	record, err := a.openCalls(traceName)
	if err != nil {
		return harness.Result{}, errors.Join(err, writer.Close())
	}
	options := harness.Options{Trace: writer, Connect: keys.Connect(mcpserve.Config{})}
	result, err := a.judgeSession(ctx, judgeRoom{
		view:     view,
		home:     home,
		profiles: profiles,
		profile:  profile,
		vote:     number,
		calls:    record,
		blind:    blind,
	}, options)
	a.addReplayed(record)
	return result, errors.Join(err, writer.Close(), record.Close())
}

// judgeRoom is the room of a judge: the copy of the work, its home, its profiles, and the number of
// its vote.
type judgeRoom struct {
	view, home, profiles, profile string
	vote                          int
	calls                         *gateway.Record
	blind                         *judge.Blind
}

var judgeProfileName = "judge"

func (a *attempt) judgeSession(ctx context.Context, room judgeRoom, options harness.Options) (harness.Result, error) {
	settings := a.prepared.Judge
	a.record.Model.Judge = settings.Model
	options.ProfilesDir, options.HomeDir = room.profiles, room.home
	options.Limits = harness.Limits{Timeout: cmp.Or(a.task.Settings.Timeouts.Judge, judgeTimeout)}
	options.Base = a.judgePlace(settings, room)
	judging, err := harness.NewJudge(harness.JudgeConfig{
		JudgeCwd:     room.view,
		JudgeProfile: room.profile,
		Judge: harness.AgentConfig{
			Agent:    settings.Agent,
			Model:    settings.Model,
			MaxTurns: judgeTurns,
			Cwd:      filepath.Dir(room.view),
		},
		ReadOnlySandbox: options.Base.Isolation.Kind == sandbox.IsolationBwrap,
		NewAgent:        a.query,
		Redactor:        a.redact,
		Options:         options,
	})
	if err != nil {
		return harness.Result{}, err
	}
	prompt, err := a.judgePrompt(room)
	if err != nil {
		return harness.Result{}, err
	}
	return judging.Run(ctx, prompt)
}

// judgePlace returns the place of the judge: it reads the work and its own room, and writes only to
// its own home.
func (a *attempt) judgePlace(settings experiment.JudgeConfig, room judgeRoom) agent.Config {
	installation, known := a.machine.lookUp(settings.Agent)
	network := a.judgeNetwork()
	readable := append([]string{filepath.Dir(room.view)}, installation.ReadPaths...)
	cfg := agent.Config{
		Environ:  a.machine.Host.Environ,
		CacheDir: a.machine.Host.CacheDir,
		ModelURL: modelURL(&a.prepared.Setup, a.cell.ForVote(room.vote).ModelURL(settings.ModelURL)),
		Prices:   a.machine.Prices,
		Spawner:  a.spawner,
		Gateway:  a.gatewayOf(gateway.Member{Cell: a.cell.Name()}, func() *gateway.Record { return room.calls }),
		Account:  a.pays,
		Limits:   sandbox.DefaultLimits(a.space.Isolation),
		Isolation: a.space.Conceal(sandbox.Isolation{
			Kind:     a.space.Isolation,
			ReadOnly: readable,
			Writable: []string{room.home},
			Network:  network == sandbox.NetworkHost,
		}),
		Network: network,
	}
	if known {
		cfg.Installation = &installation
	}
	return cfg
}

// modelOf returns the model that answered in a session, as its trace has it: that of a judge whose
// model nobody chose.
func (a *attempt) modelOf(name string) string {
	sessions, err := session.ReadFile(filepath.Join(a.dir, name), a.machine.Registry.Dialects(),
		session.Options{Flat: true})
	if err != nil {
		return ""
	}
	for _, s := range sessions {
		if s.Model != "" {
			return s.Model
		}
	}
	return ""
}

// settleVote adds the usage of a vote to the vote and to the record.
func (a *attempt) settleVote(name string, vote *ledger.JudgeVote) {
	sum, _, err := a.readUsage(name, nil)
	if err != nil {
		return
	}
	a.record.Model.Judge = cmp.Or(a.record.Model.Judge, a.modelOf(name))
	vote.Tokens = new(ledger.UsageJSON(sum))
	spent := a.record.CostUSD
	switch {
	case sum.TotalTokens == 0:
		nothing := 0.0
		vote.CostUSD = &nothing
	case spent == nil || sum.CostUSD == nil:
		vote.CostUSD, a.record.CostUSD = sum.CostUSD, nil
	default:
		vote.CostUSD = sum.CostUSD
		total := *spent + *sum.CostUSD
		a.record.CostUSD = &total
		if a.record.CostBreakdown == nil {
			a.record.CostBreakdown = &ledger.CostBreakdown{Agent: *spent}
		}
		a.record.CostBreakdown.Judge += *sum.CostUSD
	}
	if a.record.Tokens == nil && vote.Tokens.Total() > 0 {
		a.record.Tokens = &ledger.UsageJSON{} // what the judge used counts, whatever the agent did
	}
	if a.record.Tokens != nil {
		a.record.Tokens.Add(vote.Tokens)
	}
}
