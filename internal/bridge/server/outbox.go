package server

import (
	"context"
	"errors"
	"time"
)

// Channel is a place outside the bridge in which posts appear. What is to be sent is kept with the
// post, and leaves the outbox when the channel has it.
type Channel struct {
	// Name is that under which the outbox keeps what is to be sent.
	Name string
	// Everything sends the posts of all threads; otherwise only those of threads that were opened
	// in this channel, and not what was written there.
	Everything bool
	// Longest is how many characters the channel takes at a time; longer posts are sent in parts. 0
	// is no bound.
	Longest int
	// Pace is the time between two letters, and Settle that after which a letter whose sending was
	// interrupted is seen if it arrived.
	Pace, Settle time.Duration
	// Send delivers a letter. An error is a *SendError, or final.
	Send func(ctx context.Context, letter Letter) error
}

// Letter is a post on its way to a channel.
type Letter struct {
	// ID recognises the letter: it is the same whenever it is sent, and nobody guesses it.
	ID string
	// Again says that the letter may have arrived already: the bridge was killed while it was sent,
	// or the answer was lost.
	Again     bool
	WrittenAt time.Time
	// Place and Target are where the thread is in the channel, as it was told to Hear.
	Place, Target         string
	Tenant, Thread, Title string
	Post                  Post
	// Part is the number of this part of the post, from 1 to Parts.
	Part, Parts int
}

// SendError is the failure of a letter that another attempt may cure.
type SendError struct {
	Err error
	// After is when the channel asks to be asked again; 0 where it does not say.
	After time.Duration
	// Busy says that the channel takes nothing now, this letter or another, and that it has not
	// taken this one.
	Busy bool
}

func (e *SendError) Error() string { return e.Err.Error() }

func (e *SendError) Unwrap() error { return e.Err }

const (
	firstPause   = time.Second
	longestPause = 5 * time.Minute
	// mostTries is how often a letter is tried before the next ones of its thread pass it: for
	// three days.
	mostTries = 3 * 24 * 12
)

// mail puts a post into the outbox of every channel that it is for.
func (c *change) mail(thread string, n int64, p newPost) error {
	for _, channel := range c.channels {
		if p.channel == channel.Name {
			continue // it was written there
		}
		var is int
		found, err := c.one(`SELECT 1 FROM place WHERE thread = ? AND channel = ?`, []any{thread, channel.Name}, &is)
		if err != nil {
			return err
		}
		if !found && !channel.Everything {
			continue
		}
		for part := range parts(p.body, channel.Longest) {
			if err := c.exec(`INSERT INTO outbox(letter, channel, thread, n, part, at, not_before)
				VALUES(?, ?, ?, ?, ?, ?, 0)`, secret(), channel.Name, thread, n, part+1, c.now.UnixMilli()); err != nil {
				return err
			}
		}
		c.mailed = true
	}
	return nil
}

// parts cuts a text where lines end, if it can, so that no part has more characters than a limit.
func parts(text string, limit int) []string {
	var list []string
	for limit > 0 {
		count, cut, line := 0, -1, 0
		for i, r := range text {
			if count == limit {
				cut = i
				break
			}
			count++
			if r == '\n' {
				line = i + 1
			}
		}
		if cut < 0 {
			break
		}
		if line > cut/2 {
			cut = line
		}
		list = append(list, text[:cut])
		text = text[cut:]
	}
	return append(list, text)
}

