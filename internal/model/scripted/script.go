package scripted

import (
	"cmp"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
)

// Script says what the model does. See the package documentation for its JSON form.
type Script struct {
	Vars     map[string]string `json:"vars,omitempty"`
	Captures []Capture         `json:"captures,omitempty"`
	// Scenarios are tried in order, before Turns.
	Scenarios []Scenario `json:"scenarios,omitempty"`
	// Turns is the scenario for everything else; its name is main.
	Turns []Turn `json:"turns,omitempty"`
	// Usage is reported for turns without their own.
	Usage *UsageJSON `json:"usage,omitempty"`
	// End answers a conversation that has run past the last turn; the default is a text that says
	// so.
	End *Turn `json:"end,omitempty"`
	// Aux, where set, answers requests that offer no tools.
	Aux *Turn `json:"aux,omitempty"`
	// Key, where set, is the only API key accepted.
	Key string `json:"key,omitempty"`

	all []*Scenario // the scenarios and, last, the turns
}

// Scenario is an ordered list of turns for one kind of conversation.
type Scenario struct {
	Name  string `json:"name"`
	When  Cond   `json:"when,omitzero"`
	Turns []Turn `json:"turns"`

	labels map[string]int
}

// Turn is one reply of the model, or a choice between several.
type Turn struct {
	Label    string `json:"label,omitempty"`
	Thinking string `json:"thinking,omitempty"`
	Text     string `json:"text,omitempty"`
	Calls    []Call `json:"calls,omitempty"`
	// Stop is the stop reason in Anthropic's words; it follows from the calls where it is empty.
	Stop         string     `json:"stop,omitempty"`
	Usage        *UsageJSON `json:"usage,omitempty"`
	DelayMs      int        `json:"delay_ms,omitempty"`
	ChunkDelayMs int        `json:"chunk_delay_ms,omitempty"`
	Fault        *Fault     `json:"fault,omitempty"`
	// Goto answers with the labelled turn instead and continues from there.
	Goto string `json:"goto,omitempty"`
	// Cases are tried in order; the first that holds replaces the turn. Where none does, the turn's
	// own fields count.
	Cases []Case `json:"cases,omitempty"`
	// Choices replace the turn with one of them, drawn by weight from the cell's seed, or from its
	// key where there is no seed.
	Choices []Choice `json:"choices,omitempty"`
}

// says reports whether the turn has its own content.
func (t Turn) says() bool {
	return t.Thinking != "" || t.Text != "" || len(t.Calls) > 0 || t.Fault != nil || t.Stop != "" || t.Goto != "" ||
		len(t.Choices) > 0
}

// Case is a turn that is taken under a condition.
type Case struct {
	When Cond `json:"when"`
	Turn
}

// Choice is a turn that is taken by chance.
type Choice struct {
	// Weight is relative to those of the other choices; 0 counts as 1.
	Weight float64 `json:"weight,omitempty"`
	Turn
}

func (c Choice) weight() float64 {
	return cmp.Or(c.Weight, 1)
}

// Call is one tool call, written for no client in particular. Exactly one of the verbs is set.
type Call struct {
	Bash    string `json:"bash,omitempty"`
	Read    string `json:"read,omitempty"`
	Write   string `json:"write,omitempty"`
	Edit    string `json:"edit,omitempty"`
	Glob    string `json:"glob,omitempty"`
	Grep    string `json:"grep,omitempty"`
	MCP     string `json:"mcp,omitempty"`
	Tool    string `json:"tool,omitempty"`
	FirstOf []Call `json:"first_of,omitempty"`

	TimeoutMs int             `json:"timeout_ms,omitempty"` // with Bash
	Content   string          `json:"content,omitempty"`    // with Write
	Old       string          `json:"old,omitempty"`        // with Edit
	New       string          `json:"new,omitempty"`        // with Edit
	In        string          `json:"in,omitempty"`         // with Glob and Grep: where to look
	Input     json.RawMessage `json:"input,omitempty"`      // with MCP and Tool
	Raw       string          `json:"raw,omitempty"`        // with Tool: the input as text, valid or not
}

// verbs returns the names of the verbs that are set.
func (c Call) verbs() []string {
	var set []string
	for _, v := range []struct {
		name string
		set  bool
	}{
		{"bash", c.Bash != ""},
		{"read", c.Read != ""},
		{"write", c.Write != ""},
		{"edit", c.Edit != ""},
		{"glob", c.Glob != ""},
		{"grep", c.Grep != ""},
		{"mcp", c.MCP != ""},
		{"tool", c.Tool != ""},
		{"first_of", len(c.FirstOf) > 0},
	} {
		if v.set {
			set = append(set, v.name)
		}
	}
	return set
}

