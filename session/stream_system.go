package session

import (
	"strconv"
	"strings"
	"unsafe"

	"github.com/valyala/fastjson"

	"github.com/fit-eval/fit/internal/lazyregexp"
)

// quietSubtypes are known and say nothing that a session keeps.
var quietSubtypes = map[string]bool{
	"thinking_tokens": true, "status": true, "ui_invalidate": true, "hook_started": true, "hook_response": true, "hook_progress": true, "task_started": true,
	"task_progress": true, "task_updated": true, "task_notification": true, "session_state_changed": true, "files_persisted": true,
	"local_command_output": true, "elicitation_complete": true,
}

func (d *streamDecoder) system(event []byte, subtype string, o Origin, to *Fold) {
	if quietSubtypes[subtype] {
		return
	}
	v, err := d.parser.ParseBytes(event)
	if err != nil {
		to.ParseError()
		return
	}
	switch subtype {
	case "init":
		d.started(v, o, to)
	case "api_retry":
		to.Error(o, ErrorInfo{Kind: ErrorRetry, Status: v.GetInt("error_status"), Attempt: v.GetInt("attempt"), Message: text(v, "error")})
	case "compact_boundary":
		to.SystemPrompt(o, "stream", "compaction", "the conversation was compacted "+text(v.Get("compact_metadata"), "trigger"))
	case "model_refusal_no_fallback":
		to.Error(o, ErrorInfo{Kind: ErrorRefusal, Message: text(v, "content")})
	case "permission_denied":
		to.Error(o, ErrorInfo{Kind: ErrorWarning, Message: text(v, "message")})
	case "informational":
		to.Message(o, "system", text(v, "content"), "notice")
	default:
		to.Unknown()
	}
}

// started reads the init event. With streamed input it comes once per prompt, mostly with nothing new.
func (d *streamDecoder) started(v *fastjson.Value, o Origin, to *Fold) {
	to.Identify(Identity{
		Agent: AgentID(text(v, "runtime")), SessionID: text(v, "session_id"), Version: agentVersion(v), Model: text(v, "model"), Cwd: text(v, "cwd"),
	})
	var summary strings.Builder
	summary.WriteString("model " + text(v, "model") + ", permissions " + text(v, "permissionMode") + "\ntools:")
	for _, tool := range v.GetArray("tools") {
		summary.WriteString(" " + view(tool))
	}
	var broken []string
	for _, server := range v.GetArray("mcp_servers") {
		name, status := text(server, "name"), text(server, "status")
		summary.WriteString("\nmcp server " + name + ": " + status)
		if status != "connected" {
			broken = append(broken, "MCP server "+name+" is "+status)
		}
	}
	if summary.String() == d.init {
		return
	}
	d.init = summary.String()
	to.SystemPrompt(o, "stream", "init", d.init)
	for _, message := range broken {
		to.Error(o, ErrorInfo{Kind: ErrorWarning, Message: message})
	}
}

// agentVersion finds the version of the agent, whose field is named after the agent.
func agentVersion(v *fastjson.Value) string {
	object, err := v.Object()
	if err != nil {
		return ""
	}
	version := ""
	object.Visit(func(key []byte, value *fastjson.Value) {
		if value.Type() == fastjson.TypeString && strings.HasSuffix(bytesView(key), "_version") {
			version = string(value.GetStringBytes())
		}
	})
	return version
}

var (
	statusInText = lazyregexp.New(`(?:API Error: |status |\()([45]\d\d)\b`)
	overflowText = lazyregexp.New(`(?i)prompt is too long|context (?:window|length)|maximum context|too many tokens|input is too long`)
	refusalText  = lazyregexp.New(`(?i)usage policy|refus|declin|safeguards`)
)

// classifyFailure tells apart the ways in which a model's service can fail, from whatever the stream gives: its own word for it, the HTTP status, the message.
func classifyFailure(kind string, status int, message string) ErrorInfo {
	if status == 0 {
		if match := statusInText.FindStringSubmatch(message); match != nil {
			status, _ = strconv.Atoi(match[1])
		}
	}
	info := ErrorInfo{Kind: ErrorAPI, Status: status, Message: strings.Clone(message)}
	switch {
	case kind == "rate_limit" || status == 429:
		info.Kind = ErrorRateLimit
	case kind == "authentication_failed" || kind == "oauth_org_not_allowed" || status == 401 || status == 403:
		info.Kind = ErrorAuth
	case kind == "overloaded" || status >= 500:
		info.Kind = ErrorOverloaded
	case kind == "billing_error" || status == 402:
		info.Kind = ErrorBudget
	case overflowText.MatchString(message):
		info.Kind = ErrorContextOverflow
	case kind == "refusal" || (status == 0 && refusalText.MatchString(message) && !strings.Contains(message, "onnection")):
		info.Kind = ErrorRefusal
	}
	return info
}

