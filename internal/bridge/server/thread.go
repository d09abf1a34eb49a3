package server

import (
	"database/sql"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/fit-eval/fit/internal/harness"
)

// The states of a thread.
const (
	stateOpen      = "open"     // nothing has been decided
	stateRecessed  = "recessed" // it waits for its trigger, or for a person
	stateAdjourned = "adjourned"
	stateFailed    = "failed" // its last run did
)

// IsState reports whether a thread can be in a state.
func IsState(name string) bool {
	return slices.Contains([]string{stateOpen, stateRecessed, stateAdjourned, stateFailed}, name)
}

// Who or what a post is from.
const (
	rolePerson  = "person"
	roleAgent   = "agent"
	roleOutcome = "outcome" // of a thread that was opened for comments
	roleEnd     = "end"     // of a run: its verdict and what was decided
	roleNotice  = "notice"  // of the bridge
)

// Thread is what people see of a thread.
type Thread struct {
	ID        string           `json:"id"`
	Title     string           `json:"title"`
	State     string           `json:"state"`
	CreatedAt int64            `json:"createdAt"`
	AskedIn   string           `json:"askedIn,omitempty"` // the thread that asked for comments
	Trigger   *harness.Trigger `json:"trigger,omitempty"` // of a recess
	DueAt     int64            `json:"dueAt,omitempty"`
	CostUSD   float64          `json:"costUsd"` // of the runs that have ended
	Runs      []Run            `json:"runs"`
	Last      int64            `json:"last"` // the number of its last post
}

// Threads is what people see of all threads.
type Threads struct {
	Person  string   `json:"person"` // who asks
	Threads []Thread `json:"threads"`
}

// Run is what people see of a run.
type Run struct {
	ID        string  `json:"id"`
	State     string  `json:"state"`
	StartedAt int64   `json:"startedAt,omitempty"`
	EndedAt   int64   `json:"endedAt,omitempty"`
	Verdict   string  `json:"verdict,omitempty"`
	CostUSD   float64 `json:"costUsd"`
	URL       string  `json:"url,omitempty"`
}

// Post is one post of a thread. They count from 1.
type Post struct {
	N      int64  `json:"n"`
	Role   string `json:"role"`
	Author string `json:"author"`
	Body   string `json:"body"`
	At     int64  `json:"at"`
	Run    string `json:"run,omitempty"`
}

// maxPost is how much a person can post at a time.
const maxPost = 2 << 20

// refusal is an error that the client gets with a status.
type refusal struct {
	status  int
	message string
	retry   int // seconds after which it may work, 0 if never
}

func (e *refusal) Error() string { return e.message }

var errNoThread = &refusal{status: http.StatusNotFound, message: "there is no such thread"}

// newPost is a post to be added.
type newPost struct {
	role, author, body string
	run                string
	seq                *int64 // of a reply
	key                string // recognises a post that is sent again; empty is a new one
	channel            string // in which it was written
}

// openThread makes a thread.
func (c *change) openThread(tenant, title string, asked *rfcOrigin) (string, error) {
	id := newID("thread")
	var in, by, as any
	depth := 0
	if asked != nil {
		in, by, as, depth = asked.thread, asked.run, asked.id, asked.depth
	}
	c.touched[id] = true
	return id, c.exec(`INSERT INTO thread(id, tenant, title, state, created_at, depth, asked_in, asked_by, asked_as)
		VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?)`, id, tenant, title, stateOpen, c.now.UnixMilli(), depth, in, by, as)
}

// add adds a post and returns its number, or 0 if it is there already.
func (c *change) add(thread string, p newPost) (int64, error) {
	var n int64
	if _, err := c.one(`SELECT coalesce(max(n), 0) + 1 FROM post WHERE thread = ?`, []any{thread}, &n); err != nil {
		return 0, err
	}
	key := sql.NullString{String: p.key, Valid: p.key != ""}
	run := sql.NullString{String: p.run, Valid: p.run != ""}
	added, err := c.changed(`INSERT OR IGNORE INTO post(thread, n, role, author, body, at, run, seq, key)
		VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?)`, thread, n, p.role, p.author, p.body, c.now.UnixMilli(), run, p.seq, key)
	if err != nil || !added {
		return 0, err
	}
	c.touched[thread] = true
	return n, c.mail(thread, n, p)
}

// say adds what a person wrote, or what came of a thread opened for comments, and sees to it that
// the team hears of it: the run that is live, the recess that waits for it, or a new run.
func (c *change) say(thread string, p newPost) (int64, error) {
	n, err := c.add(thread, p)
	if err != nil || n == 0 {
		return n, err
	}
	run, err := c.liveRun(thread)
	if err != nil {
		return n, err
	}
	if run != "" {
		return n, c.exec(`INSERT INTO inbox(run, seq, n)
			SELECT ?, coalesce(max(seq), 0) + 1, ? FROM inbox WHERE run = ?`, run, n, run)
	}
	var state string
	if _, err := c.one(`SELECT state FROM thread WHERE id = ?`, []any{thread}, &state); err != nil {
		return n, err
	}
	switch {
	case state == stateRecessed:
		return n, c.heard(thread)
	case p.role == rolePerson:
		return n, c.answer(thread, n)
	default: // nobody waits for the outcome any more; it is in the thread
		return n, nil
	}
}

