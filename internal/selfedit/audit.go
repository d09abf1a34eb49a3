package selfedit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/internal/jsonlines"
	"golang.org/x/sys/unix"
)

// auditEvent is one line of the audit log, inside the envelope of a trace.
type auditEvent struct {
	Type string `json:"type"`
	// Outcome is "started" before the file changes, and then "written" or "rolled_back". After
	// "started" alone, the writer was killed: the hashes say which of the two contents is there.
	Outcome   string `json:"outcome"`
	Path      string `json:"path"`
	Root      string `json:"root"`
	OldSHA256 string `json:"oldSha256,omitempty"`
	NewSHA256 string `json:"newSha256"`
	Bytes     int64  `json:"bytes"`
	Rule      string `json:"rule"`
	Settings  string `json:"settings"`
	Branch    string `json:"branch"`
	Commit    string `json:"commit"`
	UID       int    `json:"uid"`
	Reason    string `json:"reason,omitempty"`
}

// auditLine is the envelope, its members in the order every trace has them.
type auditLine struct {
	Source string     `json:"source"`
	Seq    int64      `json:"seq"`
	TS     int64      `json:"ts"`
	Event  auditEvent `json:"event"`
}

// auditLog is the open and locked log. The lock also keeps two edits of one repository apart.
type auditLog struct{ file *os.File }

const (
	auditDir  = "fit"
	auditName = "selfedit.ndjson"
	// lockTimeout is how long an edit waits for another one.
	lockTimeout = 10 * time.Second
)

// openAuditLog opens <git dir>/fit/selfedit.ndjson for appending and locks it. It follows no link
// and accepts no file that has a second name, because both would let the log be written elsewhere.
func openAuditLog(ctx context.Context, gitDir string) (*auditLog, error) {
	opened, err := os.OpenFile(gitDir, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, fmt.Errorf("opening the audit log: %w", err)
	}
	git := &directory{file: opened}
	defer opened.Close()
	if err := unix.Mkdirat(git.fd(), auditDir, 0o777); err != nil && !errors.Is(err, unix.EEXIST) {
		return nil, fmt.Errorf("creating the audit log's directory in %s: %w", display.Name(gitDir), err)
	}
	dir, err := git.openDirectory(auditDir)
	if err != nil {
		return nil, fmt.Errorf("opening the audit log's directory in %s: %w", display.Name(gitDir), err)
	}
	defer dir.file.Close()
	flags := unix.O_RDWR | unix.O_APPEND | unix.O_CREAT | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_CLOEXEC
	fd, err := unix.Openat(dir.fd(), auditName, flags, 0o666)
	if err != nil {
		return nil, fmt.Errorf("opening the audit log in %s: %w", display.Name(gitDir), err)
	}
	log := &auditLog{file: os.NewFile(uintptr(fd), auditName)}
	if err := log.claim(ctx); err != nil {
		log.close()
		return nil, fmt.Errorf("opening the audit log in %s: %w", display.Name(gitDir), err)
	}
	return log, nil
}

func (l *auditLog) close() { l.file.Close() }

func (l *auditLog) claim(ctx context.Context) error {
	var stat unix.Stat_t
	if err := unix.Fstat(int(l.file.Fd()), &stat); err != nil {
		return err
	}
	if !isRegular(stat) || stat.Nlink != 1 {
		return errors.New("it is not a regular file with one name")
	}
	ctx, cancel := context.WithTimeout(ctx, lockTimeout)
	defer cancel()
	if err := jsonlines.LockWait(ctx, l.file); err != nil {
		return fmt.Errorf("another edit holds its lock: %w", err)
	}
	return nil
}

// append adds one line and syncs it, or leaves the log as it was.
func (l *auditLog) append(ts int64, event auditEvent) error {
	seq, err := l.next()
	if err != nil {
		return fmt.Errorf("reading the audit log: %w", err)
	}
	line, err := json.Marshal(auditLine{
		Source: "selfedit",
		Seq:    seq,
		TS:     ts,
		Event:  event,
	})
	if err == nil {
		err = jsonlines.Append(l.file, line)
	}
	if err != nil {
		return fmt.Errorf("writing the audit log: %w", err)
	}
	return nil
}

// next returns the number of the next line.
func (l *auditLog) next() (seq int64, err error) {
	size, err := l.file.Seek(0, io.SeekEnd)
	if err != nil {
		return 0, err
	}
	err = jsonlines.Tail(l.file, size, func(end []byte) bool {
		for _, text := range slices.Backward(bytes.Split(end, []byte("\n"))) {
			var line struct {
				Seq *int64 `json:"seq"`
			}
			if json.Unmarshal(text, &line) == nil && line.Seq != nil {
				seq = *line.Seq + 1
				return true
			}
		}
		return false
	})
	return seq, err
}