// ClassifyFailure tells apart the ways in which a model's service can fail, for decoders whose stream says it in words or by the HTTP status.
func ClassifyFailure(status int, message string) ErrorInfo {
	return classifyFailure("", status, message)
}

// streamUsage applies the rule of the version that speaks. Newer ones say what is new since the last result. Older ones count per process and start again
// from nothing when a conversation is resumed. What a result calls usage leaves out sub-agents and, at a limit, the last reply; it serves as the check
// of which process we are in, and as the figure where there is no other.
type streamUsage struct {
	process int // processes seen so far
	counted int64
	cost    float64
}

func (s *streamUsage) report(v *fastjson.Value, o Origin, to *Fold) {
	if fresh := v.GetObject("model_usage_since_last_result"); fresh != nil {
		each(fresh, func(model string, tokens TokenUsage, cost *float64) {
			to.Usage(o, UsageReport{Rule: UsageDelta, Model: model, Tokens: tokens, CostUSD: cost})
		})
		if fresh.Len() == 0 {
			to.Usage(o, UsageReport{Rule: UsageDelta})
		}
		return
	}
	usage := v.Get("usage")
	if models := v.GetObject("modelUsage"); models != nil && models.Len() > 0 {
		s.perProcess(models, usage, o, to)
		return
	}
	cost := v.Get("total_cost_usd")
	if usage == nil && cost == nil {
		return
	}
	report := UsageReport{Rule: UsageDelta}
	if usage != nil {
		report.Tokens = MessageTokens(usage)
	}
	if cost != nil {
		total := cost.GetFloat64()
		increment := total - s.cost
		if increment < 0 {
			increment = total
		}
		s.cost, report.CostUSD = total, &increment
	}
	to.Usage(o, report)
}

func (s *streamUsage) perProcess(models *fastjson.Object, usage *fastjson.Value, o Origin, to *Fold) {
	var total int64
	each(models, func(_ string, tokens TokenUsage, _ *float64) { total += tokens.sum() })
	var since int64
	if usage != nil {
		tokens := MessageTokens(usage)
		since = tokens.sum()
	}
	if total < s.counted+since { // a counter that had gone on would be at least that high
		s.process++
	}
	s.counted = total
	each(models, func(model string, tokens TokenUsage, cost *float64) {
		to.Usage(o, UsageReport{Rule: UsageCumulative, Key: strconv.Itoa(s.process) + " " + model, Model: model, Tokens: tokens, CostUSD: cost})
	})
}

func each(models *fastjson.Object, do func(model string, tokens TokenUsage, cost *float64)) {
	models.Visit(func(key []byte, u *fastjson.Value) {
		tokens := TokenUsage{
			InputTokens: u.GetInt64("inputTokens"), OutputTokens: u.GetInt64("outputTokens"),
			CacheReadTokens: u.GetInt64("cacheReadInputTokens"), CacheWriteTokens: u.GetInt64("cacheCreationInputTokens"),
		}
		var cost *float64
		if c := u.Get("costUSD"); c != nil && c.Type() == fastjson.TypeNumber {
			usd := c.GetFloat64()
			cost = &usd
		}
		do(bytesView(key), tokens, cost)
	})
}

// MessageTokens reads the usage object of the Messages API.
func MessageTokens(u *fastjson.Value) TokenUsage {
	return TokenUsage{
		InputTokens: u.GetInt64("input_tokens"), OutputTokens: u.GetInt64("output_tokens"),
		CacheReadTokens: u.GetInt64("cache_read_input_tokens"), CacheWriteTokens: u.GetInt64("cache_creation_input_tokens"),
	}
}

// spanTokens reads the same from an object that was not parsed.
func spanTokens(usage []byte) TokenUsage {
	var tokens TokenUsage
	eachField(usage, func(key, value []byte) {
		switch string(key) {
		case "input_tokens":
			tokens.InputTokens = spanInt(value)
		case "output_tokens":
			tokens.OutputTokens = spanInt(value)
		case "cache_read_input_tokens":
			tokens.CacheReadTokens = spanInt(value)
		case "cache_creation_input_tokens":
			tokens.CacheWriteTokens = spanInt(value)
		}
	})
	return tokens
}

func (u TokenUsage) sum() int64 {
	return u.InputTokens + u.OutputTokens + u.CacheReadTokens + u.CacheWriteTokens
}

// bytesView is a string that shares a parser's buffer: it is valid until the next event is decoded, and the Fold copies what it keeps.
func bytesView(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
