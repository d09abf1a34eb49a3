package events

import (
	"slices"

	"github.com/fit-eval/fit/internal/jsontape"
	"github.com/fit-eval/fit/session"
)

// DialectName is the name of the format in traces.
const DialectName = "fit-events"

// Dialect returns the format. Many agents speak it; command stands for one of which nothing else is
// known.
func Dialect() session.Dialect {
	return session.Dialect{
		Name:      DialectName,
		Agent:     "command",
		Recognise: recognise,
		New:       func() session.Decoder { return new(decoder) },
	}
}

// recognise says yes to objects whose type and fields nobody else uses together.
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

// decoder reads the format. It remembers the last error, which is why a result without success
// failed.
type decoder struct {
	parser jsontape.Parser
	failed session.ErrorInfo
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
		d.text(v, o, to)
	case typeToolCall:
		d.said = false
		to.ToolCall(o, session.Call{ID: v.TextOf("id"), Name: v.TextOf("name"), Args: object(v.Get("input"))})
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

// object is the input of a call where it is an object, as all readers of calls expect.
func object(input jsontape.Value) []byte {
	if input.Kind() != jsontape.Object {
		return nil
	}
	return input.Raw()
}

func (d *decoder) result(v jsontape.Value, o session.Origin, to *session.Fold) {
	d.said = false
	returned := session.Returned{
		CallID:  v.TextOf("id"),
		IsError: v.Get("is_error").Bool(),
		Content: v.TextOf("output"),
	}
	if code := v.Get("exit_code"); code.Kind() == jsontape.Number {
		exit := code.Int()
		returned.ExitCode = &exit
	}
	to.ToolResult(o, returned)
}

func usage(v jsontape.Value, o session.Origin, to *session.Fold) {
	number := func(key string) int64 { return max(0, v.Get(key).Int64()) }
	report := session.UsageReport{
		Rule:  session.UsageDelta,
		Model: v.TextOf("model"),
		Tokens: session.TokenUsage{
			InputTokens:      number("input_tokens"),
			OutputTokens:     number("output_tokens"),
			CacheReadTokens:  number("cache_read_tokens"),
			CacheWriteTokens: number("cache_write_tokens"),
		},
	}
	if cost := v.Get("cost_usd"); cost.Kind() == jsontape.Number && cost.Float64() >= 0 {
		usd := cost.Float64()
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
		d.failed = info
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

// final reads the result. An answer that no text has told is the agent's last message.
func (d *decoder) final(v jsontape.Value, o session.Origin, to *session.Fold) {
	text := v.TextOf("text")
	final := session.Final{Outcome: session.OutcomeSuccess, Text: text}
	if v.Get("success").Bool() {
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
	}
	d.failed, d.said = session.ErrorInfo{}, false
	to.Final(o, final)
}
