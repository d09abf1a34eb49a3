package channel

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/fit-eval/fit/internal/bridge/server"
	"github.com/fit-eval/fit/internal/github"
)

// maxDelivery is how much of a webhook is read. GitHub's comments have 64 KiB.
const maxDelivery = 4 << 20

// delivery is what a webhook of GitHub holds, as far as it concerns a thread.
type delivery struct {
	Action     string
	Repository struct {
		FullName string `json:"full_name"`
	}
	Issue, Discussion *subject
	Comment           *written
}

// subject is an issue or a discussion, with the text that opens it.
type subject struct {
	written
	Number int
	Title  string
}

// written is a text on GitHub.
type written struct {
	NodeID      string `json:"node_id"`
	Body        string
	User        *user
	Association string    `json:"author_association"`
	CreatedAt   time.Time `json:"created_at"`
	UpdatedAt   time.Time `json:"updated_at"`
}

type user struct{ Login, Type string }

// ServeHTTP receives webhooks. It answers when what they bring is on the disk.
func (g *GitHub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	status, answer := g.receive(r)
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(answer) // who has gone asks again
}

// receipt is what GitHub shows of a delivery.
type receipt struct {
	OK      bool   `json:"ok"`
	Thread  string `json:"thread,omitempty"`
	Dedupe  bool   `json:"dedupe,omitempty"`
	Ignored string `json:"ignored,omitempty"` // why
	Error   string `json:"error,omitempty"`
}

func (g *GitHub) receive(r *http.Request) (int, receipt) {
	body, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, maxDelivery))
	if err != nil {
		return http.StatusRequestEntityTooLarge, receipt{Error: "the delivery cannot be read, or is too large"}
	}
	if !g.signed(body, r.Header.Get("X-Hub-Signature-256")) {
		return http.StatusUnauthorized, receipt{Error: "X-Hub-Signature-256 is missing or wrong: the secret of the " +
			"webhook must be that of the bridge"}
	}
	var d delivery
	if err := json.Unmarshal(body, &d); err != nil {
		return http.StatusUnsupportedMediaType, receipt{Error: "the delivery must be JSON: set the content type of " +
			"the webhook to application/json"}
	}
	heard, ignored := g.understand(r.Header.Get("X-GitHub-Event"), d)
	if ignored != "" {
		return http.StatusOK, receipt{OK: true, Ignored: ignored}
	}
	thread, known, err := g.Hear(heard)
	switch {
	case err != nil:
		return http.StatusServiceUnavailable, receipt{Error: err.Error()}
	case thread == "" && (heard.Edited || heard.Deleted):
		return http.StatusOK, receipt{OK: true, Ignored: "the bridge has not heard this text when it was written"}
	case thread == "" && heard.Opens:
		return http.StatusOK, receipt{OK: true, Ignored: "the text was deleted"}
	case thread == "":
		return http.StatusOK, receipt{OK: true, Ignored: "no thread is open here"}
	}
	return http.StatusOK, receipt{OK: true, Thread: thread, Dedupe: known}
}

// signed compares in a time that says nothing of where a signature is wrong.
func (g *GitHub) signed(body []byte, signature string) bool {
	given, prefixed := strings.CutPrefix(signature, "sha256=")
	sum, err := hex.DecodeString(given)
	mac := hmac.New(sha256.New, g.Secret)
	mac.Write(body)
	return prefixed && err == nil && hmac.Equal(sum, mac.Sum(nil))
}

// understand says what a delivery is to a bridge, or why it is nothing.
func (g *GitHub) understand(event string, d delivery) (h server.Heard, ignored string) {
	tenant, served := g.Tenants[strings.ToLower(d.Repository.FullName)]
	if event == "ping" {
		return h, "ping"
	}
	if !served {
		return h, "the bridge does not serve this repository: name it with --github"
	}
	on, kind, said := d.Discussion, "discussions", d.Comment
	if d.Issue != nil {
		on, kind = d.Issue, "issues"
	}
	whole := event == "issues" || event == "discussion" // of an issue or discussion, not of a comment
	switch {
	case on == nil, !whole && event != "issue_comment" && event != "discussion_comment":
		return h, "the event says nothing to a thread"
	case whole:
		said = &on.written
	case said == nil:
		return h, "the delivery has no comment"
	}
	if !slices.Contains([]string{"opened", "created", "edited", "deleted"}, d.Action) {
		return h, "the action says nothing to a thread"
	}
	if strings.HasPrefix(said.Body, markerBegin) {
		return h, "it is from a bridge"
	}
	if why := g.notAllowed(said); why != "" {
		return h, why
	}
	repository, err := github.ParseRepository(d.Repository.FullName)
	if err != nil {
		return h, err.Error()
	}
	h = server.Heard{
		Tenant:  tenant,
		Channel: githubName,
		Place:   place{repository, kind, on.Number}.String(),
		Opens:   d.Action == "opened" || d.Action == "created",
		Title:   on.Title,
		Author:  said.author(),
		Body:    said.Body,
		Key:     said.NodeID,
		Version: said.version(),
		Edited:  d.Action == "edited",
		Deleted: d.Action == "deleted",
	}
	if kind == "discussions" {
		h.Target = on.NodeID
	}
	if whole {
		h.Body = on.text()
	} else {
		h.Before = &server.Earlier{Author: on.author(), Body: on.text(), Key: on.NodeID}
	}
	h.Opens = h.Opens && strings.Contains(h.Body, g.Mention)
	if strings.TrimSpace(h.Body) == "" && !h.Deleted {
		return h, "it is empty"
	}
	return h, ""
}

// notAllowed says why a text is not heard.
func (g *GitHub) notAllowed(w *written) string {
	if w.User == nil {
		return "its author has left GitHub"
	}
	named := slices.ContainsFunc(g.Allowed, func(login string) bool { return strings.EqualFold(login, w.User.Login) })
	switch {
	case named:
		return ""
	case w.User.Type != "User":
		return "its author is a bot: allow it with --github-allow"
	case slices.Contains(g.Allowed, "*"),
		slices.Contains([]string{"OWNER", "MEMBER", "COLLABORATOR"}, w.Association):
		return ""
	}
	return "its author is not a collaborator of the repository: allow them with --github-allow"
}

func (s *subject) text() string { return strings.TrimSpace(fmt.Sprintf("%s\n\n%s", s.Title, s.Body)) }

// author is told apart from those who are invited to the bridge.
func (w *written) author() string {
	if w.User == nil {
		return "@ghost"
	}
	return "@" + w.User.Login
}

func (w *written) version() time.Time {
	if w.UpdatedAt.IsZero() {
		return w.CreatedAt
	}
	return w.UpdatedAt
}
