package view

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/fit-eval/fit/internal/judge"
	"github.com/fit-eval/fit/internal/report/results"
	"github.com/fit-eval/fit/internal/report/skilltest"
	"github.com/fit-eval/fit/ledger"
)

// skillAnswer is the answer of /api/experiments/{x}/skill.
type skillAnswer struct {
	Version  int                  `json:"version"`
	Skill    string               `json:"skill"`
	Sentence string               `json:"sentence"`
	Arms     []string             `json:"arms"` // the baseline first
	Cases    []skilltest.CaseRuns `json:"cases"`
	Facts    []string             `json:"facts"`
}

// skill answers with a test of a skill: its cases with their runs, and what they come to.
func (s *Server) skill(r *http.Request, at location) (any, error) {
	if _, err := skillTest(at); err != nil {
		return nil, err
	}
	options := skilltest.Options{Auditor: s.auditor(), Allow: s.cfg.Allow}
	found, err := skilltest.Read(r.Context(), at.path, options)
	if err != nil {
		return nil, unreadable(errors.New(plain(at, err)))
	}
	return skillAnswer{
		Version:  version,
		Skill:    found.Skill,
		Sentence: found.Comparison.Decision.Sentence,
		Arms:     []string{found.Comparison.A.Arm, found.Comparison.B.Arm},
		Cases:    found.ByCase(),
		Facts:    found.Facts(),
	}, nil
}

// skillTest reads which skill a run directory tests.
func skillTest(at location) (*skilltest.Test, error) {
	if err := irregular(at); err != nil {
		return nil, unreadable(err)
	}
	test, err := skilltest.ReadTest(at.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, notFound(at.shown+" is not a test of a skill", "fit skill test makes one")
	case err != nil:
		return nil, unreadable(errors.New(plain(at, err)))
	}
	return test, nil
}

// testedSkill names the skill that a run directory tests; empty if it is no such test.
func testedSkill(at location) string {
	if at.path == "" {
		return ""
	}
	test, err := skillTest(at)
	if err != nil {
		return ""
	}
	return test.Skill
}

// feedback keeps what a person says about a case.
func (s *Server) feedback(r *http.Request, at location) (any, error) {
	var given struct {
		Case string `json:"case"`
		Text string `json:"text"`
	}
	if err := json.NewDecoder(r.Body).Decode(&given); err != nil {
		return nil, badRequest(`want {"case":…,"text":…}: ` + err.Error())
	}
	test, err := skillTest(at)
	if err != nil {
		return nil, err
	}
	s.writing.Lock()
	err = test.WriteFeedback(at.path, given.Case, s.clean([]byte(given.Text)))
	s.writing.Unlock()
	if err != nil {
		return nil, conflict("the feedback cannot be kept: "+plain(at, err), "")
	}
	return s.skill(r, at)
}

// dimensionSentences is in the place of a dimension where the sentences of test cases are labelled.
const dimensionSentences = "sentences"

// openSentences reads the runs of a test of a skill as judges see them, and a verdict for each of
// their sentences, in the same order.
func (s *Server) openSentences(ctx context.Context, at location) ([]judge.Subject, []judge.SentenceVerdict, error) {
	test, err := skillTest(at)
	if err != nil {
		return nil, nil, err
	}
	c, err := s.contest(ctx, at)
	if err != nil {
		return nil, nil, err
	}
	verdicts, err := judge.ReadSentences(at.path)
	if err != nil {
		return nil, nil, unreadable(errors.New(plain(at, err)))
	}
	subjects := test.Subjects(c.source)
	return subjects, judge.MergeSentences(subjects, verdicts), nil
}

// eachSentence calls a function with every sentence that a person can label. An item names it
// without identifying the run.
func (s *Server) eachSentence(subjects []judge.Subject, do func(at int, item string, of *judge.Subject)) {
	at := 0
	for i := range subjects {
		for k := range subjects[i].Sentences {
			if subjects[i].Problem == "" {
				do(at, s.blindID(dimensionSentences+strconv.Itoa(k), &subjects[i]), &subjects[i])
			}
			at++
		}
	}
}

// nextSentence answers with a sentence that nobody decided, in the order of the items' names: the
// order of the directory would reveal whose run it is.
func (s *Server) nextSentence(ctx context.Context, at location, skip []string) (*labelsAnswer, error) {
	subjects, verdicts, err := s.openSentences(ctx, at)
	if err != nil {
		return nil, err
	}
	count := labelled{Name: dimensionSentences, Status: "decided by people"}
	answer := &labelsAnswer{Version: version}
	s.eachSentence(subjects, func(n int, item string, of *judge.Subject) {
		v := &verdicts[n]
		switch {
		case v.Pass == nil:
			count.Left++
			if (answer.Item == nil || item < answer.Item.Item) && !slices.Contains(skip, item) {
				answer.Item = &blindItem{
					Item:     item,
					Evidence: s.clean([]byte(judge.SentenceItem(of, v.Sentence))),
					Question: "Is it true that “" + v.Text + "”?",
					Guide:    "What you see is what a judge would be shown.",
				}
			}
		case v.By == judge.ByPerson && *v.Pass:
			count.Pass++
		case v.By == judge.ByPerson:
			count.Fail++
		}
	})
	answer.Dimensions = []labelled{count}
	return answer, nil
}

// labelSentence keeps a person's verdict on a sentence and shows the next one.
func (s *Server) labelSentence(ctx context.Context, at location, item string, pass bool) (*labelsAnswer, error) {
	s.writing.Lock()
	defer s.writing.Unlock()
	subjects, verdicts, err := s.openSentences(ctx, at)
	if err != nil {
		return nil, err
	}
	found := -1
	s.eachSentence(subjects, func(n int, name string, _ *judge.Subject) {
		if name == item {
			found = n
		}
	})
	switch {
	case found < 0:
		return nil, notFound("there is no such sentence to label", "reload the page")
	case verdicts[found].Pass != nil:
		return nil, conflict("the sentence already has its verdict", "")
	}
	verdicts[found].Pass, verdicts[found].By = &pass, judge.ByPerson
	if err := judge.WriteSentences(at.path, verdicts); err != nil {
		return nil, conflict("the verdict cannot be kept: "+plain(at, err), "")
	}
	return s.nextSentence(ctx, at, nil)
}

// citedLines finds the lines of a diff that the verdicts on the sentences of a run cite.
func citedLines(r *ledger.Record, changed *diff) []citation {
	if r.HiddenTests == nil {
		return nil
	}
	var texts []string
	for _, raw := range r.HiddenTests.Details {
		var row results.SentenceRow
		if json.Unmarshal(raw, &row) == nil {
			texts = append(texts, row.Evidence...)
		}
	}
	return citations(strings.Join(texts, "\n"), changed)
}
