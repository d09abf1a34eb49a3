package codex

import (
	"strconv"
	"strings"

	"github.com/fit-eval/fit/internal/jsontape"
	"github.com/fit-eval/fit/internal/lazyregexp"
	"github.com/fit-eval/fit/session"
)

var (
	statusWords    = lazyregexp.New(`\bstatus:? (\d{3})\b`)
	retryWords     = lazyregexp.New(`^Reconnecting\.\.\. (\d+)/\d+(?: \((.*)\))?`)
	authWords      = lazyregexp.New(`(?i)missing environment variable|not logged in|log in again|sign in again|refresh token|invalid api key|incorrect api key`)
	overloadWords  = lazyregexp.New(`(?i)high demand|overloaded|at capacity`)
	rateLimitWords = lazyregexp.New(`(?i)usage limit|rate limit|quota exceeded|too many requests`)
	overflowWords  = lazyregexp.New(`(?i)context_length_exceeded|context window`)
	lostWords      = lazyregexp.New(`(?i)^(?:connection failed|stream disconnected|error sending request|timeout)`)
)

// failureKinds maps the program's own names of failures, without case and underscores, to ours.
var failureKinds = map[string]session.ErrorKind{
	"contextwindowexceeded": session.ErrorContextOverflow,
	"usagelimitexceeded":    session.ErrorRateLimit, "ratelimitexceeded": session.ErrorRateLimit,
	"serveroverloaded": session.ErrorOverloaded, "internalservererror": session.ErrorOverloaded, "flexunavailable": session.ErrorOverloaded,
	"unauthorized": session.ErrorAuth,
	"cyberpolicy":  session.ErrorRefusal, "misalignmentpolicyviolation": session.ErrorRefusal,
	"sandboxerror": session.ErrorOther, "threadrollbackfailed": session.ErrorOther, "activeturnnotsteerable": session.ErrorOther, "toomanydenials": session.ErrorOther,
}

// failure tells what an error is about: from the name and status that some formats give, else from its wording, which is all that others have.
func failure(v jsontape.Value) session.ErrorInfo {
	message := readable(v.TextOf("message"))
	name, status := failureName(either(v, "codexErrorInfo", "codex_error_info"))
	if details := either(v, "additionalDetails", "additional_details"); details.Exists() && strings.HasPrefix(message, "Reconnecting...") {
		if text := details.Text(); text != "" {
			message += " (" + text + ")"
		}
	}
	if match := statusWords.FindStringSubmatch(message); match != nil && status == 0 {
		status, _ = strconv.Atoi(match[1])
	}
	if retry := retryWords.FindStringSubmatch(message); retry != nil {
		attempt, _ := strconv.Atoi(retry[1])
		return session.ErrorInfo{Kind: session.ErrorRetry, Status: status, Attempt: attempt, Message: message}
	}
	info := session.ClassifyFailure(status, message)
	switch kind := failureKinds[name]; {
	case kind != "":
		info.Kind = kind
	case status != 0 && info.Kind != session.ErrorAPI:
	case overflowWords.MatchString(message):
		info.Kind = session.ErrorContextOverflow
	case authWords.MatchString(message):
		info.Kind = session.ErrorAuth
	case overloadWords.MatchString(message):
		info.Kind = session.ErrorOverloaded
	case rateLimitWords.MatchString(message):
		info.Kind = session.ErrorRateLimit
	case lostWords.MatchString(message):
		info.Kind = session.ErrorAPI
	}
	return info
}

// failureName reads the program's name of a failure: a word, or an object whose one key is the word and which may hold an HTTP status.
func failureName(info jsontape.Value) (name string, status int) {
	if info.Kind() == jsontape.String {
		name = info.Text()
	}
	for key, inner := range info.Members() {
		name = key
		if code := either(inner, "httpStatusCode", "http_status_code"); code.Exists() {
			status = code.Int()
		}
	}
	return strings.ToLower(strings.ReplaceAll(name, "_", "")), status
}

// readable takes the sentence out of a message that is the service's whole answer.
func readable(message string) string {
	if !strings.HasPrefix(message, "{") {
		return message
	}
	var parser jsontape.Parser
	v, ok := parser.Parse([]byte(message))
	if !ok {
		return message
	}
	inner := v.Get("error").TextOf("message")
	if inner == "" {
		return message
	}
	for _, detail := range []string{v.Get("error").TextOf("code"), v.Get("error").TextOf("type")} {
		if detail != "" {
			return inner + " (" + detail + ")"
		}
	}
	return inner
}
