package evidence

import (
	"fmt"
	"strings"

	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/internal/lazyregexp"
	"github.com/fit-eval/fit/ledger"
	"github.com/fit-eval/fit/session"
)

// cause is one row of the table of causes: the first that finds evidence wins.
type cause struct {
	category, tier string
	confidence     float64
	find           func(*facts) (evidence []string)
}

var causes = []cause{
	{causeProviderError, tierEnvironmental, 0.95, (*facts).providerFailed},
	{CauseHarnessError, tierEnvironmental, 0.95, (*facts).harnessFailed},
	{CauseTimeout, tierResource, 1, (*facts).timedOut},
	{causeContextExhausted, tierResource, 0.9, (*facts).contextExhausted},
	{CauseBudgetOrLoop, tierResource, 0.8, (*facts).budgetOrLoop},
	{CauseNoChange, tierCapability, 1, (*facts).noChange},
	{causeRegression, tierCapability, 0.9, (*facts).regression},
	{CauseIncompleteFix, tierCapability, 0.7, (*facts).incompleteFix},
	{CauseWrongFix, tierCapability, 0.5, (*facts).wrongFix},
}

// Categories returns the categories of causes, in the order in which they are tried.
func Categories() []string {
	var all []string
	for _, c := range causes {
		all = append(all, c.category)
	}
	return all
}

// Tiers returns the tiers of causes.
func Tiers() []string { return []string{tierEnvironmental, tierResource, tierCapability} }

// attribution returns why an unresolved attempt failed.
func (f *facts) attribution() *ErrorAttribution {
	for _, c := range causes {
		if evidence := c.find(f); len(evidence) > 0 {
			return &ErrorAttribution{
				Category:   c.category,
				Tier:       c.tier,
				Method:     MethodHeuristic,
				Confidence: c.confidence,
				Evidence:   evidence,
				Tags:       f.tags(),
			}
		}
	}
	return nil
}

func (f *facts) providerFailed() []string {
	switch {
	case f.record.ErrorClass == ledger.ErrorProvider, f.record.ErrorClass == ledger.ErrorAuth:
		return []string{said(f.record.ErrorClass, f.record.ErrorMessage)}
	case f.session.Outcome == session.OutcomeProvider, f.session.Outcome == session.OutcomeAuth:
		return []string{"outcome: " + string(f.session.Outcome)}
	case f.seen != nil && f.seen.failures.provider != nil && f.session.Outcome != session.OutcomeSuccess:
		return []string{f.seen.failures.provider.String()}
	}
	return nil
}

func (f *facts) harnessFailed() []string {
	switch {
	case f.record.Verdict == ledger.Error || f.record.ErrorClass != "":
		return []string{said(f.record.ErrorClass, f.record.ErrorMessage)}
	case f.record.Verify != nil && f.record.Verify.Error != "":
		return []string{said("verify could not be started", f.record.Verify.Error)}
	case f.malformed():
		return []string{fmt.Sprintf("%d of %d lines of the stream are malformed, and the model completed no turn",
			f.session.ParseErrors, f.session.ParseErrors+f.seen.events)}
	}
	return nil
}

// malformed reports whether most of the stream cannot be read. An agent can print anything, so
// garbage alone does not exclude an attempt: there must also be no turn of the model.
func (f *facts) malformed() bool {
	return f.seen != nil && f.session.ParseErrors > f.seen.events && f.session.Turns == 0
}

func said(what, message string) string {
	message = strings.TrimPrefix(message, what+": ")
	if message == "" {
		return what
	}
	return what + ": " + display.FirstBytes(message, maxExcerpt)
}

func (f *facts) timedOut() []string {
	if f.session.Outcome == session.OutcomeTimeout || f.session.Process != nil && f.session.Process.TimedOut {
		return []string{"killed by the wall clock"}
	}
	return nil
}

