package results

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/internal/experiment"
	"github.com/fit-eval/fit/internal/jsonenc"
	"github.com/fit-eval/fit/internal/judge"
	"github.com/fit-eval/fit/ledger"
)

// SentenceRow is the row of a sentence of a test case that a panel or a person decided.
type SentenceRow struct {
	Test string `json:"test"`
	Pass bool   `json:"pass"`
	// Sentence is what was judged, Shown whether on the outputs or on the trace.
	Sentence string   `json:"sentence"`
	Shown    string   `json:"shown"`
	By       string   `json:"by"`
	Evidence []string `json:"evidence,omitempty"`
	Message  string   `json:"message,omitempty"`
}

// SentenceName is the name of the row of a sentence, by its place in the case.
func SentenceName(index int) string { return fmt.Sprintf("sentence %d", index+1) }

// quoted is a sentence as it stands at the beginning of its message.
func quoted(sentence string) string { return fmt.Sprintf("%q: ", display.CutBytes(sentence, 200)) }

// Why says what was found, without the sentence itself.
func (r *SentenceRow) Why() string { return strings.TrimPrefix(r.Message, quoted(r.Sentence)) }

// WithSentences returns the records with the verdicts on the sentences of their cases, which were
// made after the runs. A sentence that is not true makes a pass a fail, one that nobody decided
// makes it missing data. The records of the ledger stay as they are.
func WithSentences(dir string, plan *experiment.Plan, records []ledger.Record) ([]ledger.Record, error) {
	verdicts, err := judge.ReadSentences(dir)
	if err != nil {
		return nil, err
	}
	type attempt struct {
		ledger.Cell
		number int
	}
	found := map[attempt][]judge.SentenceVerdict{}
	for _, v := range verdicts {
		at := attempt{v.Cell, v.Attempt}
		found[at] = append(found[at], v)
	}
	alone := map[string]int{} // the sentences of tasks that nothing else decides
	for i := range plan.Tasks {
		if n := plan.Tasks[i].Sentences; n > 0 {
			alone[plan.Tasks[i].ID] = n
		}
	}
	if len(found)+len(alone) == 0 {
		return records, nil
	}
	records = slices.Clone(records)
	for i := range records {
		r := &records[i]
		if err := addSentences(r, found[attempt{r.Cell(), r.Attempt}], alone[r.TaskID]); err != nil {
			return nil, err
		}
	}
	return records, nil
}

func addSentences(r *ledger.Record, verdicts []judge.SentenceVerdict, alone int) error {
	if r.Verdict == ledger.Error || len(verdicts)+alone == 0 {
		return nil
	}
	var suite ledger.HiddenTests
	if r.HiddenTests != nil {
		suite = *r.HiddenTests
	}
	suite.Details = slices.Clone(suite.Details)
	failed, open := 0, max(alone-len(verdicts), 0)
	for _, v := range verdicts {
		if v.Pass == nil {
			open++
			continue
		}
		if !*v.Pass {
			failed++
		}
		row, err := jsonenc.Marshal(SentenceRow{
			Test:     SentenceName(v.Index),
			Pass:     *v.Pass,
			Sentence: v.Text,
			Shown:    v.Shown,
			By:       v.By,
			Evidence: v.Evidence,
			Message:  quoted(v.Text) + v.Why,
		})
		if err != nil {
			return err
		}
		suite.Details = append(suite.Details, json.RawMessage(row))
	}
	r.HiddenTests = &suite
	switch {
	case r.Verdict != ledger.Pass:
	case failed > 0:
		r.Verdict, r.Score = ledger.Fail, nil
	case open > 0:
		r.Verdict, r.ErrorClass, r.Score = ledger.Error, ledger.ErrorJudge, nil
		r.ErrorMessage = fmt.Sprintf("nobody decided about %d of the sentences of the case: rerun fit skill test with "+
			"--panel or --label", open)
	}
	return nil
}
