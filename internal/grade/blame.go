package grade

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/fit-eval/fit/internal/lazyregexp"
	"github.com/fit-eval/fit/internal/task"
)

// Whose fault it is that a grader did not do its work. The rule is the same for hooks, hidden tests
// and commands to verify:
//
//  1. A grader that this machine cannot start is started again; if that does not help, the error is
//     the machine's.
//  2. It runs again on the same files. If it then does its work, or ends in another way, nothing
//     was measured. A program of the agent can arrange that, so the error is unverified: what may
//     be claimed holds for the best and the worst outcome of the run.
//  3. It runs without the agent's work. If it does not do its work there either, it is broken.
//  4. What may be an accident (it was killed, it ended without a report, it printed the last words
//     of a killed program, be its report complete or not) has to happen again as often as
//     confirmations says, in the same way, and never without the work. Anything else, such as
//     running out of time, has to happen twice.
//
// Only then the work has done it, and fails: a program that kills its grader each time gains
// nothing.

// confirmations is how often a grader that may have met an accident is run again, with the agent's
// work and without it, before the agent is blamed: accidents that meet every fifth run blame it in
// one of three thousand cases.
const confirmations = 4

// repetition is the time that one grading has spent on running graders again. All of them together
// may take as long as one may: after that, what failed in the same way twice is confirmed, and what
// runs out of time is not run again.
type repetition struct{ spent time.Duration }

// runAgain counts the time of a grader that is run again.
func runAgain[T any](g *grading, run func() (T, error)) (T, error) {
	began := time.Now()
	result, err := run()
	g.again.spent += time.Since(began)
	return result, err
}

// exhausted reports whether running graders again has taken as long as one of them may take.
func (g *grading) exhausted(limit time.Duration) bool {
	return g.again.spent >= cmp.Or(limit, defaultTimeout)
}

// lastWords are what shells, compilers and test runners print about a process that was killed or
// could not be made; GOCACHEPROG is the go command's name for the one that serves its cache. The
// agent's programs can print them too: then the check only runs more often.
var lastWords = lazyregexp.New(`(?i)\bkilled\b|\bSIG(KILL|TERM)\b|\bsignal[:= ]*(9|15)\b|` +
	`exit (status|code):? -?(9|137)\b|` +
	`resource temporarily unavailable|cannot allocate memory|no space left on device|too many open files|` +
	`\bcannot fork\b|out of memory|\bGOCACHEPROG\b`)

// cannotFork is what shells say if they cannot start a process.
var cannotFork = lazyregexp.New(`(?im)\bfork: (retry: )?(resource temporarily unavailable|cannot allocate memory)|` +
	`\bcannot fork\b`)

// way returns how a run ended that gave no complete report; repetitions are compared by it.
func (e evidence) way() string {
	switch {
	case e.cannotRun != "":
		return "could not run"
	case e.abortReason != "":
		return e.abortReason
	case e.silent():
		return "reported nothing"
	}
	return ""
}

// blame decides by the rule above whose fault it is that a check failed without a complete report;
// if it is the agent's, the failed row says so. Without a reference solution a check may well be
// silent on the base, so then the question is only whether something kills it there, or whether the
// sandbox still works.
func (s *suiteRun) blame(ctx context.Context, what string, shown evidence, want expectation, try attempt,
	found *graded,
) error {
	reason := shown.failure(want)
	if reason == "" || !found.health.ok() || !shown.doubtful() && !shown.silent() {
		return nil
	}
	broken, solved, limit := what+" "+reason, s.Task.HasSolution(), s.Task.Settings.Timeouts.Test
	if shown.accident && !lastWords.MatchString(broken) {
		broken += ", beside a killed program"
	}
	comparable := shown.tells(solved)
	if !comparable {
		done, err := s.run(ctx, program{argv: []string{"true"}, dir: s.copied.Dir, place: s.place})
		if err != nil {
			return err
		}
		if done.status() != 0 {
			found.health = health{broken: broken + ", and no other program runs in the sandbox", graderFault: true}
			return nil
		}
	}
	for round := 0; ; round++ {
		if comparable {
			base, err := runAgain(s.grading, func() (evidence, error) { return s.withoutAgent(ctx, try) })
			if err != nil {
				return err
			}
			switch silenced := base.tells(solved) && base.failure(want) != ""; {
			case silenced && round > 0:
				found.health = flaky(broken, "without the agent's work it sometimes works and sometimes does not")
				return nil
			case silenced:
				found.health = health{broken: broken + ", and without the agent's work too", graderFault: true}
				return nil
			}
		}
		if shown.told || round == confirmations || s.exhausted(limit) && (round > 0 || shown.timedOut) {
			return nil
		}
		again, err := runAgain(s.grading, func() (evidence, error) { return s.unrecorded().tryAlone(ctx, try) })
		switch {
		case err != nil:
			return err
		case again.failure(want) == "":
			found.health = worksOnRetry(broken)
			return nil
		case again.way() != shown.way():
			found.health = endsOtherwise(broken, again.failure(want))
			return nil
		case again.timedOut || !again.died && !again.accident: // it fails without an accident
			return nil
		}
	}
}

