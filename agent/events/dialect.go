package events

import (
	"math"
	"slices"
	"strings"

	"github.com/fit-eval/fit/internal/jsontape"
	"github.com/fit-eval/fit/session"
)

// DialectName is the name of the format in traces.
const DialectName = "fit-events"

// Dialect returns the format. Many agents speak it; command stands for an unknown one.
func Dialect() session.Dialect {
	return session.Dialect{
		Name:      DialectName,
		Agent:     "command",
		Recognise: recognise,
		New:       func() session.Decoder { return new(decoder) },
	}
}

// recognise reports whether an object has a type and fields that no other format uses together.
func recognise(event []byte) bool {
	v, ok := jsontape.Parse(event)
	if !ok || v.Kind() != jsontape.Object {
		return false
	}
	is := func(kind jsontape.Kind, keys ...string) bool {
		for _, key := range keys {
			if v.Get(key).Kind() != kind {
				return false
			}
		}
		return true
	}
	switch v.TextOf("type") {
	case TypeText:
		return is(jsontape.String, "text")
	case typeToolCall:
		return is(jsontape.String, "id", "name") && is(jsontape.Object, "input")
	case typeToolResult:
		return is(jsontape.String, "id", "output")
	case TypeUsage:
		return is(jsontape.Number, "input_tokens", "output_tokens")
	case TypeResult:
		return is(jsontape.True, "success") || is(jsontape.False, "success")
	}
	return false
}

// decoder reads the format. It remembers the last error, which explains a result without success.
type decoder struct {
	parser jsontape.Parser
	failed session.ErrorInfo
	ended  bool // nothing was said or done after that error
	said   bool // the last text is the agent's answer, which the result need not repeat
}

// Decode implements session.Decoder.
func (d *decoder) Decode(event []byte, at session.Stamp, to *session.Fold) {
	v, ok := d.parser.Parse(event)
	if !ok || v.Kind() != jsontape.Object {
		to.ParseError()
		return
	}
	o := session.Origin{Stamp: at, NativeMs: max(0, v.Get("ts").Int64()), MessageID: v.TextOf("turn")}
	to.Identify(session.Identity{SessionID: v.TextOf("session"), Model: v.TextOf("model")})
	switch v.TextOf("type") {
	case TypeText:
		d.ended = false
		d.text(v, o, to)
	case typeToolCall:
		d.said, d.ended = false, false
		to.ToolCall(o, session.ToolUse{ID: v.TextOf("id"), Name: v.TextOf("name"), Args: object(v.Get("input"))})
	case typeToolResult:
		d.result(v, o, to)
	case TypeUsage:
		usage(v, o, to)
	case TypeError:
		d.error(v, o, to)
	case TypeResult:
		d.final(v, o, to)
	default:
		to.Unknown()
	}
}

func (d *decoder) text(v jsontape.Value, o session.Origin, to *session.Fold) {
	if v.Get("thinking").Bool() {
		to.Thinking(o, v.TextOf("text"))
		return
	}
	to.Message(o, "assistant", v.TextOf("text"), "")
	d.said = true
}

// object returns the input of a call if it is an object, as all readers of calls expect.
func object(input jsontape.Value) []byte {
	if input.Kind() != jsontape.Object {
		return nil
	}
	return input.Raw()
}

func (d *decoder) result(v jsontape.Value, o session.Origin, to *session.Fold) {
	d.said, d.ended = false, false
	returned := session.Returned{
		CallID:  v.TextOf("id"),
		IsError: v.Get("is_error").Bool(),
		Content: v.TextOf("output"),
	}
	if code := v.Get("exit_code"); code.Kind() == jsontape.Number {
		returned.ExitCode = new(code.Int())
	}
	to.ToolResult(o, returned)
}

