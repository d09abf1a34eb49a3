package server

import (
	"context"
	"database/sql"
	"errors"
	"time"
)

// longestRest is how long the server rests when it knows of nothing that will be due: clocks
// change.
const longestRest = 10 * time.Second

// Serve starts what is due until the context ends, and returns when no run is in hand.
func (s *Server) Serve(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer s.work.Wait()
	defer cancel()
	for i, channel := range s.cfg.Channels {
		s.work.Go(func() { s.deliver(ctx, channel, s.mail[i]) })
	}
	for {
		next, err := s.startDue(ctx)
		if err != nil {
			return err
		}
		rest := time.NewTimer(next)
		select {
		case <-rest.C:
		case <-s.kick:
		case <-ctx.Done():
			rest.Stop()
			return nil
		}
		rest.Stop()
	}
}

// startDue resumes recesses and starts runs, and returns when it has to be called again.
func (s *Server) startDue(ctx context.Context) (time.Duration, error) {
	s.mu.Lock()
	inHand := map[string]bool{}
	for run := range s.stop {
		inHand[run] = true
	}
	s.mu.Unlock()
	var jobs []Job
	var late []string
	var next sql.NullInt64
	var now time.Time
	err := s.store.change(func(c *change) error {
		now = c.now
		if err := c.resumeDue(); err != nil {
			return err
		}
		err := c.countTime()
		if err != nil {
			return err
		}
		if late, err = c.endLate(s.cfg.RunLimit); err != nil {
			return err
		}
		room := s.cfg.MaxRuns - len(inHand)
		if jobs, err = c.live(inHand, room, s.cfg.Address); err != nil {
			return err
		}
		started, err := c.startDue(room-len(jobs), s.cfg.Address)
		if err != nil {
			return err
		}
		jobs = append(jobs, started...)
		if err := c.countTime(); err != nil { // of those that have begun
			return err
		}
		_, err = c.one(`SELECT min(at) FROM (SELECT min(due_at) AS at FROM thread WHERE due_at IS NOT NULL UNION ALL
			SELECT min(not_before) FROM run WHERE state = ? AND not_before > ?)`,
			[]any{runQueued, c.now.UnixMilli()}, &next)
		return err
	})
	if err != nil {
		return 0, err
	}
	for _, run := range late {
		s.interrupt(run)
	}
	for _, job := range jobs {
		s.hold(ctx, job)
	}
	rest := longestRest
	if next.Valid {
		rest = min(rest, max(0, time.UnixMilli(next.Int64).Sub(now)))
	}
	return rest, nil
}

// hold dispatches a run and sees to its end.
func (s *Server) hold(ctx context.Context, job Job) {
	ctx, cancel := context.WithCancel(ctx)
	s.mu.Lock()
	s.stop[job.Run] = cancel
	s.mu.Unlock()
	s.work.Go(func() {
		defer cancel()
		err := s.cfg.Dispatch(ctx, job)
		if ctx.Err() == nil {
			err = s.store.change(func(c *change) error {
				if err != nil {
					why := hidden(err.Error(), job.token())
					s.note("%s: %s", job.Run, why)
					return c.fail(job.Run, "failed", why)
				}
				return c.exec(`UPDATE run SET dispatched = 1 WHERE id = ?`, job.Run)
			})
			if err != nil && !errors.Is(err, errClosed) {
				s.note("%s: %v", job.Run, err)
			}
		}
		if ctx.Err() != nil {
			s.charge(job)
		}
		s.mu.Lock()
		delete(s.stop, job.Run)
		s.mu.Unlock()
		wake(s.kick)
	})
}

// charge keeps what a run has cost that was interrupted: it has not reported its end.
func (s *Server) charge(job Job) {
	if s.cfg.Spent == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), chargeLimit)
	defer cancel()
	spent := s.cfg.Spent(ctx, job)
	if err := s.store.change(func(c *change) error { return c.charge(job.Thread, job.Run, spent) }); err != nil {
		s.note("%s: %v", job.Run, err)
	}
}

// chargeLimit is how long it may take to find out what a run has cost.
const chargeLimit = 10 * time.Second

func (c *change) charge(thread, run string, spent float64) error {
	c.touched[thread] = true
	return c.exec(`UPDATE run SET cost_usd = max(coalesce(cost_usd, 0), ?) WHERE id = ?`, spent, run)
}

// interrupt stops the process of a run, if it has one here.
func (s *Server) interrupt(run string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if cancel := s.stop[run]; cancel != nil {
		cancel()
	}
}
