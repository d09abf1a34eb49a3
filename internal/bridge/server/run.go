package server

import (
	"cmp"
	"database/sql"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/fit-eval/fit/internal/bridge"
	"github.com/fit-eval/fit/internal/harness"
)

// The states of a run.
const (
	runQueued = "queued"
	runLive   = "running"
	runPaused = "paused" // a person suspended it
	runEnded  = "ended"
)

// Runs of one thread that start within a window; later ones wait.
const (
	runsPerWindow = 5
	runWindow     = time.Minute
)

// liveRun returns the run of a thread that has not ended, if there is one.
func (c *change) liveRun(thread string) (string, error) {
	var id string
	_, err := c.one(`SELECT id FROM run WHERE thread = ? AND state <> ?`, []any{thread, runEnded}, &id)
	return id, err
}

// queue makes a run. A thread that has started many is made to wait, and nothing is lost.
func (c *change) queue(thread, task string, resume *harness.ResumeContext) error {
	var context sql.NullString
	if resume != nil {
		data, err := json.Marshal(resume)
		if err != nil {
			return err
		}
		context = sql.NullString{String: string(data), Valid: true}
	}
	var before sql.NullInt64
	if _, err := c.one(`SELECT not_before FROM run WHERE thread = ? ORDER BY rowid DESC LIMIT 1 OFFSET ?`,
		[]any{thread, runsPerWindow - 1}, &before); err != nil {
		return err
	}
	begin := c.now.UnixMilli()
	if before.Valid {
		begin = max(begin, before.Int64+runWindow.Milliseconds())
	}
	c.touched[thread], c.due = true, true
	return c.exec(`INSERT INTO run(id, thread, state, task, resume, created_at, not_before) VALUES(?, ?, ?, ?, ?, ?, ?)`,
		newID("run"), thread, runQueued, task, context, c.now.UnixMilli(), begin)
}

// bearer is whom a run's token belongs to.
type bearer struct{ tenant, run, thread, state string }

var errNoToken = &refusal{status: http.StatusNotFound, message: "the token is unknown or has expired"}

// bearerOf finds the run of a token. Tokens live as long as their run, whose end still answers to
// them: a run that got no answer reports it again.
func (c *change) bearerOf(tenant, token string) (bearer, error) {
	b := bearer{tenant: tenant}
	found, err := c.one(`SELECT run.id, run.thread, run.state FROM token JOIN run ON run.id = token.run
		WHERE token.hash = ? AND token.tenant = ?`, []any{hashed(token), tenant}, &b.run, &b.thread, &b.state)
	if err == nil && !found {
		return b, errNoToken
	}
	return b, err
}

func orNoToken(known bool) error {
	if known {
		return nil
	}
	return errNoToken
}

// callback takes a message of a run. It reports whether it is known already.
func (c *change) callback(tenant, token string, message bridge.Callback) (known bool, err error) {
	b, err := c.bearerOf(tenant, token)
	if err != nil {
		return false, err
	}
	if message.CorrelationID != b.run {
		return false, &refusal{status: http.StatusBadRequest, message: "the correlation id is not that of the token"}
	}
	switch message.Kind {
	case bridge.KindTerminal:
		if b.state == runEnded {
			return true, c.charge(b.thread, b.run, message.CostUSD)
		}
		return false, c.end(b, message.Terminal)
	case bridge.KindReply, bridge.KindAck:
		reply := harness.Reply{Body: message.Body, Agent: message.Agent, Seq: *message.Seq}
		if b.state == runEnded { // its end has brought all its replies, and a person may have stopped it
			var is int
			known, err := c.one(`SELECT 1 FROM post WHERE run = ? AND seq = ?`, []any{b.run, reply.Seq}, &is)
			return known, cmp.Or(err, orNoToken(known))
		}
		added, err := c.reply(b, reply)
		return !added, err
	}
	return false, &refusal{status: http.StatusBadRequest, message: "the kind must be reply, ack or terminal"}
}

