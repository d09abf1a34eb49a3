package ledger

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/fit-eval/fit/internal/jsonlines"
	"github.com/fit-eval/fit/redact"
)

// ErrLocked is returned when another process is writing the same ledger.
var ErrLocked = jsonlines.ErrLocked

// Config says how a Writer writes.
type Config struct {
	// Experiment identifies what the records belong to; the chain begins with it.
	Experiment string
	// Redactor takes secrets out of every field of every record; nil writes them as they are.
	Redactor *redact.Redactor
	// Now returns the time in epoch milliseconds; nil means the system's clock.
	Now func() int64
	// Key signs the head of the ledger with every record; nil leaves it unsigned. A ledger with
	// records that it has not signed stays unsigned, as their author is unknown, and so does a
	// ledger that lacks records it has signed.
	Key *SigningKey
	// NoSync leaves out the sync after every record, for many that can be written again.
	NoSync bool
}

// Writer appends records to a ledger. It is safe for use from many goroutines.
type Writer struct {
	mu   sync.Mutex
	file *os.File
	path string
	cfg  Config
	head string
	// first is the hash of the first line, which identifies the ledger to the key.
	first string
	size  int64
	plan  string // the digest of the plan that the records belong to; empty if it is not known
	err   error
	seen  map[Key]bool
}

// Open opens a ledger for appending, creating it if need be, and hands every record that is already
// there to visit (which may be nil). A ledger that does not verify is refused with a *Damage; a
// torn end is recovered: its bytes stay, and a line that vouches for them is added. A second writer
// gets ErrLocked.
func Open(path string, cfg Config, visit func(*Record) error) (*Writer, error) {
	if cfg.Now == nil {
		cfg.Now = func() int64 { return time.Now().UnixMilli() }
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open ledger: %w", err)
	}
	w := &Writer{
		file: file,
		path: path,
		cfg:  cfg,
		head: genesis(cfg.Experiment),
		seen: map[Key]bool{},
	}
	if err := jsonlines.Lock(file); err != nil {
		return nil, errors.Join(fmt.Errorf("open ledger %s: %w", path, err), file.Close())
	}
	if err := w.takeOver(visit); err != nil {
		return nil, errors.Join(fmt.Errorf("open ledger %s: %w", path, err), file.Close())
	}
	return w, nil
}

