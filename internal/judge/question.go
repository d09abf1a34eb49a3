package judge

import (
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"strconv"
	"strings"

	"github.com/fit-eval/fit/internal/evidence"
	"github.com/fit-eval/fit/internal/model"
)

// maxReplyTokens bounds a reply: five steps of thought and a verdict.
const maxReplyTokens = 4096

// question is one question as it is put to every member.
type question struct {
	kind, dimension string
	about           string // for people who read replies.jsonl
	frame           *frame
	body            []byte // what the member is shown
	shown           shown
	// refuted reports whether a claim about failing tests is refuted by the harness's own check.
	refuted func(item string) bool

	hashed hash.Cloner // the parts of the request that all members share
}

func newQuestion(q question) *question {
	h := clone(q.frame.hashed)
	_, _ = io.WriteString(h, strconv.Itoa(len(q.body))+":") // as hashParts does, without copies of the evidence
	_, _ = h.Write(q.body)
	q.hashed = h
	return &q
}

func (q *question) user() string { return string(q.body) }

func clone(h hash.Cloner) hash.Cloner {
	cloned, err := h.Clone()
	if err != nil {
		panic("clone SHA-256: " + err.Error()) // crypto/sha256 does not fail
	}
	return cloned
}

// hashParts hashes texts so that different lists of texts have different hashes.
func hashParts(h hash.Hash, parts ...string) {
	var text []byte
	for _, part := range parts {
		text = append(append(strconv.AppendInt(text, int64(len(part)), 10), ':'), part...)
	}
	_, _ = h.Write(text)
}

// evidence returns the parts of a run that a dimension is judged by.
func (v *view) evidence(prefix, dimension string) shown {
	switch dimension {
	case evidence.Verification:
		return shown{v.part(v.trace, "trace", prefix), v.part(v.verify, "verify", prefix)}
	case evidence.Correctness, evidence.Completeness:
		return shown{v.part(v.patch, "patch", prefix), v.part(v.verify, "verify", prefix)}
	}
	return shown{v.part(v.patch, "patch", prefix)}
}

// single returns the question about one dimension of one run.
func (v *view) single(f *frames, kind, dimension string) *question {
	parts := append(shown{v.part(v.task, "task", "")}, v.evidence("", dimension)...)
	passed := v.subject.testsPassed()
	return newQuestion(question{
		kind:      kind,
		dimension: dimension,
		about:     v.subject.name(),
		frame:     f.of(kind, dimension),
		body:      fence(parts),
		shown:     parts,
		refuted:   func(string) bool { return passed },
	})
}

// pair returns the question of which of two runs is better in one dimension. x is shown first.
func pair(f *frames, dimension string, x, y *view) *question {
	parts := append(shown{x.part(x.sharedTask, "shared task", "")}, x.evidence("X/", dimension)...)
	parts = append(parts, y.evidence("Y/", dimension)...)
	xPassed, yPassed := x.subject.testsPassed(), y.subject.testsPassed()
	return newQuestion(question{
		kind:      kindPair,
		dimension: dimension,
		about:     fmt.Sprintf("X %s, Y %s", x.subject.name(), y.subject.name()),
		frame:     f.of(kindPair, dimension),
		body:      fence(parts),
		shown:     parts,
		refuted: func(item string) bool {
			switch {
			case strings.HasPrefix(item, "X/"):
				return xPassed
			case strings.HasPrefix(item, "Y/"):
				return yPassed
			}
			return xPassed && yPassed
		},
	})
}

// request is one exact request to one member.
type request struct {
	question *question
	member   Member
	// turns are what was said after the question: a reply that could not be read, and what is wrong
	// with it.
	turns []string
}

// key returns the SHA-256 of everything that reaches the model: system prompt, conversation,
// protocol, model, temperature and bound. The model's endpoint and its API key do not count.
func (r request) key() string {
	cloned := clone(r.question.hashed)
	hashParts(cloned, r.turns...)
	hashParts(cloned, r.member.Protocol, r.member.Model, strconv.Itoa(maxReplyTokens), "temperature 0")
	return hex.EncodeToString(cloned.Sum(nil))
}

// message returns the request as the model gets it.
func (r request) message() model.Request {
	temperature := 0.0
	out := model.Request{
		Model:       r.member.Model,
		System:      r.question.frame.system,
		Messages:    []model.Message{model.UserText(r.question.user())},
		MaxTokens:   maxReplyTokens,
		Temperature: &temperature,
	}
	for i, text := range r.turns {
		message := model.UserText(text)
		if i%2 == 0 {
			message.Role = model.Assistant
		}
		out.Messages = append(out.Messages, message)
	}
	return out
}

// size returns the length of the request in bytes.
func (r request) size() int {
	size := len(r.question.frame.system) + len(r.question.body)
	for _, text := range r.turns {
		size += len(text)
	}
	return size
}

// answer derives a member's answer from replies. Where a reply is missing it returns the request
// that would get it: asking and deriving are one function, and cannot differ.
func (q *question) answer(member Member, find func(key string) (*storedReply, bool)) (checkedReply, *request) {
	ask := request{question: q, member: member}
	for try := 0; ; try++ {
		reply, ok := find(ask.key())
		if !ok {
			missing := ask // the others stay on the stack
			return checkedReply{}, &missing
		}
		if reply.Failure != "" {
			return abstain(reply.Failure), nil
		}
		opinion, err := parseReply(reply.Reply, q.kind == kindPair)
		if err == nil {
			return ground(opinion, q.shown, q.refuted), nil
		}
		if try == 1 {
			return abstain("the reply cannot be read: " + err.Error()), nil
		}
		ask.turns = []string{emptyAsBlank(reply.Reply), fmt.Sprintf("Your reply cannot be read: %v. "+
			"Reply again: the numbered steps, then exactly one JSON object as described, and nothing after it.", err)}
	}
}

// emptyAsBlank replaces an empty message, which protocols refuse.
func emptyAsBlank(text string) string {
	if strings.TrimSpace(text) == "" {
		return "(empty)"
	}
	return text
}
