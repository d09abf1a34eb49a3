package foreign

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/fit-eval/fit/internal/document"
	"github.com/fit-eval/fit/internal/jsondoc"
	"github.com/fit-eval/fit/internal/lazyregexp"
	"github.com/fit-eval/fit/ledger"
)

// promptfooReader reads outputs of promptfoo: JSON, JSON lines and YAML. A test is a task, a
// provider with its prompt an arm, and the same test again a repetition.
var promptfooReader = reader{format: "promptfoo", finds: findPromptfoo, read: readPromptfoo}

var (
	promptfooYAML = lazyregexp.New(`^(evalId|results):`)
	promptfooLine = lazyregexp.New(`"promptIdx"\s*:\s*\d`)
)

// isPromptfoo reports whether a file is one document of promptfoo.
func isPromptfoo(file string) bool {
	line, rest, _ := bytes.Cut(headOf(file), []byte("\n"))
	if json.Valid(line) && len(bytes.TrimSpace(rest)) > 0 {
		return false // several documents
	}
	return jsondoc.Has(file, func(members map[string]byte) bool {
		return members["evalId"] != 0 || members["results"] == '{'
	})
}

func findPromptfoo(path string, info os.FileInfo) []string {
	head := headOf(path)
	line, _, _ := bytes.Cut(head, []byte("\n"))
	if info.Mode().IsRegular() && (isPromptfoo(path) || promptfooYAML.Get().Match(head) ||
		bytes.HasPrefix(head, []byte("{")) && promptfooLine.Get().Match(line)) {
		return []string{path}
	}
	return nil
}

// promptfooResult is one result.
type promptfooResult struct {
	TestIdx  *int `json:"testIdx"`
	TestCase struct {
		Description string          `json:"description"`
		Vars        json.RawMessage `json:"vars"`
		Assert      json.RawMessage `json:"assert"`
	} `json:"testCase"`
	Provider struct {
		ID    string `json:"id"`
		Label string `json:"label"`
	} `json:"provider"`
	Prompt struct {
		Raw   string `json:"raw"`
		Label string `json:"label"`
	} `json:"prompt"`
	PromptIdx int             `json:"promptIdx"`
	Vars      json.RawMessage `json:"vars"`
	Response  *struct {
		Tokens *promptfooTokens `json:"tokenUsage"`
		Cached bool             `json:"cached"`
		Cost   *float64         `json:"cost"`
	} `json:"response"`
	Success       *bool               `json:"success"`
	Score         *float64            `json:"score"`
	FailureReason *int                `json:"failureReason"` // older versions have none
	Error         string              `json:"error"`
	Grading       *json.RawMessage    `json:"gradingResult"`
	NamedScores   map[string]*float64 `json:"namedScores"`
	LatencyMs     float64             `json:"latencyMs"`
	Metadata      json.RawMessage     `json:"metadata"`
	Cost          *float64            `json:"cost"`
}

// graderFailed reports whether only the grading model failed, and why.
func graderFailed(grading json.RawMessage) (reason string, ok bool) {
	var one struct {
		Reason   string `json:"reason"`
		Metadata struct {
			GraderError bool `json:"graderError"`
		} `json:"metadata"`
		Parts []json.RawMessage `json:"componentResults"`
	}
	_ = json.Unmarshal(grading, &one) // what users' assertions add may be anything
	if one.Metadata.GraderError {
		return cmp.Or(one.Reason, "the grader failed"), true
	}
	for _, part := range one.Parts {
		var passed struct{ Pass bool }
		if _ = json.Unmarshal(part, &passed); passed.Pass {
			continue
		}
		if reason, ok = graderFailed(part); !ok {
			return "", false // it failed in any case
		}
	}
	return reason, ok
}

type promptfooTokens struct {
	Prompt     *int64 `json:"prompt"`
	Completion *int64 `json:"completion"`
	Details    struct {
		CacheRead  int64 `json:"cacheReadInputTokens"`
		CacheWrite int64 `json:"cacheCreationInputTokens"`
	} `json:"completionDetails"`
}

// promptfooErrored is the reason of a failure that is an error and not an assertion.
const promptfooErrored = 2