// takeOver reads what is there and recovers a torn end.
func (w *Writer) takeOver(visit func(*Record) error) error {
	contents := &Contents{noted: readNote(w.path)}
	err := contents.scan(w.file, func(r *Record) error {
		if r.Experiment != w.cfg.Experiment {
			return fmt.Errorf("it belongs to experiment %s, not to %s", r.Experiment, w.cfg.Experiment)
		}
		w.seen[r.Key()] = true
		if visit != nil {
			return visit(r)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if contents.Head != "" {
		w.head = contents.Head
	}
	if w.size, err = w.file.Seek(0, io.SeekEnd); err != nil {
		return err
	}
	torn, err := w.tornEnd()
	if err != nil {
		return err
	}
	if len(torn) > 0 {
		if err := w.recover(torn); err != nil {
			return err
		}
		if contents, err = w.reread(); err != nil { // the recovery vouches for the torn bytes
			return err
		}
	}
	contents.checkNote()
	if err := contents.Damage(w.path); err != nil {
		return err
	}
	if key := w.cfg.Key; key != nil && contents.records > 0 && (!key.Signed(contents) || key.Older(contents)) {
		w.cfg.Key = nil
	}
	w.first, w.plan = contents.first, contents.Plan()
	return nil
}

// Bind notes the digest of the plan that the records belong to, so that a change of the plan is
// found like one of the records.
func (w *Writer) Bind(plan string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.plan = plan
	if w.cfg.Key == nil { // Close notes it
		return nil
	}
	return w.note()
}

// Signs reports whether the writer signs the ledger: it has a key, and the records that were there
// are those that the key has signed, up to the last.
func (w *Writer) Signs() bool { return w.cfg.Key != nil }

func (w *Writer) reread() (*Contents, error) {
	contents := &Contents{noted: readNote(w.path)}
	return contents, contents.scan(io.NewSectionReader(w.file, 0, w.size), func(*Record) error { return nil })
}

// tornEnd returns the bytes after the last sealed line, a final line break left out. Before an
// unfinished last line there may be earlier torn bytes whose recovery was torn as well.
func (w *Writer) tornEnd() (torn []byte, err error) {
	err = jsonlines.Tail(w.file, w.size, func(end []byte) bool {
		sealed := lastSealed(end)
		torn = end[max(sealed, 0):]
		return sealed >= 0
	})
	return torn, err
}

// lastSealed returns the offset after the last whole sealed line, or -1.
func lastSealed(buf []byte) int {
	end := len(buf)
	for end > 0 {
		breakAt := bytes.LastIndexByte(buf[:end], '\n')
		if breakAt < 0 {
			return -1
		}
		lineStart := bytes.LastIndexByte(buf[:breakAt], '\n') + 1
		if _, intact, err := unseal(buf[lineStart:breakAt]); err == nil && intact {
			return breakAt + 1
		}
		end = breakAt
	}
	return -1
}

// recover ends the torn bytes with a line break and vouches for them. A record that only lacks its
// line break is whole and needs only that.
func (w *Writer) recover(torn []byte) error {
	// The last line may also be the whole recovery of the bytes before it.
	last := torn[bytes.LastIndexByte(torn, '\n')+1:]
	if found, intact, err := unseal(last); err == nil && intact {
		w.head = found.hash
		return w.write([]byte("\n"))
	}
	if torn[len(torn)-1] != '\n' {
		torn = append(bytes.Clone(torn), '\n')
		if err := w.write([]byte("\n")); err != nil {
			return err
		}
	}
	note := recovery{Recovered: tornBytes{Bytes: len(torn), SHA256: digest(torn), AtMs: w.cfg.Now()}}
	line, hash, err := seal(note, w.head, nil)
	if err != nil {
		return err
	}
	if err := w.write(append(line, '\n')); err != nil {
		return err
	}
	w.head = hash
	return nil
}

// ErrInvalid is returned for a record whose content is not valid.
var ErrInvalid = errors.New("the record is not valid")

// Append seals a record and makes it durable: it fills in Version, Experiment, Prev and Hash, and
// returns once the line is on disk. After an error of the file every further call returns that
// error. A second record of the same attempt is refused.
func (w *Writer) Append(r *Record) error {
	r.Version, r.Experiment, r.Prev, r.Hash = Version, w.cfg.Experiment, "", ""
	if err := r.Validate(); err != nil {
		return fmt.Errorf("append to ledger: %w: %w", ErrInvalid, err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return w.err
	}
	if w.seen[r.Key()] {
		return fmt.Errorf("append to ledger: attempt %s is already recorded", r.Key())
	}
	line, hash, err := seal(r, w.head, w.cfg.Redactor)
	if err != nil {
		return fmt.Errorf("append to ledger: %w", err)
	}
	line = append(line, '\n')
	if w.cfg.Key != nil {
		err = w.sign(note{
			Head:      w.head,
			Bytes:     w.size,
			Next:      hash,
			NextBytes: w.size + int64(len(line)),
		})
	}
	if err == nil {
		err = w.write(line)
	}
	if err != nil {
		w.err = fmt.Errorf("append to ledger: %w", err)
		return w.err
	}
	w.first = cmp.Or(w.first, hash)
	if w.cfg.Key != nil {
		w.cfg.Key.remember(w.path, w.first, hash)
	}
	r.Prev, r.Hash = w.head, hash
	w.head = hash
	w.seen[r.Key()] = true
	return nil
}

func (w *Writer) sign(n note) error {
	n.Plan = w.plan
	n.sign(w.cfg.Key)
	return writeNote(w.path, n)
}

// note writes the head and the length beside the ledger. A note that says the same is left alone:
// it may be signed.
func (w *Writer) note() error {
	if old := readNote(w.path); w.cfg.Key == nil && old != nil && old.Head == w.head && old.Bytes == w.size &&
		(old.Key != "" || old.Plan == w.plan) {
		return nil
	}
	return w.sign(note{Head: w.head, Bytes: w.size})
}

func (w *Writer) write(line []byte) error {
	n, err := w.file.Write(line)
	w.size += int64(n)
	if err != nil || w.cfg.NoSync {
		return err
	}
	return w.file.Sync()
}

// Close notes the head of the ledger beside it and gives up the lock.
func (w *Writer) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.file == nil {
		return nil
	}
	err := errors.Join(w.err, w.note(), w.file.Close())
	w.file = nil
	return err
}
