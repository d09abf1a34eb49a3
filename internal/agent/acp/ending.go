package acp

import (
	"cmp"
	"strings"

	"github.com/fit-eval/fit/internal/jsontape"
	"github.com/fit-eval/fit/session"
)

// ended reads the answer to a prompt. The end of a turn does not prove success.
func (d *decoder) ended(msg jsontape.Value, o session.Origin, to *session.Fold) {
	d.flush(to)
	d.close(o, to)
	if refused := msg.Get("error"); refused.Kind() == jsontape.Object {
		code, text := failureText(refused)
		d.end(classify(code, text), o, to)
		return
	}
	result := msg.Get("result")
	d.turnUsage(result, o, to)
	switch stop := result.TextOf("stopReason"); stop {
	case "end_turn":
		if d.failure != "" {
			d.end(classify(0, d.failure), o, to)
			return
		}
		to.Final(o, session.Final{Outcome: session.OutcomeSuccess, Text: view(d.said)})
	case "cancelled":
		d.end(session.ErrorInfo{Kind: session.ErrorAborted, Message: stop}, o, to)
	case "max_turn_requests":
		d.end(session.ErrorInfo{
			Kind:    session.ErrorMaxTurns,
			Message: "the agent's own limit of turns was reached",
		}, o, to)
	case "max_tokens":
		d.end(session.ErrorInfo{
			Kind:    session.ErrorOther,
			Message: "the model's answer was cut off at its maximum length",
		}, o, to)
	case "refusal":
		d.end(session.ErrorInfo{
			Kind:    session.ErrorRefusal,
			Message: cmp.Or(view(d.said), "the model declined"),
		}, o, to)
	default:
		d.end(session.ErrorInfo{
			Kind:    session.ErrorOther,
			Message: "the agent ended the turn for an unknown reason: " + cmp.Or(stop, "it gave none"),
		}, o, to)
	}
}

// end reports a prompt that did not end well. One that we have cancelled ended for our reason.
func (d *decoder) end(info session.ErrorInfo, o session.Origin, to *session.Fold) {
	if d.reason != "" {
		info = session.ErrorInfo{Kind: session.ErrorAPI, Message: d.reason}
	}
	d.reason, d.failure = "", ""
	to.Error(o, info)
	to.Final(o, session.Final{Outcome: session.OutcomeOf(info.Kind), Text: info.Message})
}

// turnUsage reads the token counts of a turn, by the agent's rule.
func (d *decoder) turnUsage(result jsontape.Value, o session.Origin, to *session.Fold) {
	report := session.UsageReport{Rule: session.UsageDelta}
	usage := result.Get("usage")
	switch d.rules.Usage {
	case usageTurn:
		report.Tokens = tokens(usage, false)
	case usageSession:
		report.Rule, report.Key = session.UsageCumulative, d.processID
		report.Tokens = tokens(usage, true)
	case usageLastCall: // a lower bound
		report.Rule, report.Key = session.UsageProvisional, d.answerID
		report.Tokens = tokens(usage, false)
		report.Tokens.OutputTokens += count(usage, "thoughtTokens")
	case usageQuota:
		counted := result.Path("_meta", "quota", "token_count")
		report.Tokens = session.TokenUsage{
			InputTokens:  count(counted, "input_tokens"),
			OutputTokens: count(counted, "output_tokens"),
		}
	default:
		return
	}
	if report.Tokens != (session.TokenUsage{}) { // missing counts, or only zeros, are unknown
		to.Usage(o, report)
	}
}

// callUsage reads the token counts of one model call.
func (d *decoder) callUsage(usage jsontape.Value, o session.Origin, to *session.Fold) {
	if counted := tokens(usage, true); counted != (session.TokenUsage{}) {
		d.flush(to)
		to.Usage(o, session.UsageReport{Rule: session.UsageDelta, Tokens: counted})
	}
}

// tokens reads a usage object of the protocol. In some agents the input includes tokens from the
// cache.
func tokens(usage jsontape.Value, withCache bool) session.TokenUsage {
	counted := session.TokenUsage{
		InputTokens:      count(usage, "inputTokens"),
		OutputTokens:     count(usage, "outputTokens"),
		CacheReadTokens:  count(usage, "cachedReadTokens"),
		CacheWriteTokens: count(usage, "cachedWriteTokens"),
	}
	if withCache {
		counted.InputTokens = max(0, counted.InputTokens-counted.CacheReadTokens-counted.CacheWriteTokens)
	}
	return counted
}

func count(v jsontape.Value, name string) int64 { return max(0, v.Get(name).Int64()) }

// failureText reads an error of the protocol. The cause is in its message, in its data, or in JSON
// within the message.
func failureText(refused jsontape.Value) (code int64, text string) {
	code, text = refused.Get("code").Int64(), strings.Clone(refused.TextOf("message"))
	if inner, ok := jsontape.Parse([]byte(text)); ok && inner.Kind() == jsontape.Object {
		text = cmp.Or(strings.Clone(inner.Get("error").TextOf("message")), text)
	}
	data := refused.Get("data")
	more := cmp.Or(data.Text(), data.TextOf("details"), data.TextOf("message"), data.TextOf("error"))
	text = strings.TrimPrefix(text, "Internal error: ")
	switch {
	case more == "" || strings.Contains(text, more):
	case text == "" || text == "Internal error":
		text = strings.Clone(more)
	default:
		text += ": " + more
	}
	return code, text
}

// Messages of agents that are refused, or slowed down, without a status.
var (
	authWords      = []string{"api key", "unauthorized", "authentication"}
	rateLimitWords = []string{"rate limit", "too many requests"}
)

// classify returns the kind of failure of an error.
func classify(code int64, message string) session.ErrorInfo {
	status := statusIn(message)
	if code >= 400 && code < 600 {
		status = int(code)
	}
	info := session.ClassifyFailure(status, message)
	switch {
	case code == codeAuthRequired:
		info.Kind = session.ErrorAuth
	case info.Kind == session.ErrorAPI && status == 0 && session.Mentions(message, authWords...):
		info.Kind = session.ErrorAuth
	case info.Kind == session.ErrorAPI && status == 0 && session.Mentions(message, rateLimitWords...):
		info.Kind = session.ErrorRateLimit
	}
	return info
}

// statusIn finds the HTTP status that a message names; 0 if it names none.
func statusIn(message string) int {
	if status := session.LeadingStatus(message); status != 0 {
		return status
	}
	for _, before := range []string{"rror: ", "HTTP "} {
		for rest := message; ; {
			_, after, found := strings.Cut(rest, before)
			if !found {
				break
			}
			if status := session.LeadingStatus(after); status != 0 {
				return status
			}
			rest = after
		}
	}
	return 0
}
