package skillcli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"

	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/cli/experimentcli"
	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/internal/experiment"
	"github.com/fit-eval/fit/internal/judge"
	"github.com/fit-eval/fit/internal/report"
	"github.com/fit-eval/fit/internal/report/versus"
)

// repliesDir is the directory of a run directory with the replies of the panel, apart from those of
// a head to head.
const repliesDir = "sentences"

// decides reports whether somebody decides about sentences.
func (o *testOptions) decides() bool { return o.panel.File != "" || o.label }

// settings are those of a panel that is asked about sentences.
func (t *skillTest) settings() (s judge.Settings, err error) {
	s = judge.Settings{SelfTest: true, Sentences: true}
	if s.Prompts, err = judge.SentencePrompts(); err != nil {
		return s, err
	}
	return s, t.opts.panel.Apply(t.con, &s)
}

// checkPanel finds mistakes in the panel before anything is run.
func (t *skillTest) checkPanel(ctx context.Context, arms []experiment.Arm) error {
	if t.opts.panel.File == "" {
		return nil
	}
	settings, err := t.settings()
	if err != nil {
		return err
	}
	var underTest []string
	for i := range arms {
		underTest = append(underTest, arms[i].Agent, arms[i].Model)
	}
	return t.opts.panel.Check(ctx, t.con, &settings, underTest)
}

// judge has the sentences of the runs decided: by the panel, and then by a person.
func (t *skillTest) judge(ctx context.Context, dir string) error {
	if !t.opts.decides() || !slices.ContainsFunc(t.about.Cases, hasSentences) {
		return nil
	}
	source, err := experimentcli.OpenSource(ctx, t.con, t.registry, dir, versus.Options{})
	if err != nil {
		return err
	}
	subjects := t.about.Subjects(source)
	if t.opts.panel.File != "" {
		if err := t.askPanel(ctx, dir, source, subjects); err != nil {
			return err
		}
	}
	if t.opts.label {
		return t.askPerson(ctx, dir, subjects)
	}
	return nil
}

// askPanel puts the questions that have no reply yet. What was answered is kept whatever happens.
func (t *skillTest) askPanel(ctx context.Context, dir string, source *versus.Source, subjects []judge.Subject,
) (err error) {
	settings, err := t.settings()
	if err != nil {
		return err
	}
	if err := settings.Panel.Check(source.UnderTest(), settings.SameFamily); err != nil {
		return console.Exit(console.ExitUsage, err)
	}
	replies := filepath.Join(dir, repliesDir)
	if err := os.MkdirAll(replies, 0o700); err != nil {
		return err
	}
	store, err := judge.Open(replies)
	if err != nil {
		return console.Exit(console.ExitIncomplete, err)
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	limits := t.opts.panel.Limits(t.con)
	limits.Redactor = experimentcli.Redactor(t.con, t.registry)
	outcome, asked := store.Ask(ctx, settings, subjects, limits)
	for name, why := range outcome.LeftOut {
		fmt.Fprintf(t.con.Stderr, "judge %s was left out: %s\n", display.Line(name), display.Line(why))
	}
	fmt.Fprintf(t.con.Stderr, "sentences: %s to judges, %s\n", report.Count(outcome.Asked, "request"),
		display.FineDollars(outcome.CostUSD))
	verdicts, _ := judge.DeriveSentences(store.Replies(), settings, subjects)
	if err := judge.WriteSentences(dir, verdicts); err != nil {
		return err
	}
	return experimentcli.JudgingError(ctx, asked)
}

// askPerson shows sentences that nobody decided, blind and in random order, and keeps the verdicts.
func (t *skillTest) askPerson(ctx context.Context, dir string, subjects []judge.Subject) error {
	verdicts, err := judge.ReadSentences(dir)
	if err != nil {
		return err
	}
	type open struct {
		subject *judge.Subject
		verdict *judge.SentenceVerdict
	}
	var left []open
	merged := judge.MergeSentences(subjects, verdicts)
	at := 0
	for i := range subjects {
		for range subjects[i].Sentences {
			if v := &merged[at]; v.Pass == nil && subjects[i].Problem == "" {
				left = append(left, open{&subjects[i], v})
			}
			at++
		}
	}
	rand.New(rand.NewPCG(t.opts.Seed, 0)).Shuffle(len(left), func(i, j int) { left[i], left[j] = left[j], left[i] })
	answers := bufio.NewScanner(t.con.Stdin)
	for n, one := range left {
		if err := ctx.Err(); err != nil {
			return err
		}
		fmt.Fprintf(t.con.Stderr, "%s\n", display.Text(judge.SentenceItem(one.subject, one.verdict.Sentence)))
		about := fmt.Sprintf("%d of %d: is it true that %q", n+1, len(left), display.Line(one.verdict.Text))
		answer, err := t.con.AskVerdict(answers, about)
		if err != nil {
			return err
		}
		if answer == console.VerdictQuit {
			break
		}
		if answer == console.VerdictSkip {
			continue
		}
		one.verdict.Pass, one.verdict.By = new(answer == console.VerdictPass), judge.ByPerson
		if err := judge.WriteSentences(dir, merged); err != nil {
			return err
		}
	}
	return judge.WriteSentences(dir, merged)
}