// usage reads what was consumed. An event with an invalid count is ignored: a part of it would be
// taken for the whole.
func usage(v jsontape.Value, o session.Origin, to *session.Fold) {
	report := session.UsageReport{Rule: session.UsageDelta, Model: v.TextOf("model")}
	sound := v.Get("input_tokens").Kind() == jsontape.Number && v.Get("output_tokens").Kind() == jsontape.Number
	number := func(key string) float64 {
		n := v.Get(key)
		if kind := n.Kind(); kind != jsontape.Number {
			sound = sound && (kind == jsontape.Missing || kind == jsontape.Null)
			return 0
		}
		value := n.Float64()
		sound = sound && value >= 0 && value < math.MaxInt64
		return value
	}
	counted := [...]float64{
		number("input_tokens"),
		number("output_tokens"),
		number("cache_read_tokens"),
		number("cache_write_tokens"),
	}
	usd := number("cost_usd")
	if !sound {
		to.ParseError()
		return
	}
	report.Tokens = session.TokenUsage{
		InputTokens:      int64(counted[0]),
		OutputTokens:     int64(counted[1]),
		CacheReadTokens:  int64(counted[2]),
		CacheWriteTokens: int64(counted[3]),
	}
	if v.Get("cost_usd").Kind() == jsontape.Number {
		report.CostUSD = &usd
	}
	to.Usage(o, report)
}

// kinds are the words for what went wrong, those of the stored sessions.
var kinds = []session.ErrorKind{
	session.ErrorRateLimit, session.ErrorOverloaded, session.ErrorAuth, session.ErrorRefusal,
	session.ErrorContextOverflow, session.ErrorMaxTurns, session.ErrorBudget, session.ErrorAborted, session.ErrorAPI,
	session.ErrorWarning, session.ErrorOther,
}

func (d *decoder) error(v jsontape.Value, o session.Origin, to *session.Fold) {
	info := session.ClassifyFailure(v.Get("status").Int(), v.TextOf("message"))
	if info.Kind == session.ErrorAPI && info.Status == 0 {
		info.Kind = session.ErrorOther // nothing says that it was the model's service
	}
	if kind, known := named(v); known {
		info.Kind = kind
	}
	info.Attempt = v.Get("attempt").Int()
	if v.Get("retrying").Bool() {
		info.Kind = session.ErrorRetry
	} else if info.Kind != session.ErrorWarning {
		d.failed, d.ended = info, true
	}
	to.Error(o, info)
}

func named(v jsontape.Value) (session.ErrorKind, bool) {
	at := slices.Index(kinds, session.ErrorKind(v.TextOf("kind")))
	if at < 0 {
		return "", false
	}
	return kinds[at], true
}

// final reads the result. An answer that is not in a text event before becomes the agent's last
// message. A program that ended without a result has failed if its last event is an error, whatever
// its exit code.
func (d *decoder) final(v jsontape.Value, o session.Origin, to *session.Fold) {
	text := v.TextOf("text")
	final := session.Final{Outcome: session.OutcomeSuccess, Text: text}
	brokeOff := d.ended && v.Get("exit_code").Kind() == jsontape.Number
	if v.Get("success").Bool() && !brokeOff {
		if text != "" && (!d.said || to.LastText() != text) {
			to.Message(o, "assistant", text, "final")
		}
	} else {
		final.Outcome = session.OutcomeError
		if kind, known := named(v); known {
			final.Outcome = session.OutcomeOf(kind)
		} else if d.failed.Kind != "" {
			final.Outcome = session.OutcomeOf(d.failed.Kind)
		}
		if text == "" {
			final.Text = d.failed.Message
		}
		if kind := v.Get("success").Kind(); kind != jsontape.True && kind != jsontape.False {
			final.Text = strings.TrimSuffix("the agent's result does not say whether it is a success "+
				"(\"success\": true or false): "+text, ": ")
		}
	}
	d.failed, d.ended, d.said = session.ErrorInfo{}, false, false
	to.Final(o, final)
}
