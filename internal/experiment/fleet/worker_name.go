package fleet

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/fit-eval/fit/internal/jsonlines"
	"github.com/fit-eval/fit/internal/scratch"
)

// workerName returns a name in the form of a valid key.
func workerName(name, host string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' {
			return r
		}
		return '-'
	}, cmp.Or(name, host))
}

// errTaken is returned for a name that another worker has.
var errTaken = errors.New("another worker has this name")

// takeName finds a name for the worker and locks the directory of that name. A given name must be
// free; the host's name gets a number if another worker has it.
func (w *worker) takeName(ctx context.Context, name string, given bool) (func(), error) {
	for i := 1; i <= 1000; i++ {
		w.about.Name = name
		if i > 1 {
			w.about.Name = fmt.Sprintf("%s-%d", name, i)
		}
		file, err := w.lockName(ctx)
		switch {
		case err == nil:
			return func() { _ = file.Close() }, nil
		case !errors.Is(err, errTaken):
			return nil, err
		case given:
			return nil, fmt.Errorf("another worker of the fleet is called %s; choose another --name", name)
		}
	}
	return nil, errors.New("the fleet has a thousand workers of this host's name; set --name")
}

// lockName locks the worker's current name, if it is free on this machine and in the fleet.
func (w *worker) lockName(ctx context.Context) (_ *os.File, err error) {
	w.dir = filepath.Join(w.cfg.Dir, "workers", w.about.Name)
	if err := os.MkdirAll(w.dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the worker's directory: %w", err)
	}
	file, err := os.OpenFile(filepath.Join(w.dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = file.Close()
		}
	}()
	if err := jsonlines.Lock(file); errors.Is(err, jsonlines.ErrLocked) {
		return nil, errTaken
	} else if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(io.LimitReader(file, 64))
	if err != nil {
		return nil, err
	}
	if w.about.ID = string(content); !isNonce(w.about.ID) {
		w.about.ID = newNonce()
		if _, err := file.WriteAt([]byte(w.about.ID), 0); err != nil {
			return nil, fmt.Errorf("keep the worker's id: %w", err)
		}
	}
	if err := w.checkName(ctx); err != nil {
		return nil, err
	}
	// what an earlier process left belongs to attempts that are over
	if err := scratch.RemoveAll(filepath.Join(w.dir, "attempts")); err != nil {
		return nil, err
	}
	return file, os.MkdirAll(filepath.Join(w.dir, "empty"), 0o700)
}

// checkName makes sure that no worker of another directory or machine has the name, with this key.
// An announcement of an earlier process of this directory does not count.
func (w *worker) checkName(ctx context.Context) error {
	entry, err := w.cfg.Hub.get(ctx, workersBucket, w.announced())
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	var other Worker
	if json.Unmarshal(entry.Value(), &other) == nil && other.ID != w.about.ID {
		return errTaken
	}
	return nil
}