// maxCompactions is the number of compactions from which an interrupted conversation counts as too
// long.
const maxCompactions = 2

func (f *facts) contextExhausted() []string {
	if f.seen == nil {
		return nil
	}
	failures := &f.seen.failures
	switch {
	case failures.overflow != nil:
		return []string{failures.overflow.String()}
	case failures.compactions >= maxCompactions && f.session.Outcome != session.OutcomeSuccess:
		return []string{fmt.Sprintf("%d compactions, and the last turn broke off", failures.compactions)}
	}
	return nil
}

func (f *facts) budgetOrLoop() []string {
	switch f.session.Outcome {
	case session.OutcomeBudget, session.OutcomeMaxTurns, session.OutcomeOutput:
		return []string{"outcome: " + string(f.session.Outcome)}
	default:
	}
	if f.seen == nil {
		return nil
	}
	failures := &f.seen.failures
	switch {
	case failures.limit != nil:
		return []string{failures.limit.String()}
	case failures.loop != nil:
		return []string{failures.loop.String()}
	case failures.stalled():
		return []string{fmt.Sprintf("%d turns without a call that succeeded", failures.lastTurn-failures.progressTurn)}
	}
	return nil
}

func (f *facts) noChange() []string {
	if len(f.files) > 0 {
		return nil
	}
	return []string{fmt.Sprintf("exit code %d, and the diff is empty", f.session.ExitCode)}
}

func (f *facts) regression() []string {
	_, _, regressed := targets(f.task, rowsOf(f.record))
	var evidence []string
	for _, name := range regressed[:min(len(regressed), 5)] {
		evidence = append(evidence, "passed at the base and fails now: "+display.FirstBytes(name, maxExcerpt))
	}
	return evidence
}

func (f *facts) incompleteFix() []string {
	passed, failed, _ := targets(f.task, rowsOf(f.record))
	if len(passed) == 0 || len(failed) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%d of %d checks pass", len(passed), len(passed)+len(failed))}
}

func (f *facts) wrongFix() []string {
	if f.verify == nil {
		return []string{"the diff is not empty, and nothing says that it is right"}
	}
	return []string{fmt.Sprintf("verify ended with exit code %d", f.verify.ExitCode)}
}

// The tags of what else went wrong.
const (
	tagUnverified      = "unverified"
	tagEditFailures    = "edit_failures"
	tagEditWithoutRead = "edit_without_read"
	tagExploration     = "exploration_heavy"
	tagReminderLoop    = "reminder_loop"
	tagUnknownCommand  = "unknown_command"
	tagFalseSuccess    = "false_success_claim"
)

// heavyExploration is a share of reads, searches and listings that is larger than most need.
const heavyExploration = 0.6

func (f *facts) tags() []string {
	tags := []string{}
	if f.seen == nil {
		return tags
	}
	add := func(tag string, holds bool) {
		if holds {
			tags = append(tags, tag)
		}
	}
	failures := &f.seen.failures
	add(tagUnverified, len(f.files) > 0 && f.seen.tests.lastPostEdit == 0)
	add(tagEditFailures, f.seen.edits.failed > 0)
	add(tagEditWithoutRead, failures.editWithoutRead)
	share := explorationShare(f.seen)
	add(tagExploration, share != nil && *share > heavyExploration)
	add(tagReminderLoop, failures.reminderLoop)
	add(tagUnknownCommand, failures.unknownCommand)
	add(tagFalseSuccess, f.verify != nil && !f.verify.Passed && claimsSuccess(f.session.FinalText))
	return tags
}

var successClaim = lazyregexp.New(`(?i)\b(?:fixed|resolved|solved|implemented|completed?|done|works? (?:now|correctly)|successfully)\b`)

// claimsSuccess reports whether an agent's last words say that it has done what was asked.
func claimsSuccess(text string) bool {
	return claimOf(text, passClaim) != "" || claimOf(text, successClaim) != ""
}