// reply posts what an agent said, unless it is in the thread.
func (c *change) reply(b bearer, r harness.Reply) (bool, error) {
	if strings.TrimSpace(r.Body) == "" {
		return false, nil
	}
	n, err := c.add(b.thread, newPost{
		role:   roleAgent,
		author: r.Agent,
		body:   r.Body,
		run:    b.run,
		seq:    &r.Seq,
	})
	return n > 0, err
}

// end takes the end of a run: replies that did not arrive before, what is decided or waited for,
// threads to be opened, and messages that the lead has not dealt with.
func (c *change) end(b bearer, t *bridge.Terminal) error {
	slices.SortStableFunc(t.Replies, func(a, b harness.Reply) int { return cmp.Compare(a.Seq, b.Seq) })
	for _, r := range t.Replies {
		if _, err := c.reply(b, r); err != nil {
			return err
		}
	}
	if err := c.exec(`UPDATE run SET state = ?, ended_at = ?, verdict = ?, url = ? WHERE id = ?`,
		runEnded, c.now.UnixMilli(), t.Verdict, t.RunURL, b.run); err != nil {
		return err
	}
	if err := c.charge(b.thread, b.run, t.CostUSD); err != nil {
		return err
	}
	said := t.Summary
	if t.Outcome != "" && t.Outcome != t.Summary {
		said = strings.TrimSpace(said + "\n\nOutcome: " + t.Outcome)
	}
	if _, err := c.add(b.thread, newPost{
		role:   roleEnd,
		author: t.Verdict,
		body:   said,
		run:    b.run,
		key:    "end of " + b.run,
	}); err != nil {
		return err
	}
	if err := c.openRFCs(b.tenant, b.thread, b.run, t.RFCs); err != nil {
		return err
	}
	// the posts of the inbox are in order, and the lead deals with them in order
	var next, last int64
	if _, err := c.one(`SELECT coalesce(min(n), 0) FROM inbox WHERE run = ? AND seq > ?`,
		[]any{b.run, t.LastActedSeq}, &next); err != nil {
		return err
	}
	if t.Verdict == harness.VerdictRecessed {
		if _, err := c.one(`SELECT max(n) FROM post WHERE thread = ?`, []any{b.thread}, &last); err != nil {
			return err
		}
		if next > 0 {
			last = next - 1
		}
		return c.suspend(b.thread, b.run, t, last)
	}
	state := stateFailed
	if t.Verdict == harness.VerdictAdjourned {
		state = stateAdjourned
	}
	if err := c.exec(`UPDATE thread SET state = ?, trigger = NULL, resume = NULL, due_at = NULL WHERE id = ?`,
		state, b.thread); err != nil {
		return err
	}
	if next > 0 {
		return c.answer(b.thread, next)
	}
	return c.report(b.thread, b.run, cmp.Or(t.Outcome, said, t.Verdict))
}

// fail ends a run that cannot report its end itself.
func (c *change) fail(run, verdict, why string) error {
	b := bearer{run: run}
	found, err := c.one(`SELECT thread.tenant, thread.id FROM run JOIN thread ON thread.id = run.thread
		WHERE run.id = ? AND run.state <> ?`, []any{run, runEnded}, &b.tenant, &b.thread)
	if err != nil || !found {
		return err
	}
	var acted int64 // what is in its inbox is not asked again: it may be what it failed on
	if _, err := c.one(`SELECT coalesce(max(seq), 0) FROM inbox WHERE run = ?`, []any{run}, &acted); err != nil {
		return err
	}
	return c.end(b, &bridge.Terminal{Verdict: verdict, Summary: why, LastActedSeq: acted})
}

