package server

import (
	"cmp"
	"net/http"
	"strconv"

	"github.com/fit-eval/fit/internal/harness"
)

// Person returns the tenant and the name of the person who holds a token, and whether there is one.
func (s *Server) Person(token string) (tenant, name string, known bool) {
	hash := hashed(token)
	if who, known := s.people.Load(hash); known { // a token is one for good
		who := who.(person)
		return who.tenant, who.name, true
	}
	err := s.store.reader.One(`SELECT tenant, person FROM token WHERE hash = ? AND person IS NOT NULL`,
		[]any{hash}, &tenant, &name)
	if err != nil {
		return "", "", false
	}
	s.people.Store(hash, person{tenant, name})
	return tenant, name, true
}

// Thread returns a thread of a tenant.
func (s *Server) Thread(tenant, thread string) (Thread, error) {
	found, err := s.threads(tenant, thread)
	if err != nil || len(found) == 0 {
		return Thread{}, orNoThread(err)
	}
	return found[0], nil
}

// HasRun reports whether a run is one of a tenant's.
func (s *Server) HasRun(tenant, run string) bool {
	var is int
	return s.store.reader.One(`SELECT 1 FROM run JOIN thread ON thread.id = run.thread
		WHERE run.id = ? AND thread.tenant = ?`, []any{run, tenant}, &is) == nil
}

// Watch calls tell with the threads that have changed, whenever some have, until stop is called.
// Changes wait for it, so it must not take long.
func (s *Server) Watch(tell func(threads map[string]bool)) (stop func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watchers++
	key := s.watchers
	s.watching[key] = tell
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.watching, key)
	}
}

// adjourn ends a thread on behalf of a person: the run that is live, or the recess.
func (s *Server) adjourn(r *http.Request, who person) (any, error) {
	thread, said := r.PathValue("thread"), who.name+" adjourned the discussion."
	var run string
	err := s.store.change(func(c *change) (err error) {
		if err := c.threadOf(who.tenant, thread); err != nil {
			return err
		}
		if run, err = c.liveRun(thread); err != nil {
			return err
		}
		if run != "" {
			return c.fail(run, harness.VerdictAdjourned, said)
		}
		ended, err := c.changed(`UPDATE thread SET state = ?, trigger = NULL, resume = NULL, due_at = NULL
			WHERE id = ? AND state <> ?`, stateAdjourned, thread, stateAdjourned)
		if err != nil {
			return err
		}
		if !ended {
			return &refusal{status: http.StatusConflict, message: "the thread is adjourned"}
		}
		n, err := c.add(thread, newPost{role: roleEnd, author: harness.VerdictAdjourned, body: said})
		return cmp.Or(err, c.report(thread, "post "+thread+" "+strconv.FormatInt(n, 10), said))
	})
	if err == nil && run != "" {
		s.interrupt(run)
	}
	return map[string]bool{"ok": true}, err
}
