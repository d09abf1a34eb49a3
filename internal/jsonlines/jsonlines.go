// Package jsonlines handles files of appended JSON lines: one writer at a time, a check of the end
// for what a killed writer left, and lines that are written whole or not at all.
package jsonlines

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// ErrLocked is returned when another process has the lock of a file.
var ErrLocked = errors.New("another process is writing it")

// Lock takes the exclusive advisory lock of a file. The kernel releases it when the process ends,
// however it ends.
func Lock(file *os.File) error {
	for {
		err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EWOULDBLOCK):
			return ErrLocked
		default:
			return err
		}
	}
}

// lockInterval is how often LockWait looks.
const lockInterval = 20 * time.Millisecond

// LockWait is Lock, but waits for the lock until the context ends.
func LockWait(ctx context.Context, file *os.File) error {
	ticker := time.NewTicker(lockInterval)
	defer ticker.Stop()
	for {
		err := Lock(file)
		if !errors.Is(err, ErrLocked) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", err, ctx.Err())
		case <-ticker.C:
		}
	}
}

// LockFile opens a file, creating it if necessary, and waits for its lock until the context ends.
// The function that it returns releases the lock.
func LockFile(ctx context.Context, name string) (unlock func(), err error) {
	file, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := LockWait(ctx, file); err != nil {
		_ = file.Close()
		return nil, err
	}
	return func() { _ = file.Close() }, nil
}

// firstLook is how much of a file's end is read at first.
const firstLook = 64 << 10

// Tail reads the end of a file and passes it to look, more and more of it until look has found what
// it wants or the whole file was read.
func Tail(file io.ReaderAt, size int64, look func(end []byte) (found bool)) error {
	for window := int64(firstLook); size > 0; window *= 8 {
		start := max(0, size-window)
		end := make([]byte, size-start)
		if _, err := file.ReadAt(end, start); err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if look(end) || start == 0 {
			return nil
		}
	}
	return nil
}

// Append adds one line, given without its line break, and syncs the file. An unfinished line before
// it is ended first. If that fails the file is as it was: half a line would not be a record of
// anything.
func Append(file *os.File, line []byte) error {
	size, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	whole := make([]byte, 0, len(line)+2)
	if err := Tail(file, size, func(end []byte) bool {
		if end[len(end)-1] != '\n' {
			whole = append(whole, '\n')
		}
		return true
	}); err != nil {
		return err
	}
	_, err = file.Write(append(append(whole, line...), '\n'))
	if err == nil {
		err = file.Sync()
	}
	if err != nil {
		return errors.Join(err, file.Truncate(size))
	}
	return nil
}