// deliver sends what is in the outbox of a channel until the context ends: one letter at a time,
// those of one thread in their order.
func (s *Server) deliver(ctx context.Context, channel Channel, kick <-chan struct{}) {
	for ctx.Err() == nil {
		letter, rest, err := s.nextLetter(channel)
		if err != nil && !errors.Is(err, errClosed) {
			s.note("%s: %v", channel.Name, err)
		}
		wake := kick
		if letter != nil {
			rest, wake = max(channel.Pace, s.send(ctx, channel, *letter)), nil
		}
		timer := time.NewTimer(rest)
		select {
		case <-timer.C:
		case <-wake:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// nextLetter returns a letter that is due, or how long to wait for one. That it is being sent is on
// the disk before it is sent: whoever finds it there does not know whether it has arrived.
func (s *Server) nextLetter(channel Channel) (letter *Letter, rest time.Duration, err error) {
	rest = longestRest
	err = s.store.change(func(c *change) error {
		letter = nil
		var l Letter
		var at, due int64
		found, err := c.one(`SELECT letter, o.at, not_before, sending, thread.tenant, thread.id, thread.title, o.n,
			part, coalesce(place, ''), coalesce(target, '')
			FROM outbox o JOIN thread ON thread.id = o.thread
			LEFT JOIN place ON place.thread = o.thread AND place.channel = o.channel
			WHERE o.id IN (SELECT min(id) FROM outbox WHERE channel = ? AND refused IS NULL GROUP BY thread)
			ORDER BY max(not_before, ?), o.id LIMIT 1`, []any{channel.Name, c.now.UnixMilli()},
			&l.ID, &at, &due, &l.Again, &l.Tenant, &l.Thread, &l.Title, &l.Post.N, &l.Part, &l.Place, &l.Target)
		if err != nil || !found {
			return err
		}
		if wait := time.UnixMilli(due).Sub(c.now); wait > 0 {
			rest = min(rest, wait)
			return nil
		}
		post := &l.Post
		if _, err := c.one(`SELECT role, author, body, at, coalesce(run, '') FROM post WHERE thread = ? AND n = ?`,
			[]any{l.Thread, post.N}, &post.Role, &post.Author, &post.Body, &post.At, &post.Run); err != nil {
			return err
		}
		texts := parts(l.Post.Body, channel.Longest)
		l.WrittenAt, l.Parts = time.UnixMilli(at), len(texts)
		l.Post.Body = ""
		if l.Part <= len(texts) { // the post may have been edited since
			l.Post.Body = texts[l.Part-1]
		}
		letter = &l
		return c.exec(`UPDATE outbox SET sending = 1, not_before = ? WHERE letter = ?`,
			c.now.Add(channel.Settle).UnixMilli(), l.ID)
	})
	return letter, rest, err
}

// send sends a letter, keeps what came of it, and returns how long the channel is to be left alone.
func (s *Server) send(ctx context.Context, channel Channel, letter Letter) time.Duration {
	failure := channel.Send(ctx, letter)
	if ctx.Err() != nil {
		return 0 // the next server looks whether it arrived
	}
	rest := time.Duration(0)
	err := s.store.change(func(c *change) error {
		if failure == nil {
			return c.exec(`DELETE FROM outbox WHERE letter = ?`, letter.ID)
		}
		var tries int
		if _, err := c.one(`SELECT tries FROM outbox WHERE letter = ?`, []any{letter.ID}, &tries); err != nil {
			return err
		}
		var later *SendError
		if !errors.As(failure, &later) || tries >= mostTries {
			return c.exec(`UPDATE outbox SET refused = ? WHERE letter = ?`, failure.Error(), letter.ID)
		}
		pause := max(min(firstPause<<min(tries, 20), longestPause), later.After)
		unsure := letter.Again || !later.Busy
		if unsure {
			pause = max(pause, channel.Settle)
		}
		if later.Busy {
			rest = pause
		}
		return c.exec(`UPDATE outbox SET tries = tries + 1, sending = ?, not_before = ? WHERE letter = ?`, unsure,
			c.now.Add(pause).UnixMilli(), letter.ID)
	})
	switch {
	case err != nil:
		s.note("%s: %v", channel.Name, err)
	case failure != nil:
		s.note("%s: %s, post %d: %v", channel.Name, letter.Thread, letter.Post.N, failure)
	}
	return rest
}

// tryRefused gives what channels refused another try.
func (c *change) tryRefused() error {
	return c.exec(`UPDATE outbox SET refused = NULL, tries = 0, not_before = 0 WHERE refused IS NOT NULL`)
}