// Cond is a condition on a conversation; every field that is set must hold.
type Cond struct {
	Prompt      string `json:"prompt,omitempty"`       // the last user message
	FirstPrompt string `json:"first_prompt,omitempty"` // the first user message
	AnyPrompt   string `json:"any_prompt,omitempty"`   // some user message
	LastResult  string `json:"last_result,omitempty"`  // the last tool result
	AnyResult   string `json:"any_result,omitempty"`   // some tool result
	System      string `json:"system,omitempty"`       // the system prompt, and what the client puts beside it
	Request     string `json:"request,omitempty"`      // some text of the request, descriptions of tools too
	Model       string `json:"model,omitempty"`        // the model's name
	Tool        string `json:"tool,omitempty"`         // a tool the client offers, by name or as server/tool
	Not         *Cond  `json:"not,omitempty"`
	Any         []Cond `json:"any,omitempty"`
	All         []Cond `json:"all,omitempty"`
}

func (c Cond) empty() bool {
	said := c.Prompt + c.FirstPrompt + c.AnyPrompt + c.LastResult + c.AnyResult + c.System + c.Request
	return said+c.Model+c.Tool == "" && c.Not == nil && len(c.Any)+len(c.All) == 0
}

// patterns returns the fields of the condition that may be regular expressions.
func (c Cond) patterns() map[string]string {
	return map[string]string{
		"prompt": c.Prompt, "first_prompt": c.FirstPrompt, "any_prompt": c.AnyPrompt, "last_result": c.LastResult,
		"any_result": c.AnyResult, "system": c.System,
		"request": c.Request, "model": c.Model,
	}
}

// holds evaluates the condition on a conversation.
func (c Cond) holds(conv conversation) bool {
	if c.Tool != "" && !conv.offers(c.Tool) {
		return false
	}
	if c.AnyResult != "" && !anyMatches(conv.results(), c.AnyResult) || c.AnyPrompt != "" &&
		!anyMatches(conv.texts(stepPrompt), c.AnyPrompt) {
		return false
	}
	if c.LastResult != "" && !matches(conv.lastResult(), c.LastResult) {
		return false
	}
	if c.Prompt != "" && !matches(conv.lastPrompt(), c.Prompt) || c.FirstPrompt != "" &&
		!matches(conv.firstPrompt(), c.FirstPrompt) {
		return false
	}
	if c.System != "" && !matches(conv.system, c.System) || c.Model != "" && !matches(conv.model, c.Model) {
		return false
	}
	if c.Request != "" && (conv.request == nil || !anyMatches(conv.request(), c.Request)) {
		return false
	}
	if c.Not != nil && c.Not.holds(conv) {
		return false
	}
	for _, condition := range c.All {
		if !condition.holds(conv) {
			return false
		}
	}
	for _, alternative := range c.Any {
		if alternative.holds(conv) {
			return true
		}
	}
	return len(c.Any) == 0
}

// regexPrefix marks a pattern that is a regular expression.
const regexPrefix = "re:"

// matches reports whether text fits pattern. Lines are matched separately by ^ and $.
func matches(text, pattern string) bool {
	expr, isRegex := strings.CutPrefix(pattern, regexPrefix)
	if !isRegex {
		return strings.Contains(text, pattern)
	}
	re, err := regexp.Compile("(?m)" + expr)
	return err == nil && re.MatchString(text) // loading has checked the expression
}

func anyMatches(texts []string, pattern string) bool {
	return slices.ContainsFunc(texts, func(text string) bool { return matches(text, pattern) })
}

// Capture binds ${Var} to the first group, or the whole match, of Regex in From: "prompt",
// "first_prompt", "last_result", "results" or "system".
type Capture struct {
	Var   string `json:"var"`
	From  string `json:"from"`
	Regex string `json:"regex"`
}

// Fault replaces or spoils a reply.
type Fault struct {
	// Status, where set, answers with this HTTP status.
	Status  int    `json:"status,omitempty"`
	Type    string `json:"type,omitempty"`
	Code    string `json:"code,omitempty"`
	Message string `json:"message,omitempty"`
	// RetryAfter is the header of that name: seconds or a date.
	RetryAfter string `json:"retry_after,omitempty"`
	// Stream damages the reply on its way: "cut", "end", "error", "hang" or "drop".
	Stream string `json:"stream,omitempty"`
	// After is the number of events sent before the stream is spoilt; 0 is half of them.
	After int `json:"after,omitempty"`
	// Times limits the fault to the first attempts at the same state of a conversation; 0 is
	// forever.
	Times int `json:"times,omitempty"`
}

// UsageJSON is a token usage in the spelling of scripts. Each protocol is given the sums it wants.
type UsageJSON struct {
	InputTokens          int64    `json:"input"`
	OutputTokens         int64    `json:"output"`
	CacheReadTokens      int64    `json:"cache_read,omitempty"`
	CacheWriteTokens     int64    `json:"cache_write,omitempty"`
	CacheWriteLongTokens int64    `json:"-"`
	ReasoningTokens      int64    `json:"reasoning,omitempty"`
	TotalTokens          int64    `json:"-"`
	CostUSD              *float64 `json:"-"`
	CostSource           string   `json:"-"`
	Partial              bool     `json:"-"`
	Summed               bool     `json:"-"`
}

// defaultUsage is reported if a script sets none.
var defaultUsage = UsageJSON{InputTokens: 1000, OutputTokens: 100}
