package foreign

import (
	"cmp"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/fit-eval/fit/ledger"
)

// inspectLog is what is read of a log as a whole.
type inspectLog struct {
	Status string `json:"status"`
	Eval   struct {
		Task        string          `json:"task"`
		TaskID      string          `json:"task_id"`
		TaskVersion json.RawMessage `json:"task_version"`
		TaskArgs    json.RawMessage `json:"task_args"`
		Model       string          `json:"model"`
		ModelArgs   json.RawMessage `json:"model_args"`
		Solver      string          `json:"solver"`
		SolverArgs  json.RawMessage `json:"solver_args"`
		Created     string          `json:"created"`
		Dataset     struct {
			IDs      []json.RawMessage `json:"sample_ids"`
			Shuffled bool              `json:"shuffled"`
		} `json:"dataset"`
		Config struct {
			Limit         json.RawMessage `json:"limit"`
			SampleID      json.RawMessage `json:"sample_id"`
			Epochs        int             `json:"epochs"`
			EpochsReducer []string        `json:"epochs_reducer"`
			MessageLimit  json.RawMessage `json:"message_limit"`
			TokenLimit    json.RawMessage `json:"token_limit"`
			TimeLimit     json.RawMessage `json:"time_limit"`
			WorkingLimit  json.RawMessage `json:"working_limit"`
			CostLimit     json.RawMessage `json:"cost_limit"`
		} `json:"config"`
	} `json:"eval"`
	Results *struct {
		Total     *int `json:"total_samples"`
		Completed *int `json:"completed_samples"`
	} `json:"results"`
	Error *struct {
		Message string `json:"message"`
	} `json:"error"`
	Invalidated bool `json:"invalidated"`
}

// ended says whether the log is whole, and refuses one that is invalidated.
func (in *inspection) ended() error {
	log := &in.log
	if log.Invalidated {
		return errors.New("the log is invalidated: its authors withdrew its results")
	}
	switch log.Status {
	case "success", "":
	case "started":
		in.doubt("the run did not end")
	default:
		text := "the run ended with " + cmp.Or(cut(log.Status), "no status")
		if log.Error != nil && log.Error.Message != "" {
			text += " (" + cut(log.Error.Message) + ")"
		}
		in.doubt("%s", text)
	}
	config := &log.Eval.Config
	want := len(log.Eval.Dataset.IDs) * max(1, config.Epochs) // the ids are those of the subset
	if log.Results != nil && log.Results.Total != nil {
		want = *log.Results.Total
	}
	if in.samples > 0 && in.samples < want {
		in.doubt("%d of %d samples are in the log", in.samples, want)
	}
	ended := !in.cut && (log.Status == "" || log.Status == "success")
	if len(log.Eval.Dataset.IDs) == 0 && (in.samples < want || !ended) {
		in.from.Incomplete = "the log does not name its samples, and its run did not end: which are missing is not " +
			"known"
	}
	if argsOf(config.Limit)+argsOf(config.SampleID) != "" {
		in.doubt("a subset of the samples was run")
	}
	if log.Eval.Dataset.Shuffled {
		in.doubt("the samples were shuffled")
	}
	for _, reducer := range config.EpochsReducer {
		if reducer != "mean" {
			in.doubt("its own numbers reduce epochs by %s, and these are means of epochs", cut(reducer))
		}
	}
	if in.samples == 0 {
		return in.reductions()
	}
	if in.samples < want {
		in.absent()
	}
	return nil
}

// absent adds the samples that the log names and does not have. They are missing: those that were
// left out may be those that failed.
func (in *inspection) absent() {
	type sample struct {
		id    string
		epoch int
	}
	there := map[sample]bool{}
	for i := range in.scores {
		r := &in.list[in.start+i]
		there[sample{r.task, r.index}] = true
	}
	for _, raw := range in.log.Eval.Dataset.IDs {
		for epoch := range min(max(1, in.log.Eval.Config.Epochs), maxRuns) {
			r := run{task: strings.Trim(string(raw), `"`), index: epoch}
			if at := (sample{r.task, r.index}); r.task != "" && !there[at] && len(there) < maxSlots {
				there[at] = true
				failed(&r, "the sample is not in the log")
				in.list, in.scores = append(in.list, r), append(in.scores, nil)
			}
		}
	}
}

// maxSlots bounds the samples that a log may name.
const maxSlots = 10_000_000

// inspectReduction is what a scorer says of each sample over all its epochs.
type inspectReduction struct {
	Scorer  string `json:"scorer"`
	Reducer string `json:"reducer"`
	Samples []struct {
		ID    json.RawMessage `json:"sample_id"`
		Value json.RawMessage `json:"value"`
	} `json:"samples"`
}

// reductions adds the samples of a log that was written without them: what is left of each is the
// value of all its epochs. What was not scored is missing.
func (in *inspection) reductions() error {
	at := map[string]int{}
	add := func(raw json.RawMessage) int {
		id := strings.Trim(string(raw), `"`)
		if i, known := at[id]; known {
			return i
		}
		at[id] = len(in.scores)
		in.list = append(in.list, run{task: id})
		in.scores = append(in.scores, nil)
		return at[id]
	}
	for _, one := range in.reduced {
		for _, sample := range one.Samples {
			value, ok := in.parser.Parse(sample.Value)
			if !ok || len(sample.ID) == 0 {
				return errors.New("a reduction has no value or no sample")
			}
			i := add(sample.ID)
			name := one.Scorer
			if one.Reducer != "" && one.Reducer != "mean" {
				name += "/" + one.Reducer
			}
			in.scores[i] = in.scoresOf(in.scores[i], name, value)
		}
	}
	if len(in.scores) == 0 {
		return errors.New("there are no samples in the log: it was written without them, or nothing was run")
	}
	for _, id := range in.log.Eval.Dataset.IDs {
		add(id)
	}
	in.doubt("epochs were reduced before they were logged: a run is the value of all its epochs")
	return nil
}

// try is a log whose failed samples may be repeated in another, which has all of its samples.
type try struct {
	created string
	first   int // its first run
	from    *ledger.Imported
}

// tried reports whether a later log repeats this one, and returns the first run. An earlier log
// that this one repeats is taken back: the same samples do not count twice.
func (in *inspection) tried(first int) (int, bool) {
	id := in.log.Eval.TaskID
	if id == "" {
		return first, false
	}
	id += "\x00" + in.arm
	before := in.tries[id]
	if before == nil {
		in.tries[id] = &try{in.log.Eval.Created, first, in.from}
		return first, false
	}
	const doubt = "a log was continued in another, which counts"
	if before.created > in.log.Eval.Created {
		before.from.Doubts = append(before.from.Doubts, doubt)
		in.list = in.list[:in.start]
		return 0, true
	}
	in.doubt(doubt)
	in.list = slices.DeleteFunc(in.list, func(r run) bool {
		if r.from == before.from {
			delete(in.seen, r.cell())
		}
		return r.from == before.from
	})
	in.start = len(in.list) - len(in.scores)
	in.tries[id] = &try{in.log.Eval.Created, before.first, in.from}
	return before.first, false
}