func readPromptfoo(s *source, path string) error {
	file, err := open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	p := &promptfoo{
		source:   s,
		contents: map[string]string{},
		several:  map[string]bool{},
		prompts:  map[string][]string{},
		metrics:  map[string]bool{},
	}
	if err := p.readAll(file, headOf(path)); err != nil {
		return err
	}
	return p.finish()
}

func (p *promptfoo) readAll(file *os.File, head []byte) error {
	switch {
	case promptfooYAML.Get().Match(head):
		content, err := io.ReadAll(file)
		if err != nil {
			return err
		}
		parsed, err := document.Parse(p.from.File, content)
		if err != nil {
			return err
		}
		if content, err = parsed.JSON(); err != nil {
			return err
		}
		return p.document(bytes.NewReader(content))
	case isPromptfoo(file.Name()):
		return p.document(file)
	}
	scanner := bufio.NewScanner(file)
	scanner.Buffer(nil, maxRow)
	for number := 1; scanner.Scan(); number++ {
		if len(bytes.TrimSpace(scanner.Bytes())) == 0 {
			continue
		}
		if err := p.result(scanner.Bytes()); err != nil {
			return fmt.Errorf("line %d: %w", number, err)
		}
	}
	return tooLong(scanner)
}

type promptfoo struct {
	*source
	held []promptfooHeld
	// prompts are those of each provider, which tell its arms apart where it has several.
	prompts map[string][]string
	metrics map[string]bool
	// contents has the content of each task, and several the tasks that have more than one.
	contents map[string]string
	several  map[string]bool
}

// promptfooHeld is a record until it is known which descriptions several tests share, and which
// names several columns.
type promptfooHeld struct {
	run
	prompt string
	column int
}

// finish adds the results. Tests that share a description are told apart by their content, and
// columns that share a name by their order.
func (p *promptfoo) finish() error {
	if p.Score != "" && !p.metrics[p.Score] {
		if _, err := p.choose("metric", slices.Collect(maps.Keys(p.metrics))); err != nil {
			return err
		}
	}
	columns := map[string][]int{} // a provider whose label says nothing may have two configurations
	for i := range p.held {
		one := &p.held[i]
		if len(p.prompts[one.arm]) > 1 && one.prompt != "" {
			one.arm = cut(one.arm + " " + one.prompt)
		}
		if known := columns[one.arm]; !slices.Contains(known, one.column) {
			columns[one.arm] = append(known, one.column)
		}
	}
	slices.SortStableFunc(p.held, func(a, b promptfooHeld) int { return a.column - b.column }) // the order of arms
	for i := range p.held {
		r := &p.held[i].run
		if p.several[r.task] {
			r.task += " #" + strings.TrimPrefix(r.content, "sha256:")[:8]
		}
		sharing := columns[r.arm]
		slices.Sort(sharing)
		if at := slices.Index(sharing, p.held[i].column); at > 0 {
			r.arm += fmt.Sprintf(" #%d", at+1)
		}
		if err := p.add(*r); err != nil {
			return err
		}
	}
	return nil
}

// document reads results.results of a document, one after the other.
func (p *promptfoo) document(in io.Reader) error {
	found := false
	results := func(decoder *json.Decoder) error {
		found = true
		return jsondoc.Elements(decoder, p.result)
	}
	err := jsondoc.Members(in, func(name string, decoder *json.Decoder) error {
		if name != "results" {
			return decoder.Decode(&json.RawMessage{})
		}
		token, err := decoder.Token()
		if err != nil || token != json.Delim('{') {
			return cmp.Or(err, errors.New("this is no object: fit reads version 3 of the format"))
		}
		for decoder.More() {
			token, err := decoder.Token()
			switch {
			case err != nil:
				return err
			case token == "results" && !found:
				err = results(decoder)
			case token == "results":
				err = errors.New("results are there twice")
			default:
				err = decoder.Decode(&json.RawMessage{})
			}
			if err != nil {
				return err
			}
		}
		_, err = decoder.Token()
		return err
	})
	if err == nil && !found {
		err = errors.New("there are no results.results: fit reads version 3 of the format")
	}
	return err
}