// grant makes a token for a run or a person.
func (c *change) grant(tenant, run, person string) (string, error) {
	token := secret()
	return token, c.exec(`INSERT INTO token(hash, tenant, run, person, created_at) VALUES(?, ?, ?, ?, ?)`,
		hashed(token), tenant, sql.NullString{String: run, Valid: run != ""},
		sql.NullString{String: person, Valid: person != ""}, c.now.UnixMilli())
}

// Job is a run to be held.
type Job struct {
	Run, Thread, Tenant string
	// Task is what the discussion is about, and Resume the state of the one that it continues.
	Task   string
	Resume *harness.ResumeContext
	// Again says that the run may have been started before: the server or the run was killed, or a
	// person suspended it.
	Again                 bool
	CallbackURL, InboxURL string
	QueuedAt              time.Time
}

// startDue marks the runs that may begin now as live and returns their jobs, at most so many.
func (c *change) startDue(room int, address string) ([]Job, error) {
	rows, err := c.tx.Query(`SELECT run.id, thread.id, thread.tenant, task, run.resume, run.created_at FROM run
		JOIN thread ON thread.id = run.thread WHERE run.state = ? AND not_before <= ? ORDER BY not_before LIMIT ?`,
		runQueued, c.now.UnixMilli(), room)
	if err != nil {
		return nil, err
	}
	jobs, err := scanJobs(rows)
	for i := range jobs {
		if err := c.exec(`UPDATE run SET state = ?, started_at = ? WHERE id = ?`, runLive, c.now.UnixMilli(),
			jobs[i].Run); err != nil {
			return nil, err
		}
		c.touched[jobs[i].Thread] = true
		if err := c.address(&jobs[i], address); err != nil {
			return nil, err
		}
	}
	return jobs, err
}

// live returns the jobs of the runs that are live and not in hand: they were when the server was
// killed.
func (c *change) live(inHand map[string]bool, room int, address string) ([]Job, error) {
	rows, err := c.tx.Query(`SELECT run.id, thread.id, thread.tenant, task, run.resume, run.created_at FROM run
		JOIN thread ON thread.id = run.thread WHERE run.state = ? AND dispatched = 0`, runLive)
	if err != nil {
		return nil, err
	}
	all, err := scanJobs(rows)
	if err != nil {
		return nil, err
	}
	var jobs []Job
	for _, job := range all {
		if inHand[job.Run] || len(jobs) == room {
			continue
		}
		job.Again = true
		if err := c.address(&job, address); err != nil {
			return nil, err
		}
		jobs = append(jobs, job)
	}
	return jobs, nil
}

// address gives a job the addresses of its run. A run that is started again gets new ones, and the
// earlier ones stay valid: its first process may be alive.
func (c *change) address(job *Job, address string) error {
	token, err := c.grant(job.Tenant, job.Run, "")
	job.CallbackURL = fmt.Sprintf("%s/api/callback/%s/%s", address, job.Tenant, token)
	job.InboxURL = fmt.Sprintf("%s/api/inbox/%s/%s/%s", address, job.Tenant, job.Run, token)
	return err
}

// hidden is a text without a token.
func hidden(text, token string) string {
	if token == "" {
		return text
	}
	return strings.ReplaceAll(text, token, "[REDACTED:bridge:token]")
}

// token is that of the addresses of a run.
func (j Job) token() string { return j.CallbackURL[strings.LastIndex(j.CallbackURL, "/")+1:] }

func scanJobs(rows *sql.Rows) ([]Job, error) {
	defer rows.Close()
	var jobs []Job
	for rows.Next() {
		var job Job
		var resume sql.NullString
		var queued int64
		if err := rows.Scan(&job.Run, &job.Thread, &job.Tenant, &job.Task, &resume, &queued); err != nil {
			return nil, err
		}
		job.QueuedAt = time.UnixMilli(queued)
		if resume.Valid {
			if err := json.Unmarshal([]byte(resume.String), &job.Resume); err != nil {
				return nil, err
			}
		}
		jobs = append(jobs, job)
	}
	return jobs, rows.Err()
}
