package server

import (
	"errors"
	"time"
)

// countTime counts how long the runs that are live have taken. It is called whenever something is
// due, and before people suspend a run.
func (c *change) countTime() error {
	now := c.now.UnixMilli()
	return c.exec(`INSERT INTO clock(run, used, since) SELECT id, 0, ? FROM run WHERE state = ?
		ON CONFLICT(run) DO UPDATE SET used = used + max(0, ? - since), since = ?`, now, runLive, now, now)
}

// restartClock counts the time of a run from now on: people have resumed it.
func (c *change) restartClock(thread string) error {
	return c.exec(`UPDATE clock SET since = ? WHERE run IN (SELECT id FROM run WHERE thread = ? AND state = ?)`,
		c.now.UnixMilli(), thread, runLive)
}

// restartClocks counts the time of all runs from now on: no server was up before.
func (c *change) restartClocks() error {
	return c.exec(`UPDATE clock SET since = ?`, c.now.UnixMilli())
}

// endLate ends runs whose end nobody has reported in time, and returns them.
func (c *change) endLate(limit time.Duration) ([]string, error) {
	rows, err := c.tx.Query(`SELECT id FROM run JOIN clock ON clock.run = run.id WHERE state = ? AND used > ?`,
		runLive, limit.Milliseconds())
	if err != nil {
		return nil, err
	}
	var late []string
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			return nil, errors.Join(err, rows.Close())
		}
		late = append(late, id)
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return nil, err
	}
	for _, id := range late {
		if err := c.fail(id, "failed", "The run did not report its end within "+limit.String()+"."); err != nil {
			return nil, err
		}
	}
	return late, nil
}
