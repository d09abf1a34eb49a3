package foreign

import (
	"encoding/csv"
	"io"
	"strconv"

	"github.com/fit-eval/fit/ledger"
)

// Table writes each record as a row of CSV, which is read as it is written.
func Table(w io.Writer, records []ledger.Record) error {
	out := csv.NewWriter(w)
	if err := out.Write(Columns); err != nil {
		return err
	}
	for _, r := range records {
		wrong, pass, input, output, score, cost, seconds, agent := "", "", "", "", "", "", "", ""
		switch r.Verdict {
		case ledger.Error:
			wrong = r.ErrorClass + ": " + r.ErrorMessage
		default:
			pass = strconv.FormatBool(r.Verdict == ledger.Pass)
		}
		if r.Score != nil {
			score = decimal(*r.Score)
		}
		if r.CostUSD != nil {
			cost = decimal(*r.CostUSD)
		}
		if t := r.Tokens; t != nil {
			input = strconv.FormatInt(t.InputTokens+t.CacheReadTokens+t.CacheWriteTokens, 10)
			output = strconv.FormatInt(t.OutputTokens, 10)
		}
		if r.DurationMs > 0 {
			seconds = decimal(float64(r.DurationMs) / 1000)
		}
		if ms := r.PhaseMs[phaseAgent]; ms > 0 {
			agent = decimal(float64(ms) / 1000)
		}
		row := []string{
			r.TaskID, r.Arm, strconv.Itoa(r.RunIndex), pass, score, wrong, cost, input, output, seconds, agent,
			r.Agent, r.Model.Agent, r.Digests.Visible,
		}
		if err := out.Write(row); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

// decimal writes a number so that it is read as the same.
func decimal(value float64) string { return strconv.FormatFloat(value, 'g', -1, 64) }
