package server

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"time"
)

// schema is that of version 2. Threads are not a cache: a later version adds to it.
const schema = `
CREATE TABLE IF NOT EXISTS thread(
  id TEXT PRIMARY KEY, tenant TEXT NOT NULL, title TEXT NOT NULL, state TEXT NOT NULL, created_at INTEGER NOT NULL,
  depth INTEGER NOT NULL, asked_in TEXT, asked_by TEXT, asked_as TEXT,
  trigger TEXT, resume TEXT, seen INTEGER NOT NULL DEFAULT 0, due_at INTEGER,
  UNIQUE(asked_by, asked_as));
CREATE INDEX IF NOT EXISTS thread_due ON thread(due_at) WHERE due_at IS NOT NULL;
CREATE TABLE IF NOT EXISTS post(
  thread TEXT NOT NULL, n INTEGER NOT NULL, role TEXT NOT NULL, author TEXT NOT NULL, body TEXT NOT NULL,
  at INTEGER NOT NULL, run TEXT, seq INTEGER, key TEXT,
  PRIMARY KEY(thread, n), UNIQUE(run, seq), UNIQUE(thread, key));
CREATE INDEX IF NOT EXISTS post_key ON post(key) WHERE key IS NOT NULL;
CREATE TABLE IF NOT EXISTS run(
  id TEXT PRIMARY KEY, thread TEXT NOT NULL, state TEXT NOT NULL, task TEXT NOT NULL, resume TEXT,
  created_at INTEGER NOT NULL, not_before INTEGER NOT NULL, started_at INTEGER, dispatched INTEGER NOT NULL DEFAULT 0,
  ended_at INTEGER, verdict TEXT, cost_usd REAL, url TEXT);
CREATE INDEX IF NOT EXISTS run_state ON run(state, not_before);
CREATE INDEX IF NOT EXISTS run_created ON run(thread, created_at);
CREATE TABLE IF NOT EXISTS inbox(run TEXT NOT NULL, seq INTEGER NOT NULL, n INTEGER NOT NULL, PRIMARY KEY(run, seq));
CREATE TABLE IF NOT EXISTS token(
  hash TEXT PRIMARY KEY, tenant TEXT NOT NULL, run TEXT, person TEXT, created_at INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS place(
  thread TEXT NOT NULL, channel TEXT NOT NULL, place TEXT NOT NULL, target TEXT NOT NULL,
  PRIMARY KEY(thread, channel), UNIQUE(channel, place));
CREATE TABLE IF NOT EXISTS heard(
  thread TEXT NOT NULL, key TEXT NOT NULL, n INTEGER NOT NULL, version INTEGER NOT NULL, PRIMARY KEY(thread, key));
CREATE TABLE IF NOT EXISTS outbox(
  id INTEGER PRIMARY KEY AUTOINCREMENT, letter TEXT NOT NULL UNIQUE, channel TEXT NOT NULL, thread TEXT NOT NULL,
  n INTEGER NOT NULL, part INTEGER NOT NULL, at INTEGER NOT NULL, not_before INTEGER NOT NULL,
  sending INTEGER NOT NULL DEFAULT 0, tries INTEGER NOT NULL DEFAULT 0, refused TEXT);
CREATE INDEX IF NOT EXISTS outbox_next ON outbox(channel, thread, id) WHERE refused IS NULL;
CREATE TABLE IF NOT EXISTS unheard(
  channel TEXT NOT NULL, key TEXT NOT NULL, version INTEGER NOT NULL, body TEXT NOT NULL, PRIMARY KEY(channel, key));
CREATE TABLE IF NOT EXISTS clock(run TEXT PRIMARY KEY, used INTEGER NOT NULL, since INTEGER NOT NULL);
PRAGMA user_version = 2;`

// schemaVersion is that of the databases this program reads.
const schemaVersion = 2

// store is the database. Changes go through one writer, which commits all that wait together:
// a commit waits for the disk, whatever it holds.
type store struct {
	opened         []io.Closer
	writer, reader *statements
	changes        chan *pending
	closing, done  chan struct{}
	channels       []Channel
	now            func() time.Time
	committed      func(news)
}

type pending struct {
	apply func(*change) error
	err   chan error
}

// change is one transaction. Its news is announced when it is on the disk.
type change struct {
	tx       *statements
	now      time.Time
	channels []Channel
	news
}

// news is what changes have done.
type news struct {
	touched map[string]bool // threads
	due     bool            // something may have to be started
	mailed  bool            // something is in an outbox
}

// readers is how many queries read concurrently.
const readers = 4

// together is how many changes are committed at most at a time.
const together = 256

