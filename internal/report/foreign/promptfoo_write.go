package foreign

import (
	"io"

	"github.com/fit-eval/fit/internal/jsonenc"
	"github.com/fit-eval/fit/ledger"
)

// Promptfoo writes each record as a result of promptfoo.
func Promptfoo(w io.Writer, records []ledger.Record) error {
	results := []map[string]any{}
	for i := range records {
		r := &records[i]
		vars := map[string]any{}
		if r.Digests.Visible != "" { // what is not known is not the same everywhere
			vars["content"] = r.Digests.Visible
		}
		result := map[string]any{
			"promptIdx": 0,
			"testIdx":   i,
			"testCase": map[string]any{
				"description": r.TaskID,
				"vars":        vars,
			},
			"provider":      map[string]any{"id": r.Agent, "label": r.Arm},
			"success":       r.Verdict == ledger.Pass,
			"failureReason": 0,
			"latencyMs":     r.DurationMs,
		}
		switch r.Verdict {
		case ledger.Fail:
			result["failureReason"] = 1
		case ledger.Error:
			result["failureReason"], result["error"] = promptfooErrored, r.ErrorClass+": "+r.ErrorMessage
		}
		if own := oursOf(r); own != nil {
			result["metadata"] = own
		}
		if r.Score != nil {
			result["score"] = *r.Score
		}
		response := map[string]any{}
		if r.CostUSD != nil {
			result["cost"], response["cost"] = *r.CostUSD, *r.CostUSD // a result that cost 0 may have no price
		}
		if t := r.Tokens; t != nil {
			response["tokenUsage"] = map[string]any{
				"prompt":     t.InputTokens + t.CacheWriteTokens + t.CacheReadTokens,
				"completion": t.OutputTokens,
				"total":      t.Total(),
				"completionDetails": map[string]any{
					"cacheReadInputTokens": t.CacheReadTokens, "cacheCreationInputTokens": t.CacheWriteTokens,
				},
			}
		}
		if len(response) > 0 {
			result["response"] = response
		}
		results = append(results, result)
	}
	type inner struct {
		Version int              `json:"version"`
		Results []map[string]any `json:"results"`
	}
	return jsonenc.WriteIndented(w, struct {
		EvalID  string `json:"evalId"`
		Results inner  `json:"results"`
	}{"fit", inner{Version: 3, Results: results}})
}
