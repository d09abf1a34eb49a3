package channel

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/fit-eval/fit/internal/bridge/server"
	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/internal/github"
)

// GitHub is a channel of the issues and discussions of repositories.
type GitHub struct {
	// Base is the address of the API; empty is GitHub's own.
	Base string
	// Token may comment in the repositories.
	Token string
	// Secret is that of the webhooks.
	Secret []byte
	// Tenants says to which tenant the threads of a repository belong. Repositories are named
	// owner/name, in lower case; others are not heard.
	Tenants map[string]string
	// Allowed are the logins of those who are heard beside the owners, members and collaborators of
	// a repository: people and bots. "*" is everybody but bots.
	Allowed []string
	// Mention, if set, is what a person writes to open a thread; otherwise everything opens one.
	Mention string
	// Pace is the time between two comments.
	Pace time.Duration
	// HTTP sends the requests; nil is a default client.
	HTTP *http.Client
	// Hear takes what people write.
	Hear func(server.Heard) (thread string, known bool, err error)
}

const (
	githubName = "github"
	// settle is how long a comment may take to be seen that GitHub has got and not confirmed.
	settle = 3 * time.Second
	// clockSkew is how far the clocks of GitHub and of this machine may be apart.
	clockSkew = time.Hour
)

// Channel describes the channel to a bridge.
func (g *GitHub) Channel() server.Channel {
	return server.Channel{
		Name:    githubName,
		Longest: github.LongestComment - 2000, // the rest is for who wrote it
		Pace:    g.Pace,
		Settle:  settle,
		Send:    g.send,
	}
}

// place names where a thread is.
type place struct {
	repository github.Repository
	kind       string // issues or discussions
	number     int
}

func (p place) String() string {
	return strings.ToLower(p.repository.Owner+"/"+p.repository.Name) + "/" + p.kind + "/" + strconv.Itoa(p.number)
}

func parsePlace(text string) (p place, err error) {
	parts := strings.Split(text, "/")
	if len(parts) != 4 {
		return p, fmt.Errorf("%q is not a place on GitHub", text)
	}
	p.repository, p.kind = github.Repository{Owner: parts[0], Name: parts[1]}, parts[2]
	p.number, err = strconv.Atoi(parts[3])
	return p, err
}

// send writes a letter as a comment, unless it is there.
func (g *GitHub) send(ctx context.Context, letter server.Letter) error {
	at, err := parsePlace(letter.Place)
	if err != nil {
		return err
	}
	client := &github.Client{
		Base:       g.Base,
		Token:      g.Token,
		Repository: at.repository,
		HTTP:       g.HTTP,
	}
	subject := github.Subject{Number: at.number, Discussion: letter.Target}
	mark := marker(letter.ID)
	if letter.Again {
		there, err := client.HasComment(ctx, subject, letter.WrittenAt.Add(-clockSkew), mark)
		if err != nil || there {
			return sendError(err)
		}
	}
	return sendError(client.Comment(ctx, subject, mark+"\n"+comment(letter)))
}

func sendError(err error) error {
	if err == nil {
		return nil
	}
	pause, later, untouched := github.Later(err)
	if !later {
		return err
	}
	return &server.SendError{Err: err, After: pause, Busy: untouched}
}

// markerBegin begins every comment of a bridge. Readers do not see it.
const markerBegin = "<!-- fit bridge "

func marker(id string) string { return markerBegin + id + " -->" }

// comment is what people read. Agents write Markdown, and so do people.
func comment(letter server.Letter) string {
	post := letter.Post
	text := post.Body
	if letter.Parts > 1 {
		text = fmt.Sprintf("(%d of %d)\n\n%s", letter.Part, letter.Parts, text)
	}
	if post.Role == "notice" {
		return "*" + plain("The bridge:") + "* " + text
	}
	from := cmp.Or(post.Author, "the bridge")
	if post.Role == "end" {
		return fmt.Sprintf("**The discussion is %s.**\n\n%s", plain(from), text)
	}
	return fmt.Sprintf("**%s:**\n\n%s", plain(from), text)
}

// plain writes a name so that Markdown shows it as it is.
func plain(name string) string {
	var b strings.Builder
	for _, r := range display.Line(name) {
		if r < 128 && strings.ContainsRune("\\`*_{}[]()<>#+-.!|~@&", r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}