func openStore(dir string, channels []Channel, now func() time.Time, committed func(news)) (*store, error) {
	open := func(pragmas string) (*sql.DB, error) {
		address := url.URL{Scheme: "file", Opaque: (&url.URL{Path: filepath.Join(dir, "bridge.db")}).EscapedPath()}
		address.RawQuery = "_pragma=busy_timeout(30000)&_pragma=journal_mode(wal)&_pragma=synchronous(full)" + pragmas
		return sql.Open("sqlite", address.String())
	}
	if err := private(filepath.Join(dir, "bridge.db")); err != nil {
		return nil, err
	}
	writer, err := open("")
	if err != nil {
		return nil, err
	}
	writer.SetMaxOpenConns(1)
	var version int
	if err := writer.QueryRow("PRAGMA user_version").Scan(&version); err == nil && version > schemaVersion {
		_ = writer.Close()
		return nil, fmt.Errorf("its threads are of version %d; this program reads up to %d: use a newer fit",
			version, schemaVersion)
	}
	if _, err := writer.Exec(schema); err != nil {
		_ = writer.Close()
		return nil, err
	}
	reader, err := open("&_pragma=query_only(1)")
	if err != nil {
		_ = writer.Close()
		return nil, err
	}
	reader.SetMaxOpenConns(readers)
	reader.SetMaxIdleConns(readers)
	only, err := writer.Conn(context.Background())
	if err != nil {
		return nil, errors.Join(err, writer.Close(), reader.Close())
	}
	s := &store{
		opened: []io.Closer{only, writer, reader},
		writer: newStatements(func(query string) (*sql.Stmt, error) {
			return only.PrepareContext(context.Background(), query)
		}),
		reader:    newStatements(reader.Prepare),
		changes:   make(chan *pending, together),
		closing:   make(chan struct{}),
		done:      make(chan struct{}),
		channels:  channels,
		now:       now,
		committed: committed,
	}
	go s.write()
	return s, nil
}

// private makes the files of a database, which hold all posts, readable to their owner only. SQLite
// gives the mode of the first to those that it makes beside it.
func private(file string) error {
	made, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	switch {
	case err == nil:
		return made.Close()
	case !errors.Is(err, os.ErrExist): // a file that is there is not opened: closing it would end SQLite's locks
		return err
	}
	for _, beside := range []string{"", "-wal", "-shm"} {
		if err := os.Chmod(file+beside, 0o600); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

func (s *store) close() error {
	close(s.closing)
	<-s.done
	var err error
	for _, one := range s.opened {
		err = errors.Join(err, one.Close())
	}
	return err
}

var errClosed = errors.New("the bridge is stopping")

// change applies a change and returns when it is on the disk.
func (s *store) change(apply func(*change) error) error {
	p := &pending{apply, make(chan error, 1)}
	select {
	case s.changes <- p:
	case <-s.closing:
		return errClosed
	}
	select {
	case err := <-p.err:
		return err
	case <-s.done:
		select {
		case err := <-p.err:
			return err
		default:
			return errClosed
		}
	}
}

func (s *store) write() {
	defer close(s.done)
	for {
		select {
		case first := <-s.changes:
			s.commit(first)
		case <-s.closing:
			return
		}
	}
}

// commit applies a change, and those that wait behind it, in one transaction. A change that fails
// leaves nothing and does not disturb the others.
func (s *store) commit(first *pending) {
	batch := []*pending{first}
	for len(batch) < together {
		select {
		case next := <-s.changes:
			batch = append(batch, next)
			continue
		default:
		}
		break
	}
	results := make([]error, len(batch))
	all := news{touched: map[string]bool{}}
	err := s.transact(func() error {
		for i, p := range batch {
			c := &change{
				tx:       s.writer,
				now:      s.now(),
				channels: s.channels,
				news:     news{touched: map[string]bool{}},
			}
			if err := c.exec("SAVEPOINT one"); err != nil {
				return err
			}
			results[i] = p.apply(c)
			if results[i] != nil {
				if err := c.exec("ROLLBACK TO one"); err != nil {
					return err
				}
			} else {
				all.due, all.mailed = all.due || c.due, all.mailed || c.mailed
				maps.Copy(all.touched, c.touched)
			}
			if err := c.exec("RELEASE one"); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		s.committed(all)
	}
	for i, p := range batch {
		if err != nil {
			results[i] = fmt.Errorf("the threads cannot be written: %w", err)
		}
		p.err <- results[i]
	}
}

// transact applies a change in one transaction. The writer has one connection, which nobody else
// uses.
func (s *store) transact(apply func() error) error {
	if _, err := s.writer.Exec("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	err := apply()
	if err == nil {
		_, err = s.writer.Exec("COMMIT")
	}
	if err != nil {
		_, undone := s.writer.Exec("ROLLBACK")
		return errors.Join(err, undone)
	}
	return nil
}

func (c *change) exec(query string, args ...any) error {
	_, err := c.tx.Exec(query, args...)
	return err
}

// changed runs a statement and reports whether it changed a row.
func (c *change) changed(query string, args ...any) (bool, error) {
	result, err := c.tx.Exec(query, args...)
	if err != nil {
		return false, err
	}
	n, err := result.RowsAffected()
	return n > 0, err
}

// one reads a row, and reports whether there is one.
func (c *change) one(query string, args []any, into ...any) (bool, error) {
	err := c.tx.One(query, args, into...)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

// secret returns a token that nobody guesses.
func secret() string { return rand.Text() }

// newID returns the name of something new, which begins with its kind.
func newID(kind string) string { return kind + "-" + rand.Text()[:16] }

// hashed is what is kept of a token.
func hashed(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}
