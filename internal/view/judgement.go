package view

import (
	"slices"
	"strconv"
	"strings"

	"github.com/fit-eval/fit/internal/lazyregexp"
	"github.com/fit-eval/fit/ledger"
)

// judgement is the verdict of a cell's judge.
type judgement struct {
	Verdict string `json:"verdict"`
	Summary string `json:"summary"`
	Votes   []vote `json:"votes"`
}

// vote is one of the votes that a verdict is made from.
type vote struct {
	Verdict    string     `json:"verdict"`
	Summary    string     `json:"summary"`
	Error      string     `json:"error"`
	CostUSD    *float64   `json:"costUsd"`
	DurationMs int64      `json:"durationMs"`
	Trace      string     `json:"trace"`
	Citations  []citation `json:"citations"`
}

// citation is a place in the diff that a judge names. A negative line is one of the old file.
type citation struct {
	File string `json:"file"`
	Line int    `json:"line"`
	Text string `json:"text"`
}

func judgementOf(answer *cellAnswer, snap *snapshot) *judgement {
	record := answer.Record
	if record.JudgeVerdict == nil && len(record.JudgeVotes) == 0 {
		return nil
	}
	j := &judgement{Votes: []vote{}}
	if record.JudgeVerdict != nil {
		j.Verdict, j.Summary = record.JudgeVerdict.Verdict, record.JudgeVerdict.Summary
	}
	for i := range record.JudgeVotes {
		j.Votes = append(j.Votes, voteOf(&record.JudgeVotes[i], answer.Diff, snap.at.id))
	}
	return j
}

func voteOf(v *ledger.JudgeVote, changed *diff, id string) vote {
	shown := vote{
		Verdict:    v.Verdict,
		Summary:    v.Summary,
		Error:      v.Error,
		CostUSD:    v.CostUSD,
		DurationMs: v.DurationMs,
		Citations:  citations(v.Summary, changed),
	}
	if v.TracePath != "" {
		shown.Trace = id + "/" + v.TracePath
	}
	return shown
}

// place matches a file and a line as judges write them: even.sh:3, or even.sh:-3 for a removed
// line.
var citedPlace = lazyregexp.New(`([^\s:()\[\]"'` + "`" + `,]+):(-?\d{1,7})\b`)

// citations finds the places of a diff that a text names. A place that the diff does not show is
// left out: it cannot be marked.
func citations(text string, changed *diff) []citation {
	found := []citation{}
	if changed == nil {
		return found
	}
	for _, match := range citedPlace.FindAllStringSubmatch(text, 100) {
		line, err := strconv.Atoi(match[2])
		if err != nil {
			continue
		}
		for i := range changed.Changes {
			file := &changed.Changes[i]
			if file.Name != match[1] && !strings.HasSuffix(file.Name, "/"+match[1]) {
				continue
			}
			at := slices.IndexFunc(file.Lines, func(one diffLine) bool {
				return line > 0 && one.After == line || line < 0 && one.Sign == "-" && one.Before == -line
			})
			if at >= 0 {
				found = append(found, citation{File: file.Name, Line: line, Text: file.Lines[at].Text})
			}
		}
	}
	return found
}
