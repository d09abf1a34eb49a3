package session

import (
	"bytes"
	"slices"
	"strings"
)

// Messages of services when a conversation has become too long, and when they decline.
var (
	overflowWords = []string{
		"prompt is too long", "context window", "context length", "maximum context",
		"too many tokens", "input is too long",
	}
	refusalWords = []string{"usage policy", "refus", "declin", "safeguards"}
)

// classifyFailure distinguishes the ways in which a model's service can fail, by what the stream
// gives: its own word for it, the HTTP status, the message.
func classifyFailure(kind string, status int, message string) ErrorInfo {
	if status == 0 {
		status = statusIn(message)
	}
	info := ErrorInfo{Kind: ErrorAPI, Status: status, Message: strings.Clone(message)}
	var memory [512]byte
	words := WordingOf(message, memory[:])
	switch {
	case kind == "rate_limit" || status == 429:
		info.Kind = ErrorRateLimit
	case kind == "authentication_failed" || kind == "oauth_org_not_allowed" || status == 401 || status == 403:
		info.Kind = ErrorAuth
	case kind == "overloaded" || status >= 500:
		info.Kind = ErrorOverloaded
	case kind == "billing_error" || status == 402:
		info.Kind = ErrorBudget
	case words.Mention(overflowWords...):
		info.Kind = ErrorContextOverflow
	case kind == "refusal" || (status == 0 && !strings.Contains(message, "onnection") &&
		words.Mention(refusalWords...)):
		info.Kind = ErrorRefusal
	}
	return info
}

// ClassifyFailure distinguishes the ways in which a model's service can fail, for decoders whose
// stream says it in words or by the HTTP status.
func ClassifyFailure(status int, message string) ErrorInfo {
	return classifyFailure("", status, message)
}

// Wording is a message that is searched for phrases, ignoring case.
type Wording []byte

// WordingOf returns the wording of a message, in memory that the caller has for it or, if that is
// too little, in its own.
func WordingOf(message string, memory []byte) Wording {
	memory = append(memory[:0], message...)
	for i, c := range memory {
		if c >= 'A' && c <= 'Z' {
			memory[i] = c + 'a' - 'A'
		}
	}
	return memory
}

// Mentions reports whether one of several phrases, which are in lower case, occurs in a message,
// ignoring case.
func Mentions(message string, phrases ...string) bool {
	var memory [512]byte
	return WordingOf(message, memory[:]).Mention(phrases...)
}

// Mention reports whether one of several phrases, which are in lower case, occurs in the message.
func (w Wording) Mention(phrases ...string) bool {
	return slices.ContainsFunc(phrases, func(phrase string) bool { return bytes.Contains(w, []byte(phrase)) })
}

// statusIn finds the HTTP status of a failure in what a message says about it; 0 if it names none.
func statusIn(message string) int {
	for i := range len(message) {
		if c := message[i]; c != '4' && c != '5' {
			continue
		}
		if status := LeadingStatus(message[i:]); status != 0 {
			before := message[:i]
			if strings.HasSuffix(before, "(") || strings.HasSuffix(before, "API Error: ") ||
				strings.HasSuffix(before, "status ") {
				return status
			}
		}
	}
	return 0
}

// LeadingStatus returns the HTTP status of a failure that a message begins with; 0 if it begins
// with none.
func LeadingStatus(message string) int {
	if len(message) < 3 || (message[0] != '4' && message[0] != '5') || !isDigit(message[1]) || !isDigit(message[2]) {
		return 0
	}
	if len(message) > 3 && isWordByte(message[3]) {
		return 0
	}
	return int(message[0]-'0')*100 + int(message[1]-'0')*10 + int(message[2]-'0')
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