// blameHook decides by the rule above whose fault it is that a hook did not do its work.
func (g *grading) blameHook(ctx context.Context, found graded, broken string) (health, error) {
	if g.fromBase { // there is nothing to compare with
		return health{broken: broken, graderFault: true, cause: found.cause()}, nil
	}
	for round := 0; ; round++ {
		base, err := runAgain(g, func() (graded, error) { return g.without(false).runHook(ctx) })
		if err != nil {
			return health{}, err
		}
		problem := base.failureReason()
		silent := len(base.rows) == 0 && base.health.ok()
		switch {
		case silent && len(found.rows) == 0 && found.health.ok():
			// It only checks that it runs; the number of all checks decides whether that is enough.
			return health{}, nil
		case problem != "" && !silent && round > 0:
			return flaky(broken, "on the base it sometimes works and sometimes does not: "+problem).of(base), nil
		case problem != "" && !silent:
			h := health{broken: broken + "; on the base: " + problem, graderFault: true}
			return h.of(base), nil
		case round == confirmations, round > 0 && g.exhausted(g.Task.Settings.Timeouts.Invariants):
			return health{broken: broken}, nil
		}
		again, err := runAgain(g, func() (graded, error) { return g.unrecorded().runHook(ctx) })
		switch {
		case err != nil:
			return health{}, err
		case again.failureReason() == "":
			return worksOnRetry(broken).of(found), nil
		case again.way != found.way:
			return endsOtherwise(broken, again.failureReason()).of(found), nil
		case !found.died:
			return health{broken: broken}, nil
		}
	}
}

// confirm runs a hook again whose check failed beside a possible accident.
func (g *grading) confirm(ctx context.Context, found graded) (health, error) {
	for round := range confirmations {
		if round > 0 && g.exhausted(g.Task.Settings.Timeouts.Invariants) {
			break
		}
		again, err := runAgain(g, func() (graded, error) { return g.unrecorded().runHook(ctx) })
		switch {
		case err != nil:
			return found.health, err
		case again.failureReason() != "" || !slices.Equal(again.failing(), found.failing()):
			return worksOnRetry(found.accident).of(found), nil
		case again.accident == "": // it fails without an accident
			return found.health, nil
		}
	}
	return found.health, nil
}

// confirmVerifier runs a verifier again that did not give its full reward and printed the last
// words of a program that was killed: what it writes then looks like wrong work.
func (g *grading) confirmVerifier(ctx context.Context, v *task.Verifier, found *verified) error {
	if !found.health.ok() || !found.accident || tallyOf(rewardRows(found.rewards, "")).FullMarks {
		return nil
	}
	for round := range confirmations {
		if round > 0 && g.exhausted(v.Timeout) {
			break
		}
		again, err := runAgain(g, func() (verified, error) { return g.unrecorded().verify(ctx, v, "") })
		switch {
		case err != nil:
			return err
		case !again.health.ok():
			found.health = endsOtherwise("the verifier's reward came with a killed program", again.health.broken)
			return nil
		case !maps.Equal(again.rewards, found.rewards):
			found.health = endsOtherwise("the verifier's reward came with a killed program", "with another reward")
			return nil
		case !again.accident:
			return nil
		}
	}
	return nil
}

// confirmInstance runs the tests of a SWE-bench task again that failed without a result for any
// test, or with the last words of a program that was killed.
func (g *grading) confirmInstance(ctx context.Context, shown instanceRun, failing []string) (health, error) {
	what := "the tests failed beside a killed program, or without a result"
	for round := range confirmations {
		if len(failing) == 0 || !g.accidental(shown) || round > 0 && g.exhausted(g.Task.Instance.Timeout) {
			break
		}
		again, err := runAgain(g, func() (instanceRun, error) { return g.unrecorded().tryInstance(ctx) })
		switch {
		case err != nil:
			return health{}, err
		case again.broken != shown.broken:
			return endsOtherwise(what, cmp.Or(again.broken, "it ends by itself")), nil
		}
		other := g.unrecorded()
		other.instance = &InstanceReport{}
		if again.broken == "" && !slices.Equal(other.resolve(again).failing(), failing) {
			return worksOnRetry(what), nil
		}
		shown = again
	}
	return health{}, nil
}

// accidental reports whether a run of tests may have met an accident.
func (g *grading) accidental(run instanceRun) bool {
	results, _ := run.results(g.Task.Instance.LogParser)
	return run.broken != "" || len(results.tests) == 0 || lastWords.MatchString(string(run.log))
}

// of adds what a run of a hook knows about the cause.
func (h health) of(run graded) health {
	h.cause = run.cause()
	return h
}

// why returns the cause for programs.
func (h health) why() string {
	if h.cause == "" && h.graderFault && lastWords.MatchString(h.broken) {
		return causeKilled
	}
	return h.cause
}

// cause is CauseNoProcess for a hook that could not start processes.
func (found graded) cause() string {
	if found.noProcess {
		return CauseNoProcess
	}
	return ""
}

func flaky(broken, why string) health {
	return health{broken: broken + ", and it is flaky: " + why, graderFault: true}
}

func worksOnRetry(broken string) health {
	h := flaky(broken, "run again on the same files it works")
	h.works = true
	return h
}

func endsOtherwise(broken, how string) health {
	h := flaky(broken, "run again on the same files it ends otherwise: "+how)
	h.works = true
	return h
}
