package codex

import (
	"slices"
	"strconv"
	"strings"

	"github.com/fit-eval/fit/internal/jsontape"
	"github.com/fit-eval/fit/session"
)

// Messages of the program and the services, in lower case, for failures without any other sign of
// the cause.
var (
	authWords = []string{
		"missing environment variable", "not logged in", "log in again", "sign in again", "refresh token",
		"invalid api key", "incorrect api key",
	}
	overloadWords  = []string{"high demand", "overloaded", "at capacity"}
	rateLimitWords = []string{"usage limit", "rate limit", "quota exceeded", "too many requests"}
	overflowWords  = []string{"context_length_exceeded", "context window"}
	lostWords      = []string{"connection failed", "stream disconnected", "error sending request", "timeout"}
)

// failureKinds maps the program's own names of failures, without case and underscores, to ours.
var failureKinds = map[string]session.ErrorKind{
	"contextwindowexceeded": session.ErrorContextOverflow,
	"usagelimitexceeded":    session.ErrorRateLimit, "ratelimitexceeded": session.ErrorRateLimit,
	"serveroverloaded": session.ErrorOverloaded, "internalservererror": session.ErrorOverloaded,
	"flexunavailable": session.ErrorOverloaded,
	"unauthorized":    session.ErrorAuth,
	"cyberpolicy":     session.ErrorRefusal, "misalignmentpolicyviolation": session.ErrorRefusal,
	"sandboxerror": session.ErrorOther, "threadrollbackfailed": session.ErrorOther,
	"activeturnnotsteerable": session.ErrorOther, "toomanydenials": session.ErrorOther,
}

// failureReader reads failures. Its zero value is ready.
type failureReader struct{ answers jsontape.Parser }

// read classifies an error: by the name and status that some formats give, or else by its wording,
// which is all that others have.
func (r *failureReader) read(v jsontape.Value) session.ErrorInfo {
	info, name := r.statement(v)
	if info.Kind == session.ErrorRetry {
		return info
	}
	return classified(info, name)
}

// statement reads the text of an error, and whether the request is retried. It does not classify
// the error.
func (r *failureReader) statement(v jsontape.Value) (info session.ErrorInfo, name string) {
	message := r.readable(v.TextOf("message"))
	name, status := failureName(either(v, "codexErrorInfo", "codex_error_info"))
	if details := either(v, "additionalDetails", "additional_details"); details.Exists() &&
		strings.HasPrefix(message, "Reconnecting...") {
		if text := details.Text(); text != "" {
			message += " (" + text + ")"
		}
	}
	if status == 0 {
		status = statusIn(message)
	}
	info = session.ErrorInfo{Status: status, Message: message}
	if attempt, retries := attemptIn(message); retries {
		info.Kind, info.Attempt = session.ErrorRetry, attempt
	}
	return info, name
}

// classified finds out what an error is about.
func classified(said session.ErrorInfo, name string) session.ErrorInfo {
	status, message := said.Status, said.Message
	info := session.ClassifyFailure(status, message)
	var memory [512]byte
	words := session.WordingOf(message, memory[:])
	switch kind := failureKinds[name]; {
	case kind != "":
		info.Kind = kind
	case status != 0 && info.Kind != session.ErrorAPI:
	case words.Mention(overflowWords...):
		info.Kind = session.ErrorContextOverflow
	case words.Mention(authWords...):
		info.Kind = session.ErrorAuth
	case words.Mention(overloadWords...):
		info.Kind = session.ErrorOverloaded
	case words.Mention(rateLimitWords...):
		info.Kind = session.ErrorRateLimit
	case lost(message):
		info.Kind = session.ErrorAPI
	}
	return info
}

// lost reports whether a message reports a connection that failed.
func lost(message string) bool {
	return slices.ContainsFunc(lostWords, func(words string) bool {
		return len(message) >= len(words) && strings.EqualFold(message[:len(words)], words)
	})
}

// attemptIn reads the number of the attempt from a message that reports one; the program counts
// them as in 2/5.
func attemptIn(message string) (attempt int, found bool) {
	rest, found := strings.CutPrefix(message, "Reconnecting... ")
	if !found {
		return 0, false
	}
	first, of, found := strings.Cut(rest, "/")
	if !found || first == "" || strings.Trim(first, digits) != "" || of == "" || strings.IndexByte(digits, of[0]) < 0 {
		return 0, false
	}
	attempt, _ = strconv.Atoi(first)
	return attempt, true
}

const digits = "0123456789"

// statusIn finds an HTTP status in a message, after the word status.
func statusIn(message string) int {
	for from := 0; ; {
		at := strings.Index(message[from:], "status")
		if at < 0 {
			return 0
		}
		at += from
		from = at + len("status")
		rest, found := strings.CutPrefix(strings.TrimPrefix(message[from:], ":"), " ")
		if !found || (at > 0 && isWord(message[at-1])) || len(rest) < 3 || (len(rest) > 3 && isWord(rest[3])) {
			continue
		}
		if strings.Trim(rest[:3], digits) == "" {
			status, _ := strconv.Atoi(rest[:3])
			return status
		}
	}
}

func isWord(c byte) bool {
	return c == '_' || (c >= '0' && c <= '9') || (c|0x20 >= 'a' && c|0x20 <= 'z')
}

// failureName reads the program's name of a failure: a word, or an object whose one key is the word
// and which may hold an HTTP status.
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
func (r *failureReader) readable(message string) string {
	if !strings.HasPrefix(message, "{") {
		return message
	}
	v, ok := r.answers.Parse([]byte(message))
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
