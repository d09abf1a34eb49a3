package foreign

import (
	"io"

	"github.com/fit-eval/fit/internal/jsonenc"
	"github.com/fit-eval/fit/ledger"
)

// Inspect writes each record as a sample of a log of Inspect. A log has one arm.
func Inspect(w io.Writer, records []ledger.Record) error {
	samples := []map[string]any{}
	for i := range records {
		r := &records[i]
		if r.Arm != records[0].Arm {
			return choiceErrorf("a log of Inspect has one arm, and there are %s and %s", records[0].Arm, r.Arm)
		}
		sample := map[string]any{
			"id":     r.TaskID,
			"epoch":  r.RunIndex + 1,
			"input":  r.Digests.Visible,
			"target": "",
		}
		switch {
		case r.Verdict == ledger.Error:
			sample["error"] = map[string]any{"message": r.ErrorClass + ": " + r.ErrorMessage}
		case r.Score != nil:
			sample["scores"] = map[string]any{"fit": map[string]any{"value": *r.Score}}
		default:
			value := "I"
			if r.Verdict == ledger.Pass {
				value = "C"
			}
			sample["scores"] = map[string]any{"fit": map[string]any{"value": value}}
		}
		if r.DurationMs > 0 {
			sample["total_time"] = float64(r.DurationMs) / 1000
		}
		if own := oursOf(r); own != nil {
			sample["metadata"] = own
		}
		if r.Turns > 0 {
			sample["turn_count"] = r.Turns
		}
		if r.StartMs > 0 {
			sample["started_at"] = harborMoment(r.StartMs)
		}
		if t := r.Tokens; t != nil {
			usage := map[string]any{
				"input_tokens":             t.InputTokens,
				"output_tokens":            t.OutputTokens,
				"input_tokens_cache_read":  t.CacheReadTokens,
				"input_tokens_cache_write": t.CacheWriteTokens,
				"total_tokens":             t.Total(),
			}
			if r.CostUSD != nil {
				usage["total_cost"] = *r.CostUSD
			}
			sample["model_usage"] = map[string]any{modelOf(r): usage}
		}
		samples = append(samples, sample)
	}
	log := struct {
		Version int              `json:"version"`
		Status  string           `json:"status"`
		Eval    map[string]any   `json:"eval"`
		Results map[string]any   `json:"results"`
		Samples []map[string]any `json:"samples"`
	}{Version: 2, Status: "success", Samples: samples}
	log.Results = map[string]any{"total_samples": len(samples), "completed_samples": len(samples)}
	log.Eval = map[string]any{"task": "fit", "dataset": map[string]any{}, "config": map[string]any{}}
	if len(records) > 0 {
		log.Eval["model"], log.Eval["solver"] = modelOf(&records[0]), records[0].Arm
	}
	return jsonenc.WriteIndented(w, log)
}

// modelOf names the model of a run, or says that it is not known.
func modelOf(r *ledger.Record) string {
	if r.Model.Agent == "" {
		return "unknown"
	}
	return r.Model.Agent
}
