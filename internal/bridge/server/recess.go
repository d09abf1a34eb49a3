package server

import (
	"cmp"
	"database/sql"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/fit-eval/fit/internal/bridge"
	"github.com/fit-eval/fit/internal/harness"
)

// checkEnd refuses the end of a run that says nothing which a thread could do. Sessions that are no
// discussions succeed or fail.
func checkEnd(t *bridge.Terminal) error {
	if t == nil {
		return nil
	}
	why := ""
	switch t.Verdict {
	case harness.VerdictSuccess:
		t.Verdict = harness.VerdictAdjourned
	case harness.VerdictFailure:
		t.Verdict = harness.VerdictFailed
	case harness.VerdictAdjourned, harness.VerdictFailed:
	case harness.VerdictRecessed:
		kinds := []string{harness.TriggerMissingInput, harness.TriggerElapsed, harness.TriggerEscalationNeeded}
		if t.Trigger == nil || !slices.Contains(kinds, t.Trigger.Kind) {
			why = "a recess needs a trigger of the kind " + strings.Join(kinds, ", ")
		}
	default:
		why = "the verdict must be adjourned, recessed or failed"
	}
	if t.CostUSD < 0 {
		why = "the cost must not be negative"
	}
	if why == "" {
		return nil
	}
	return &refusal{status: http.StatusBadRequest, message: why}
}

// suspend leaves a thread in recess until its trigger fires. What was said after the post seen is
// for the next run: it counts, however long the thread is.
func (c *change) suspend(thread, run string, t *bridge.Terminal, seen int64) error {
	resume := harness.ResumeContext{}
	if t.Resume != nil {
		resume = *t.Resume
	}
	resume.CorrelationID = run
	resumed, err := json.Marshal(resume)
	if err != nil {
		return err
	}
	var due sql.NullInt64
	trigger := t.Trigger
	if trigger.Kind == harness.TriggerElapsed {
		wait, err := trigger.Wait()
		if err != nil { // a run of another program: nobody could wait for it
			trigger = &harness.Trigger{Kind: harness.TriggerEscalationNeeded, Signal: err.Error()}
			if _, err := c.add(thread, newPost{
				role: roleNotice,
				body: err.Error() + ": the recess waits for a post instead.",
			}); err != nil {
				return err
			}
		} else {
			due = sql.NullInt64{Int64: c.now.Add(wait).UnixMilli(), Valid: true}
		}
	}
	c.due = true
	kept, err := json.Marshal(trigger)
	if err != nil {
		return err
	}
	if err := c.exec(`UPDATE thread SET state = ?, trigger = ?, resume = ?, seen = ?, due_at = ? WHERE id = ?`,
		stateRecessed, string(kept), string(resumed), seen, due, thread); err != nil {
		return err
	}
	return c.heard(thread)
}

// heard resumes a thread in recess if what it waits for has been said.
func (c *change) heard(thread string) error {
	var kept string
	var seen, people, all int
	found, err := c.one(`SELECT trigger, seen FROM thread WHERE id = ? AND state = ?`, []any{thread, stateRecessed},
		&kept, &seen)
	if err != nil || !found {
		return err
	}
	if _, err := c.one(`SELECT count(*) FILTER (WHERE role = ?), count(*) FROM post
		WHERE thread = ? AND n > ? AND role IN (?, ?)`,
		[]any{rolePerson, thread, seen, rolePerson, roleOutcome}, &people, &all); err != nil {
		return err
	}
	var trigger harness.Trigger
	if err := json.Unmarshal([]byte(kept), &trigger); err != nil {
		return err
	}
	switch {
	case trigger.Kind == harness.TriggerMissingInput && all >= max(trigger.Replies, 1),
		trigger.Kind == harness.TriggerEscalationNeeded && people > 0:
		return c.resume(thread)
	}
	return nil
}

// resume ends the recess of a thread: it queues a run with the state of the last one and what was
// said since. A run that people suspended continues.
func (c *change) resume(thread string) error {
	var kept sql.NullString
	var seen int64
	found, err := c.one(`SELECT resume, seen FROM thread WHERE id = ? AND state = ?`, []any{thread, stateRecessed},
		&kept, &seen)
	switch {
	case err != nil:
		return err
	case !found:
		return &refusal{status: http.StatusConflict, message: "the thread is not in recess"}
	}
	if err := c.exec(`UPDATE thread SET state = ?, trigger = NULL, resume = NULL, due_at = NULL WHERE id = ?`,
		stateOpen, thread); err != nil {
		return err
	}
	c.touched[thread], c.due = true, true
	continued, err := c.changed(`UPDATE run SET state = ? WHERE thread = ? AND state = ?`, runLive, thread, runPaused)
	if err != nil || continued {
		return cmp.Or(err, c.restartClock(thread))
	}
	var resume harness.ResumeContext
	if err := json.Unmarshal([]byte(kept.String), &resume); err != nil {
		return err
	}
	if resume.HistorySince, err = c.since(thread, seen); err != nil {
		return err
	}
	return c.queue(thread, "Continue.", &resume)
}

// since returns what people said after a post.
func (c *change) since(thread string, seen int64) ([]harness.HistoryEntry, error) {
	rows, err := c.tx.Query(`SELECT author, body FROM post WHERE thread = ? AND n > ? AND role IN (?, ?) ORDER BY n`,
		thread, seen, rolePerson, roleOutcome)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var list []harness.HistoryEntry
	for rows.Next() {
		entry := harness.HistoryEntry{Role: "user"}
		if err := rows.Scan(&entry.Author, &entry.Text); err != nil {
			return nil, err
		}
		list = append(list, entry)
	}
	return list, rows.Err()
}

// resumeDue resumes the threads whose time has passed.
func (c *change) resumeDue() error {
	rows, err := c.tx.Query(`SELECT id FROM thread WHERE due_at <= ?`, c.now.UnixMilli())
	if err != nil {
		return err
	}
	defer rows.Close()
	var due []string
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			return err
		}
		due = append(due, id)
	}
	if err := rows.Err(); err != nil {
		return err
	}
	_ = rows.Close()
	for _, id := range due {
		if err := c.resume(id); err != nil {
			return fmt.Errorf("resume %s: %w", id, err)
		}
	}
	return nil
}
