package session

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/fit-eval/fit/internal/jsontape"
	"github.com/fit-eval/fit/internal/messages"
)

// quietEvent recognises the events that add nothing to others, by their beginning: there are very
// many of them in a stream with partial messages.
func quietEvent(event []byte) bool {
	return bytes.HasPrefix(event, []byte(`{"type":"stream_event",`)) && event[len(event)-1] == '}'
}

// quietSubtypes are known and hold nothing that a session keeps.
var quietSubtypes = map[string]bool{
	"thinking_tokens": true, "status": true, "ui_invalidate": true, "hook_started": true, "hook_response": true,
	"hook_progress": true, "task_started": true,
	"task_progress": true, "task_updated": true, "task_notification": true, "session_state_changed": true,
	"files_persisted":      true,
	"local_command_output": true, "elicitation_complete": true,
}

func (d *streamDecoder) system(v jsontape.Value, o Origin, to *Fold) {
	subtype := v.TextOf("subtype")
	if quietSubtypes[subtype] {
		return
	}
	switch subtype {
	case "init":
		d.started(v, o, to)
	case "api_retry":
		to.Error(o, ErrorInfo{
			Kind:    ErrorRetry,
			Status:  v.Get("error_status").Int(),
			Attempt: v.Get("attempt").Int(),
			Message: v.TextOf("error"),
		})
	case "compact_boundary":
		to.SystemPrompt(o, "stream", "compaction",
			"the conversation was compacted "+v.Get("compact_metadata").TextOf("trigger"))
	case "model_refusal_no_fallback":
		to.Error(o, ErrorInfo{Kind: ErrorRefusal, Message: v.TextOf("content")})
	case "permission_denied":
		to.Error(o, ErrorInfo{Kind: ErrorWarning, Message: v.TextOf("message")})
	case "informational":
		to.Message(o, "system", v.TextOf("content"), "notice")
	default:
		to.Unknown()
	}
}

// started reads the init event. With streamed input it comes once per prompt, mostly with nothing
// new.
func (d *streamDecoder) started(v jsontape.Value, o Origin, to *Fold) {
	to.Identify(Identity{
		Agent:     AgentID(v.TextOf("runtime")),
		SessionID: v.TextOf("session_id"),
		Version:   agentVersion(v),
		Model:     v.TextOf("model"),
		Cwd:       v.TextOf("cwd"),
	})
	summary := d.summary[:0]
	summary = append(summary, "model "...)
	summary = append(append(summary, v.TextOf("model")...), ", permissions "...)
	summary = append(append(summary, v.TextOf("permissionMode")...), "\ntools:"...)
	for tool := range v.Get("tools").Elements() {
		summary = append(append(summary, ' '), tool.Text()...)
	}
	var broken []string
	for server := range v.Get("mcp_servers").Elements() {
		name, status := server.TextOf("name"), server.TextOf("status")
		summary = append(append(append(append(summary, "\nmcp server "...), name...), ": "...), status...)
		if status != "connected" {
			broken = append(broken, "MCP server "+name+" is "+status)
		}
	}
	d.summary = summary
	if string(summary) == d.init {
		return
	}
	d.init = string(summary)
	to.SystemPrompt(o, "stream", "init", d.init)
	for _, message := range broken {
		to.Error(o, ErrorInfo{Kind: ErrorWarning, Message: message})
	}
}

// agentVersion finds the version of the agent, whose field is named after the agent.
func agentVersion(v jsontape.Value) string {
	version := ""
	for key, value := range v.Members() {
		if value.Kind() == jsontape.String && strings.HasSuffix(key, "_version") {
			version = value.Text()
		}
	}
	return version
}

// streamUsage applies the rule of the agent's version. Newer versions report what is new since the
// last result. Older ones count per process and restart at 0 when a conversation is resumed. The
// usage of a result leaves out sub-agents and, at a limit, the last reply; it shows which process
// is running, and is the figure if there is no other.
type streamUsage struct {
	process int // processes seen so far
	counted int64
	cost    float64
}

func (s *streamUsage) report(v jsontape.Value, o Origin, to *Fold) {
	if fresh := v.Get("model_usage_since_last_result"); fresh.Kind() == jsontape.Object {
		for model, u := range fresh.Members() {
			to.Usage(o, UsageReport{
				Rule:    UsageDelta,
				Model:   model,
				Tokens:  modelTokens(u),
				CostUSD: modelCost(u),
			})
		}
		if fresh.Empty() {
			to.Usage(o, UsageReport{Rule: UsageDelta})
		}
		return
	}
	usage := v.Get("usage")
	if models := v.Get("modelUsage"); models.Kind() == jsontape.Object && !models.Empty() {
		s.perProcess(models, usage, o, to)
		return
	}
	cost := v.Get("total_cost_usd")
	if !usage.Exists() && !cost.Exists() {
		return
	}
	report := UsageReport{Rule: UsageDelta, Tokens: messageTokens(usage)}
	if cost.Exists() {
		total := cost.Float64()
		report.CostUSD = &total
		if before := s.cost; report.sound() {
			if s.cost = total; total >= before {
				report.CostUSD = new(total - before)
			}
		}
	}
	to.Usage(o, report)
}

func (s *streamUsage) perProcess(models, usage jsontape.Value, o Origin, to *Fold) {
	var total int64
	for _, u := range models.Members() {
		total += modelTokens(u).Total()
	}
	// a counter that continued would be at least that high
	if since := messageTokens(usage).Total(); total < s.counted+since {
		s.process++
	}
	s.counted = total
	for model, u := range models.Members() {
		to.Usage(o, UsageReport{
			Rule:    UsageCumulative,
			Key:     strconv.Itoa(s.process) + " " + model,
			Model:   model,
			Tokens:  modelTokens(u),
			CostUSD: modelCost(u),
		})
	}
}

// modelTokens reads the usage of one model.
func modelTokens(u jsontape.Value) TokenUsage {
	return TokenUsage{
		InputTokens:      u.Get("inputTokens").Int64(),
		OutputTokens:     u.Get("outputTokens").Int64(),
		CacheReadTokens:  u.Get("cacheReadInputTokens").Int64(),
		CacheWriteTokens: u.Get("cacheCreationInputTokens").Int64(),
	}
}

func modelCost(u jsontape.Value) *float64 {
	cost := u.Get("costUSD")
	if cost.Kind() != jsontape.Number {
		return nil
	}
	return new(cost.Float64())
}

// messageTokens reads the usage object of the Messages API.
func messageTokens(u jsontape.Value) TokenUsage {
	var t TokenUsage
	t.InputTokens, t.OutputTokens, t.CacheReadTokens, t.CacheWriteTokens = messages.Usage(u)
	return t
}