// result adds one result.
func (p *promptfoo) result(raw []byte) error {
	var found promptfooResult
	if err := json.Unmarshal(raw, &found); err != nil {
		return err
	}
	vars, asserts := compacted(found.TestCase.Vars), compacted(found.TestCase.Assert)
	if len(vars) == 0 {
		vars = compacted(found.Vars)
	}
	r := run{index: -1, duration: int64(min(max(found.LatencyMs, 0), maxAmount))}
	var own ours
	if json.Unmarshal(found.Metadata, &own) == nil { // what users put there may be anything
		r.agentTook(own.AgentMs)
	}
	r.task = cmp.Or(found.TestCase.Description, string(vars))
	if r.task == "" {
		r.task = fmt.Sprintf("test %d", deref(found.TestIdx)+1)
	}
	r.task = cut(r.task)
	r.content = contentOf(vars, asserts)
	r.agent = found.Provider.ID
	r.arm = cmp.Or(found.Provider.Label, found.Provider.ID, "provider not known")
	label := found.Prompt.Label
	if label == found.Prompt.Raw { // that of no template is the text of a single test
		label = ""
	}
	if labels := p.prompts[r.arm]; !slices.Contains(labels, label) {
		p.prompts[r.arm] = append(labels, label)
	}
	p.took(&r, &found)
	if err := p.outcome(&r, &found); err != nil {
		return err
	}
	if content, known := p.contents[r.task]; known && content != r.content {
		p.several[r.task] = true
	}
	p.contents[r.task] = r.content
	p.held = append(p.held, promptfooHeld{r, label, found.PromptIdx})
	return nil
}

// took fills in what a result has cost. An answer from promptfoo's cache has cost nothing now, and
// nobody knows what it has cost once; a cost of 0 stands where there is no price.
func (p *promptfoo) took(r *run, found *promptfooResult) {
	response := found.Response
	if response != nil && response.Cached {
		p.doubt("some answers were cached: repetitions of them are the same answer, and their costs are not known")
		return
	}
	if r.cost = found.Cost; response != nil && response.Cost != nil {
		r.cost = response.Cost
	} else if found.Cost != nil && *found.Cost == 0 {
		r.cost = nil
	}
	if response == nil || response.Tokens == nil || response.Tokens.Prompt == nil || response.Tokens.Completion == nil {
		return
	}
	t := response.Tokens
	cached, written, input := max(t.Details.CacheRead, 0), max(t.Details.CacheWrite, 0), max(*t.Prompt, 0)
	if cached+written <= input { // some providers count them in
		input -= cached + written
	}
	r.tokens = &ledger.UsageJSON{
		InputTokens:      input,
		OutputTokens:     max(*t.Completion, 0),
		CacheReadTokens:  cached,
		CacheWriteTokens: written,
	}
}

// outcome fills in what came out: an assertion that does not hold is a failure, everything else
// that went wrong an error.
func (p *promptfoo) outcome(r *run, found *promptfooResult) error {
	score := found.Score
	for name := range found.NamedScores {
		p.metrics[name] = true
	}
	if p.Score != "" {
		score = found.NamedScores[p.Score]
	}
	reason := deref(found.FailureReason)
	// an assertion has a grading, and what older versions call an error may be its reason
	unexplained := reason == 0 && found.Error != "" && !isTrue(found.Success) && found.Grading == nil
	why, ungraded := "", false
	if found.Grading != nil && !isTrue(found.Success) {
		why, ungraded = graderFailed(*found.Grading)
	}
	switch {
	case reason == promptfooErrored, unexplained:
		failed(r, cmp.Or(found.Error, "an error without a message"))
	case ungraded:
		failed(r, why)
	case p.Score != "" && score == nil:
		failed(r, "the metric "+p.Score+" has not been measured")
	case p.Score != "":
		return p.scored(r, *score, true)
	case found.Success == nil:
		failed(r, "the result does not say whether it succeeded")
	default:
		outcome(r, *found.Success)
		if score != nil && *score >= 0 && *score <= 1 { // its scores may be weighted beyond
			r.score = score
		}
	}
	return nil
}

func isTrue(value *bool) bool { return value != nil && *value }

func deref(n *int) int {
	if n == nil {
		return 0
	}
	return *n
}

// compacted is a JSON value without blanks; nil where there is none.
func compacted(raw json.RawMessage) []byte {
	var text bytes.Buffer
	if json.Compact(&text, raw) != nil || slices.Contains([]string{"", "null", "{}", "[]"}, text.String()) {
		return nil
	}
	return text.Bytes()
}
