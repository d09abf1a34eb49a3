package view

import (
	"path"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

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

// maxCitations bounds the lines that one text is taken to name.
const maxCitations = 100

// citations finds the lines of a diff that a text names, as judges do: even.sh:3, or even.sh:-3 for
// a removed line. They are looked for by name; what the text says is not read.
func citations(text string, changed *diff) []citation {
	found := []citation{}
	if changed == nil {
		return found
	}
	for i := range changed.Changes {
		file := &changed.Changes[i]
		named := file.Name
		if !strings.Contains(text, named+":") { // judges may leave out the directory
			named = path.Base(named)
		}
		if !strings.Contains(text, named+":") {
			continue
		}
		for _, line := range file.Lines {
			number := line.After
			if line.Sign == "-" {
				number = -line.Before
			}
			if number != 0 && hasPlace(text, named+":"+strconv.Itoa(number)) && len(found) < maxCitations {
				found = append(found, citation{File: file.Name, Line: number, Text: line.Text})
			}
		}
	}
	return found
}

// hasPlace reports whether a text has a place that is no part of a longer one.
func hasPlace(text, place string) bool {
	for before, after, found := strings.Cut(text, place); found; before, after, found = strings.Cut(after, place) {
		first, _ := utf8.DecodeRuneInString(after)
		last, _ := utf8.DecodeLastRuneInString(before)
		if !unicode.IsDigit(first) && !unicode.IsLetter(last) && !unicode.IsDigit(last) &&
			!strings.ContainsRune("_-.", last) {
			return true
		}
	}
	return false
}
