package foreign

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fit-eval/fit/internal/inspectlog"
	"github.com/fit-eval/fit/internal/jsondoc"
	"github.com/fit-eval/fit/internal/jsontape"
	"github.com/fit-eval/fit/internal/lazyregexp"
	"github.com/fit-eval/fit/ledger"
)

// inspectReader reads logs of Inspect: an archive, or one JSON document. A sample is a task, an
// epoch a run, and a model with its solver and arguments an arm.
var inspectReader = reader{format: "inspect", finds: findInspect, read: readInspect}

// maxReserved bounds the samples for which memory is reserved.
const maxReserved = 100_000

func findInspect(root string, info os.FileInfo) []string {
	if !info.IsDir() {
		if inspectlog.Is(root) {
			return []string{root}
		}
		return nil
	}
	var files, damaged []string
	for _, file := range filesIn(root) {
		switch ext := filepath.Ext(file); {
		case (ext == ".eval" || ext == ".json") && inspectlog.Is(file):
			files = append(files, file)
		case ext == ".eval":
			damaged = append(damaged, file)
		}
	}
	if len(files) > 0 {
		files = append(files, damaged...) // reading one says what is wrong with it
	}
	return files
}

// filesIn lists the regular files of a directory, not those of its sub-directories.
func filesIn(dir string) []string {
	entries, _ := os.ReadDir(dir) // what cannot be read has none
	var files []string
	for _, entry := range entries {
		if entry.Type().IsRegular() {
			files = append(files, filepath.Join(dir, entry.Name()))
		}
	}
	return files
}

// inspection is a log that is being read.
type inspection struct {
	*source
	log     inspectLog
	arm     string
	start   int              // the first of its records, which are not complete until the scorer is known
	scores  [][]inspectScore // of each
	scorers []string
	samples int
	cut     bool // the log has no end
	reduced []inspectReduction
	parser  jsontape.Parser
}

func readInspect(s *source, file string) error {
	in := &inspection{source: s, start: len(s.list)}
	err := inspectlog.Read(file, inspectlog.Parts{
		Header: func(text []byte, cut bool, samples int) error {
			if in.cut = cut; cut {
				in.doubt("the log was cut: the run did not end")
			}
			in.list = slices.Grow(in.list, min(samples, maxReserved)) // growing takes twice the memory
			return jsondoc.Decode(text, &in.log)
		},
		Reductions: func(text []byte) error { return jsondoc.Decode(text, &in.reduced) },
		Sample:     in.sample,
	})
	if err != nil {
		return err
	}
	return in.finish()
}

// inspectScore is what one scorer says of a sample.
type inspectScore struct {
	scorer  string
	value   float64
	known   bool // it says something
	decides bool // it can be counted
}

// sample reads a sample. Its scores wait until all scorers are known.
func (in *inspection) sample(name string, text []byte) error {
	sample, ok := in.parser.Parse(text)
	if !ok { // NaN is not JSON, but Python writes it
		clean, err := io.ReadAll(jsondoc.Finite(bytes.NewReader(text)))
		if sample, ok = in.parser.Parse(clean); err != nil || !ok {
			return errors.New("it is not JSON")
		}
	}
	if sample.Kind() != jsontape.Object || !sample.Get("id").Exists() {
		return errors.New("it is no sample: it has no id")
	}
	in.samples++
	r := run{
		task:  idOf(sample.Get("id")),
		index: sample.Get("epoch").Int() - 1,
		trace: sampleName(in.from.File, name),
	}
	r.content = contentOf(resolved(sample, "input"), resolved(sample, "choices"), resolved(sample, "target"))
	if r.index < 0 || r.index >= maxRuns || r.task == "" {
		return fmt.Errorf("it has no id, or no epoch from 1 on and up to %d", maxRuns)
	}
	in.took(&r, sample)
	var scores []inspectScore
	for scorer, score := range sample.Get("scores").Members() {
		scores = in.scoresOf(scores, scorer, score.Get("value"))
	}
	switch wrong := sample.Get("error"); wrong.Kind() {
	case jsontape.Object:
		r.message = cut(cmp.Or(strings.Clone(wrong.TextOf("message")), "an error without a message"))
	case jsontape.String:
		r.message = cut(strings.Clone(wrong.Text()))
	default: // null: there was none
	}
	if len(scores) == 0 {
		failed(&r, cmp.Or(r.message, "the sample has no score"))
	}
	if what := sample.Get("invalidation"); what.Kind() == jsontape.Object {
		failed(&r, "invalidated")
		in.doubt("some samples were invalidated, and count as missing")
	}
	in.list, in.scores = append(in.list, r), append(in.scores, scores)
	return nil
}