// What a new run learns of what was said before.
const (
	historyPosts = 10
	historyBytes = 4000
)

// answer starts a run for what was said from a post on, with what was said before it.
func (c *change) answer(thread string, from int64) error {
	rows, err := c.tx.Query(`SELECT n, role, author, body FROM post WHERE thread = ? AND role <> ? AND
		(n < ? OR role IN (?, ?)) ORDER BY n DESC`, thread, roleNotice, from, rolePerson, roleOutcome)
	if err != nil {
		return err
	}
	defer rows.Close()
	var said, before []string
	size := 0
	for rows.Next() && len(before) < historyPosts {
		var n int64
		var role, author, body string
		if err := rows.Scan(&n, &role, &author, &body); err != nil {
			return err
		}
		if n >= from {
			said = append(said, body)
			continue
		}
		line := author + ": " + body
		if size += len(line); size > historyBytes {
			break
		}
		before = append(before, line)
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return err
	}
	task := strings.Join(reversed(said), "\n\n")
	if len(before) > 0 {
		task = "What was said in this thread before:\n\n" + strings.Join(reversed(before), "\n\n") +
			"\n\nNow:\n\n" + task
	}
	return c.queue(thread, task, nil)
}

func reversed(list []string) []string {
	turned := make([]string, 0, len(list))
	for i := len(list) - 1; i >= 0; i-- {
		turned = append(turned, list[i])
	}
	return turned
}

// threadOf checks that a thread is one of a tenant's.
func (c *change) threadOf(tenant, thread string) error {
	var is int
	found, err := c.one(`SELECT 1 FROM thread WHERE id = ? AND tenant = ?`, []any{thread, tenant}, &is)
	if err == nil && !found {
		return errNoThread
	}
	return err
}

// text checks what a person wrote.
func text(what, s string, limit int) (string, error) {
	switch {
	case strings.TrimSpace(s) == "":
		return "", &refusal{status: http.StatusBadRequest, message: what + " is empty"}
	case len(s) > limit:
		return "", &refusal{status: http.StatusRequestEntityTooLarge, message: what + " is too long"}
	case !utf8.ValidString(s):
		return "", &refusal{status: http.StatusBadRequest, message: what + " is not UTF-8"}
	}
	return s, nil
}

// threads returns the threads of a tenant, the newest first, or one of them.
func (s *Server) threads(tenant, id string) ([]Thread, error) {
	rows, err := s.store.reader.Query(`SELECT id, title, state, created_at, coalesce(asked_in, ''), trigger,
		coalesce(due_at, 0), (SELECT coalesce(max(n), 0) FROM post WHERE post.thread = thread.id) FROM thread
		WHERE tenant = ? AND (? = '' OR id = ?) ORDER BY created_at DESC LIMIT 1000`, tenant, id, id)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	list := []Thread{}
	for rows.Next() {
		var t Thread
		var trigger sql.NullString
		err := rows.Scan(&t.ID, &t.Title, &t.State, &t.CreatedAt, &t.AskedIn, &trigger, &t.DueAt, &t.Last)
		if err != nil {
			return nil, err
		}
		if trigger.Valid {
			_ = json.Unmarshal([]byte(trigger.String), &t.Trigger) // we wrote it
		}
		list = append(list, t)
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	for i := range list {
		if list[i].Runs, err = s.runsOf(list[i].ID); err != nil {
			return nil, err
		}
		for _, run := range list[i].Runs {
			list[i].CostUSD += run.CostUSD
		}
	}
	return list, nil
}

func (s *Server) runsOf(thread string) ([]Run, error) {
	rows, err := s.store.reader.Query(`SELECT id, state, coalesce(started_at, 0), coalesce(ended_at, 0),
		coalesce(verdict, ''), coalesce(cost_usd, 0), coalesce(url, '') FROM run WHERE thread = ? ORDER BY rowid`, thread)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	runs := []Run{}
	for rows.Next() {
		var r Run
		if err := rows.Scan(&r.ID, &r.State, &r.StartedAt, &r.EndedAt, &r.Verdict, &r.CostUSD, &r.URL); err != nil {
			return nil, err
		}
		runs = append(runs, r)
	}
	return runs, rows.Err()
}

// How many posts one answer has, and how much text, at most.
const (
	maxPosts     = 200
	maxPostBytes = 4 << 20
)

// posts returns the posts of a thread after a number.
func (s *Server) posts(thread string, after int64) ([]Post, error) {
	rows, err := s.store.reader.Query(`SELECT n, role, author, body, at, coalesce(run, '') FROM post
		WHERE thread = ? AND n > ? ORDER BY n LIMIT ?`, thread, after, maxPosts)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	list := []Post{}
	for size := 0; size < maxPostBytes && rows.Next(); {
		var p Post
		if err := rows.Scan(&p.N, &p.Role, &p.Author, &p.Body, &p.At, &p.Run); err != nil {
			return nil, err
		}
		size += len(p.Body)
		list = append(list, p)
	}
	return list, rows.Err()
}
