package server

import (
	"net/http"
	"strings"
	"time"

	"github.com/fit-eval/fit/internal/bridge"
	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/internal/harness"
)

// person is who holds a token.
type person struct{ tenant, name string }

// person answers requests of people, who send their token as a bearer token.
func (s *Server) person(make func(*http.Request, person) (any, error)) http.HandlerFunc {
	return answer(func(r *http.Request) (any, error) {
		token, sent := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		tenant, name, known := s.Person(token)
		if !sent || !known {
			return nil, &refusal{
				status:  http.StatusUnauthorized,
				message: "a person's token is needed; fit bridge invite makes one",
			}
		}
		return make(r, person{tenant, name})
	})
}

func (s *Server) listThreads(_ *http.Request, who person) (any, error) {
	list, err := s.threads(who.tenant, "")
	return Threads{Person: who.name, Threads: list}, err
}

// Written is what a person posts. A thread that is opened has a title.
type Written struct {
	Title string `json:"title,omitempty"`
	Body  string `json:"body"`
	// Key recognises a post that is sent a second time, because the first one got no answer.
	Key string `json:"key,omitempty"`
}

func (w Written) by(who person) newPost {
	return newPost{
		role:   rolePerson,
		author: who.name,
		body:   w.Body,
		key:    w.Key,
	}
}

// Posted says where a post is.
type Posted struct {
	Thread string `json:"thread"`
	N      int64  `json:"n"` // 0 if it was there before
}

// written reads and checks what a person wrote.
func (s *Server) written(r *http.Request, who person) (w Written, err error) {
	if err := read(r, 8*maxPost, &w); err != nil { // JSON may write a character as six
		return w, err
	}
	if w.Body, err = text("the post", w.Body, maxPost); err != nil {
		return w, err
	}
	if len(w.Key) > 200 {
		return w, &refusal{status: http.StatusBadRequest, message: "the key is too long"}
	}
	if w.Key != "" {
		w.Key = who.name + "/" + w.Key
	}
	return w, s.limits.take(r.PathValue("thread"), who.tenant+"/"+who.name, time.Now())
}

func (s *Server) newThread(r *http.Request, who person) (any, error) {
	w, err := s.written(r, who)
	if err != nil {
		return nil, err
	}
	if w.Title == "" {
		w.Title, _, _ = strings.Cut(strings.TrimSpace(w.Body), "\n")
	}
	posted := Posted{}
	err = s.store.change(func(c *change) error {
		if w.Key != "" {
			found, err := c.one(`SELECT thread FROM post JOIN thread ON thread.id = post.thread
				WHERE key = ? AND n = 1 AND tenant = ?`, []any{"new/" + w.Key, who.tenant}, &posted.Thread)
			if err != nil || found {
				return err
			}
			w.Key = "new/" + w.Key
		}
		thread, err := c.openThread(who.tenant, display.CutRunes(w.Title, 120), nil)
		if err != nil {
			return err
		}
		posted.Thread = thread
		posted.N, err = c.say(thread, w.by(who))
		return err
	})
	return posted, err
}

func (s *Server) post(r *http.Request, who person) (any, error) {
	w, err := s.written(r, who)
	if err != nil {
		return nil, err
	}
	posted := Posted{Thread: r.PathValue("thread")}
	err = s.store.change(func(c *change) error {
		if err := c.threadOf(who.tenant, posted.Thread); err != nil {
			return err
		}
		posted.N, err = c.say(posted.Thread, w.by(who))
		return err
	})
	return posted, err
}

// View is a thread and a page of its posts.
type View struct {
	Thread Thread `json:"thread"`
	Posts  []Post `json:"posts"`
	// Doing is what the thread does now; a reader that names it waits for something else.
	Doing string `json:"doing"`
}

// showThread answers with a thread and its posts after a number. With wait it answers when there is
// something else than the reader knows: more posts, or another state.
func (s *Server) showThread(r *http.Request, who person) (any, error) {
	after, err := number(r, "after")
	if err != nil {
		return nil, err
	}
	known := r.URL.Query().Get("wait")
	timeout := time.NewTimer(bridge.LongPoll)
	defer timeout.Stop()
	for {
		changed := s.nextChange(r.PathValue("thread"))
		view, err := s.view(who.tenant, r.PathValue("thread"), after)
		if err != nil || known == "" || len(view.Posts) > 0 || view.Doing != known {
			return view, err
		}
		select {
		case <-changed:
		case <-timeout.C:
			return view, nil
		case <-r.Context().Done():
			return view, nil
		case <-s.closing:
			return view, nil
		}
	}
}

func (s *Server) view(tenant, thread string, after int64) (View, error) {
	found, err := s.Thread(tenant, thread)
	if err != nil {
		return View{}, err
	}
	posts, err := s.posts(thread, after)
	return View{found, posts, found.doing()}, err
}

func orNoThread(err error) error {
	if err != nil {
		return err
	}
	return errNoThread
}

// doing is the state of a thread with that of its last run, as readers name it to wait for another.
func (t Thread) doing() string {
	if len(t.Runs) == 0 {
		return t.State
	}
	last := t.Runs[len(t.Runs)-1]
	return t.State + "," + last.ID + "," + last.State
}

// pause suspends a thread on behalf of a person: its run stops where it is, and continues with the
// same conversations when somebody resumes it.
func (s *Server) pause(r *http.Request, who person) (any, error) {
	thread := r.PathValue("thread")
	run, err := s.act(thread, who, func(c *change, run string) error {
		if err := c.countTime(); err != nil {
			return err
		}
		paused, err := c.changed(`UPDATE run SET state = ? WHERE id = ? AND state <> ?`, runPaused, run, runPaused)
		if err != nil || !paused {
			return err
		}
		trigger := `{"kind":"` + harness.TriggerEscalationNeeded + `","signal":"a person resumes it"}`
		if err := c.exec(`UPDATE thread SET state = ?, trigger = ? WHERE id = ?`, stateRecessed, trigger,
			thread); err != nil {
			return err
		}
		_, err = c.add(thread, newPost{role: roleNotice, body: who.name + " suspended the discussion."})
		return err
	})
	if err == nil {
		s.interrupt(run)
	}
	return map[string]bool{"ok": true}, err
}

// stopRun ends the run of a thread.
func (s *Server) stopRun(r *http.Request, who person) (any, error) {
	run, err := s.act(r.PathValue("thread"), who, func(c *change, run string) error {
		return c.fail(run, "stopped", who.name+" stopped the discussion.")
	})
	if err == nil {
		s.interrupt(run)
	}
	return map[string]bool{"ok": true}, err
}

// act changes the run that is live in a thread.
func (s *Server) act(thread string, who person, apply func(c *change, run string) error) (run string, err error) {
	err = s.store.change(func(c *change) error {
		if err := c.threadOf(who.tenant, thread); err != nil {
			return err
		}
		if run, err = c.liveRun(thread); err != nil {
			return err
		}
		if run == "" {
			return &refusal{status: http.StatusConflict, message: "nobody is working in this thread"}
		}
		return apply(c, run)
	})
	return run, err
}

// resume ends a recess before its trigger.
func (s *Server) resume(r *http.Request, who person) (any, error) {
	thread := r.PathValue("thread")
	err := s.store.change(func(c *change) error {
		if err := c.threadOf(who.tenant, thread); err != nil {
			return err
		}
		if err := c.resume(thread); err != nil {
			return err
		}
		_, err := c.add(thread, newPost{role: roleNotice, body: who.name + " resumed the discussion."})
		return err
	})
	return map[string]bool{"ok": true}, err
}