// idOf returns the id of a sample, a number or a text.
func idOf(id jsontape.Value) string {
	if id.Kind() == jsontape.Number {
		return string(id.Raw())
	}
	return strings.Clone(id.Text())
}

// resolved returns a part of a sample as it was: long texts stand among its attachments.
func resolved(sample jsontape.Value, name string) []byte {
	value := sample.Get(name)
	if hash, ok := strings.CutPrefix(value.Text(), "attachment://"); ok {
		value = sample.Path("attachments", hash)
	}
	if value.Kind() == jsontape.Null {
		return nil
	}
	var text bytes.Buffer
	if value.Kind() == jsontape.String || json.Compact(&text, value.Raw()) != nil {
		return bytes.Clone(value.Raw())
	}
	return messageIDs.Get().ReplaceAll(text.Bytes(), nil)
}

// messageIDs are those of messages in an input: they are made anew for every log.
var messageIDs = lazyregexp.New(`"id":"[^"\\]*",?`)

// inspectLimits are our words for the limits of Inspect.
var inspectLimits = map[string]string{
	"message": "max_turns", "turn": "max_turns", "time": "timeout", "working": "timeout", "token": "budget",
	"cost": "budget",
}

// took fills in what a sample took, as far as it says.
func (in *inspection) took(r *run, sample jsontape.Value) {
	r.duration = millis(amount(sample.Get("total_time")))
	r.agentTook(int64(amount(sample.Path("metadata", "fitAgentMs"))))
	if began, err := time.Parse(time.RFC3339, sample.TextOf("started_at")); err == nil {
		r.startMs = began.UnixMilli()
		r.endMs = r.startMs + r.duration
	}
	limit := cmp.Or(sample.Path("limit", "type").Text(), sample.TextOf("limit"))
	if r.outcome = inspectLimits[limit]; limit != "" {
		r.notes = append(r.notes, "ended by a limit: "+strings.Clone(limit))
	}
	if r.turns = int(amount(sample.Get("turn_count"))); r.turns == 0 { // older versions do not count them
		for message := range sample.Get("messages").Elements() {
			if message.TextOf("role") == "assistant" {
				r.turns++
			}
		}
	}
	var cost float64
	models, priced, tokens := 0, 0, true
	for _, usage := range sample.Get("model_usage").Members() {
		if r.tokens == nil {
			r.tokens = &ledger.UsageJSON{}
		}
		models++
		count := func(name string) int64 {
			tokens = tokens && possible(usage.Get(name))
			return int64(amount(usage.Get(name)))
		}
		used := ledger.UsageJSON(inspectlog.Tokens(count("input_tokens"), count("output_tokens"),
			count("input_tokens_cache_read"), count("input_tokens_cache_write"), count("total_tokens")))
		r.tokens.Add(&used)
		if price := usage.Get("total_cost"); price.Kind() == jsontape.Number && possible(price) {
			priced++
			cost += amount(price)
		}
	}
	if !tokens {
		r.tokens = nil
	}
	if models > 0 && priced == models {
		r.cost = &cost
	}
	if retries := sample.Get("error_retries"); retries.Kind() == jsontape.Array && !retries.Empty() {
		in.doubt("some samples were tried again after errors")
	}
}

// amount is a number that is measured; 0 where it is none.
func amount(value jsontape.Value) float64 {
	if n := value.Float64(); n > 0 && n <= maxAmount {
		return n
	}
	return 0
}

// possible reports whether a figure is absent or plausible: neither negative nor absurdly large.
func possible(value jsontape.Value) bool {
	n := value.Float64()
	return value.Kind() != jsontape.Number || n >= 0 && n <= maxAmount
}

