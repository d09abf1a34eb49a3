package server

import (
	"math"
	"strings"
	"time"

	"github.com/fit-eval/fit/internal/display"
)

// Heard is what a person wrote in a channel.
type Heard struct {
	Tenant, Channel string
	// Place names where it was written, and Target is what the channel needs to write there.
	Place, Target string
	// Opens says that it opens a thread if there is none; Title is that of the thread, and Before
	// what was written there earlier, which starts nothing.
	Opens  bool
	Title  string
	Before *Earlier
	// Author, Body and Key are those of the post. What is heard again with the same key is the same
	// post; if Version is a later time, it was edited.
	Author, Body, Key string
	Version           time.Time
	// Edited says that it is not new, and Deleted that it is there no longer. What was not heard
	// when it was written starts nothing.
	Edited, Deleted bool
}

// Earlier is what was written in a place before somebody opened its thread.
type Earlier struct{ Author, Body, Key string }

// deletedBody is what is left of a post whose original was deleted.
const deletedBody = "(deleted)"

// Hear takes what a person wrote in a channel. It returns the thread, or none if it concerns none,
// and whether it was known. When it returns, it is on the disk.
func (s *Server) Hear(h Heard) (thread string, known bool, err error) {
	if !h.Deleted {
		if h.Body, err = text("the post", h.Body, maxPost); err != nil {
			return "", false, err
		}
	}
	err = s.store.change(func(c *change) (err error) {
		thread, known, err = c.hear(h)
		return err
	})
	return thread, known, err
}

func (c *change) hear(h Heard) (thread string, known bool, err error) {
	if _, err := c.one(`SELECT thread FROM place WHERE channel = ? AND place = ?`, []any{h.Channel, h.Place},
		&thread); err != nil {
		return "", false, err
	}
	var n, version int64
	if known, err = c.one(`SELECT n, version FROM heard WHERE thread = ? AND key = ?`, []any{thread, h.Key},
		&n, &version); err != nil {
		return thread, known, err
	}
	switch {
	case known:
		return thread, known, c.edit(thread, n, version, h)
	case h.Deleted, h.Edited:
		return "", false, c.remember(h)
	case thread == "" && !h.Opens:
		return "", false, nil
	}
	if gone, err := c.recall(&h); err != nil || gone {
		return "", false, err
	}
	if thread == "" {
		if thread, err = c.openPlace(h); err != nil {
			return thread, false, err
		}
	}
	n, err = c.say(thread, newPost{
		role:    rolePerson,
		author:  h.Author,
		body:    h.Body,
		channel: h.Channel,
	})
	if err != nil {
		return thread, false, err
	}
	return thread, false, c.keep(thread, n, h.Key, h.Version)
}

func (c *change) keep(thread string, n int64, key string, version time.Time) error {
	return c.exec(`INSERT INTO heard(thread, key, n, version) VALUES(?, ?, ?, ?)`, thread, key, n, version.UnixMilli())
}

// openPlace opens the thread of a place.
func (c *change) openPlace(h Heard) (string, error) {
	title := strings.TrimSpace(h.Title)
	if title == "" {
		title, _, _ = strings.Cut(strings.TrimSpace(h.Body), "\n")
	}
	thread, err := c.openThread(h.Tenant, display.CutRunes(title, 120), nil)
	if err != nil {
		return "", err
	}
	if err := c.exec(`INSERT INTO place(thread, channel, place, target) VALUES(?, ?, ?, ?)`, thread, h.Channel, h.Place,
		h.Target); err != nil || h.Before == nil {
		return thread, err
	}
	n, err := c.add(thread, newPost{
		role:    rolePerson,
		author:  h.Before.Author,
		body:    h.Before.Body,
		channel: h.Channel,
	})
	if err != nil {
		return thread, err
	}
	return thread, c.keep(thread, n, h.Before.Key, time.UnixMilli(0))
}

// remember keeps the change of a text that was not heard when it was written: that may be
// delivered later.
func (c *change) remember(h Heard) error {
	version := h.Version.UnixMilli()
	if h.Deleted {
		version = math.MaxInt64
	}
	return c.exec(`INSERT INTO unheard(channel, key, version, body) VALUES(?, ?, ?, ?)
		ON CONFLICT DO UPDATE SET version = excluded.version, body = excluded.body
		WHERE excluded.version > version`, h.Channel, h.Key, version, h.Body)
}

// recall brings a text up to date that was changed before it was heard, and reports whether it is
// gone.
func (c *change) recall(h *Heard) (gone bool, err error) {
	var version int64
	var body string
	changed, err := c.one(`SELECT version, body FROM unheard WHERE channel = ? AND key = ?`,
		[]any{h.Channel, h.Key}, &version, &body)
	if err != nil || !changed || version <= h.Version.UnixMilli() {
		return false, err
	}
	if version == math.MaxInt64 {
		return true, nil
	}
	h.Body, h.Version = body, time.UnixMilli(version)
	return false, nil
}

// edit changes a post for the runs to come. A run that is live may have read it, and is told.
func (c *change) edit(thread string, n, version int64, h Heard) error {
	next, body, tells := h.Version.UnixMilli(), h.Body, "I edited what I wrote. It now reads:\n\n"+h.Body
	if h.Deleted {
		next, body, tells = math.MaxInt64, deletedBody, "I deleted what I wrote earlier."
	}
	if next <= version {
		return nil
	}
	if err := c.exec(`UPDATE heard SET version = ? WHERE thread = ? AND key = ?`, next, thread, h.Key); err != nil {
		return err
	}
	changed, err := c.changed(`UPDATE post SET body = ? WHERE thread = ? AND n = ? AND body <> ?`, body, thread, n, body)
	if err != nil || !changed {
		return err
	}
	c.touched[thread] = true
	run, err := c.liveRun(thread)
	if err != nil || run == "" {
		return err
	}
	_, err = c.say(thread, newPost{
		role:    rolePerson,
		author:  h.Author,
		body:    tells,
		channel: h.Channel,
	})
	return err
}