// scoresOf adds the values of a score, by name: a map has one for each of its keys.
func (in *inspection) scoresOf(scores []inspectScore, name string, value jsontape.Value) []inspectScore {
	if value.Kind() == jsontape.Object {
		for key, one := range value.Members() {
			scores = in.scoresOf(scores, name+"/"+key, one)
		}
		return scores
	}
	at := slices.Index(in.scorers, name)
	if at < 0 {
		at = len(in.scorers)
		in.scorers = append(in.scorers, strings.Clone(name))
	}
	score := inspectScore{scorer: in.scorers[at]}
	switch value.Kind() {
	case jsontape.Number:
		score.value = value.Float64()
		score.known = !math.IsNaN(score.value) && !math.IsInf(score.value, 0) // Python writes both
		score.decides = true
	case jsontape.True:
		score.value, score.known, score.decides = 1, true, true
	case jsontape.False:
		score.known, score.decides = true, true
	case jsontape.String:
		score.known = true
		score.value, score.decides = inspectValue(value.Text())
	default: // null, or a list of values
	}
	return append(scores, score)
}

// inspectValue is what a text stands for as a score.
func inspectValue(text string) (value float64, ok bool) {
	switch text {
	case "P":
		return 0.5, true
	case "N":
		return 0, true
	}
	pass, ok := truthOf(text)
	if pass {
		value = 1
	}
	return value, ok
}

// finish says what holds for the whole log, chooses the scorer and adds the samples.
func (in *inspection) finish() error {
	in.name()
	in.created[in.from.File] = in.log.Eval.Created
	if err := in.ended(); err != nil {
		return err
	}
	series := in.arm + "\x00" + in.log.Eval.Task // logs of one arm and task are repetitions
	first, again := in.tried(in.series[series])
	if again {
		return nil
	}
	scorer := ""
	if len(in.scorers) > 0 {
		var err error
		if scorer, err = in.choose("scorer", slices.Clone(in.scorers)); err != nil {
			return err
		}
	}
	last := 0
	in.prefixes[in.log.Eval.Task+"/"] = true
	for i := range in.scores {
		r := &in.list[in.start+i]
		last = max(last, r.index+1)
		r.task, r.index = in.log.Eval.Task+"/"+r.task, first+r.index
		r.arm, r.model, r.agent = in.arm, in.log.Eval.Model, in.log.Eval.Solver
		score := inspectScore{}
		if at := slices.IndexFunc(in.scores[i], func(s inspectScore) bool { return s.scorer == scorer }); at >= 0 {
			score = in.scores[i][at]
		}
		switch {
		case r.verdict == ledger.Error:
		case r.message != "": // whatever was scored before or after it
			failed(r, r.message)
		case !score.known:
			failed(r, "the scorer "+scorer+" has not scored the sample")
		case !score.decides:
			return fmt.Errorf("task %s: the value of %s is neither a number nor correct or incorrect", r.task, scorer)
		default:
			if err := in.scored(r, score.value, true); err != nil {
				return err
			}
		}
		if err := in.complete(r); err != nil {
			return err
		}
	}
	in.series[series] = max(in.series[series], first+last)
	return nil
}

// name names the arm: two logs whose models, solvers or arguments differ are two arms.
func (in *inspection) name() {
	eval := &in.log.Eval
	in.arm = cmp.Or(eval.Model, "model not known")
	for _, part := range []string{eval.Solver, argsOf(eval.SolverArgs), argsOf(eval.ModelArgs), argsOf(eval.TaskArgs)} {
		if part != "" {
			in.arm += " " + part
		}
	}
	config := &eval.Config
	var conditions []string
	for _, one := range []struct {
		name string
		raw  json.RawMessage
	}{
		{"task version", eval.TaskVersion},
		{"message limit", config.MessageLimit},
		{"token limit", config.TokenLimit},
		{"time limit", config.TimeLimit},
		{"working limit", config.WorkingLimit},
		{"cost limit", config.CostLimit},
		{"samples", config.Limit},
	} {
		if text := argsOf(one.raw); text != "" {
			conditions = append(conditions, one.name+" "+text)
		}
	}
	in.from.Conditions = strings.Join(conditions, ", ")
}

// argsOf shows arguments; empty where there are none.
func argsOf(raw json.RawMessage) string {
	var shown bytes.Buffer
	if json.Compact(&shown, raw) != nil || slices.Contains([]string{"", "null", "{}"}, shown.String()) {
		return ""
	}
	return strings.ToValidUTF8(shown.String()[:min(shown.Len(), maxShownArgs)], "")
}

// maxShownArgs bounds the arguments in the name of an arm.
const maxShownArgs = 200
