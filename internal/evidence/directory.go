package evidence

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/fit-eval/fit/internal/atomicfile"
	"github.com/fit-eval/fit/internal/jsonenc"
	"github.com/fit-eval/fit/ledger"
	"github.com/fit-eval/fit/session"
)

const (
	// CacheDir is the part of a run directory that may be deleted at any time.
	CacheDir = "cache"
	// rules changes whenever the evidence about the same files changes, so that caches of older
	// programs are rebuilt.
	rules = 8
	// maxDiff bounds a diff that is read, and maxVerifyOutput what is read of a check's output,
	// from its end.
	maxDiff         = 64 << 20
	maxVerifyOutput = 64 << 10
)

// Directory is a run directory whose attempts are examined.
type Directory struct {
	Root     string
	Dialects session.Dialects
	Prices   session.Prices
	// NoCache neither reads nor writes the cache.
	NoCache bool

	reading sync.Once
	reviews Reviews // what people said about flags, once they were read
	broken  error
}

// reviewsOf returns what people said about the flags of an attempt.
func (d *Directory) reviewsOf(record *ledger.Record) (Reviews, error) {
	d.reading.Do(func() { d.reviews, d.broken = ReadReviews(d.Root) })
	return d.reviews.of(record), d.broken
}

// Run returns the evidence about an attempt: from the cache, if that was made from the same files,
// the same task and the same record, else from the trace and the diff. Files that the record names
// and that are missing or not what was recorded are an error. A cache that cannot be written is
// ignored.
func (d *Directory) Run(ctx context.Context, task Task, record *ledger.Record) (*Run, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	reviews, err := d.reviewsOf(record)
	if err != nil {
		return nil, err
	}
	key, err := d.key(&task, record, reviews)
	if err != nil {
		return nil, fmt.Errorf("evidence about %s: %w", cellName(record), err)
	}
	if run := d.cached(key); run != nil {
		return run, nil
	}
	diff, err := d.Diff(record)
	if err != nil {
		return nil, err
	}
	sources := Sources{
		Task:     task,
		Record:   record,
		Diff:     diff,
		Dialects: d.Dialects,
		Prices:   d.Prices,
		Reviews:  reviews,
	}
	file, err := d.open(record, record.AgentTracePath)
	if err != nil {
		return nil, fmt.Errorf("evidence about %s: %w", cellName(record), err)
	}
	if file != nil {
		defer file.Close()
		sources.Trace = cancellable{ctx, file}
	}
	run, err := Collect(sources)
	if err != nil && ctx.Err() != nil {
		return nil, err
	}
	if file != nil { // a changed file explains more than a read error
		if _, changed := file.digest(); changed != nil {
			return nil, fmt.Errorf("evidence about %s: %w", cellName(record), changed)
		}
	}
	if err != nil {
		return nil, err
	}
	d.keep(key, run)
	return run, nil
}

// Examined is an attempt with its evidence.
type Examined struct {
	Record *ledger.Record
	Task   Task
	Run    *Run
	// Problem says why there is no evidence; empty if there is.
	Problem string
}

// Examine returns the evidence about attempts, in their order. One whose files are missing or
// changed does not affect the others. A task that is not among tasks is not described.
func (d *Directory) Examine(ctx context.Context, tasks []Task, records []ledger.Record) ([]Examined, error) {
	known := map[string]Task{}
	for _, task := range tasks {
		known[task.ID] = task
	}
	examined := make([]Examined, len(records))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i := range records {
		record := &records[i]
		task, described := known[record.TaskID]
		if !described {
			task = Task{ID: record.TaskID, Cluster: record.Cluster}
		}
		group.Go(func() error {
			run, err := d.Run(ctx, task, record)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			examined[i] = Examined{Record: record, Task: task, Run: run}
			if err != nil {
				examined[i].Run = &Run{Key: record.Key(), Agent: record.Agent, Status: StatusEnvError}
				examined[i].Problem = err.Error()
			}
			return nil
		})
	}
	return examined, group.Wait()
}

// Verify compares the traces and diffs of attempts with what was recorded of them, and tells of
// each attempt in which one is missing or was changed.
func (d *Directory) Verify(ctx context.Context, records []ledger.Record, tell func(*ledger.Record, string)) error {
	for i := range records {
		record := &records[i]
		for _, name := range []string{record.AgentTracePath, record.DiffPath} {
			if err := ctx.Err(); err != nil {
				return err
			}
			if name != "" && vouched(record, name) == "" {
				continue
			}
			if _, err := d.digest(record, name); err != nil {
				tell(record, fmt.Sprintf("evidence about %s: %v", cellName(record), err))
			}
		}
	}
	return nil
}

// Cheats returns, in words, the critical flags for which an attempt is disqualified.
func (e *Examined) Cheats() []string {
	var open []string
	for i := range e.Run.Session.Integrity {
		if flag := &e.Run.Session.Integrity[i]; e.Run.Disqualified() && flag.Disqualifies() {
			open = append(open, Meaning(flag.Kind))
		}
	}
	return open
}

// cancellable is a reader that ends when its context does.
type cancellable struct {
	context.Context
	r io.Reader
}

// Read implements io.Reader.
func (c cancellable) Read(p []byte) (int, error) {
	if err := c.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}

// key returns the digest of everything that the evidence is made from. The files are read for it,
// although the sealed record vouches for them: a cache must not hide that one was changed since.
func (d *Directory) key(task *Task, record *ledger.Record, reviews Reviews) (string, error) {
	hash := sha256.New()
	encoder := json.NewEncoder(hash)
	inputs := []any{rules, Version, record.Hash, record.Key(), task}
	for _, name := range []string{record.AgentTracePath, record.DiffPath} {
		sum, err := d.digest(record, name)
		if err != nil {
			return "", err
		}
		inputs = append(inputs, name, sum)
	}
	if len(reviews) > 0 {
		inputs = append(inputs, reviews)
	}
	for _, input := range inputs {
		if err := encoder.Encode(input); err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

// Diff returns the patch of an attempt; nil if it changed nothing.
func (d *Directory) Diff(record *ledger.Record) ([]byte, error) {
	data, err := d.read(record, record.DiffPath, maxDiff)
	if err != nil {
		return nil, fmt.Errorf("diff of %s: %w", cellName(record), err)
	}
	return data, nil
}

// VerifyOutput returns the end of what an attempt's check printed; nil if nothing was kept.
func (d *Directory) VerifyOutput(record *ledger.Record) ([]byte, error) {
	if record.Verify == nil {
		return nil, nil
	}
	data, err := d.read(record, record.Verify.OutputPath, maxDiff)
	if err != nil {
		return nil, fmt.Errorf("output of the check of %s: %w", cellName(record), err)
	}
	return data[max(0, len(data)-maxVerifyOutput):], nil
}

// cached returns the evidence that was made from the same inputs; nil if there is none.
func (d *Directory) cached(key string) *Run {
	if d.NoCache {
		return nil
	}
	data, err := os.ReadFile(d.cacheFile(key))
	if err != nil {
		return nil
	}
	sum, body, _ := bytes.Cut(data, []byte("\n"))
	var entry cacheEntry
	if string(sum) != sumOf(body) || json.Unmarshal(body, &entry) != nil || entry.Key != key || entry.Run == nil {
		return nil
	}
	return entry.Run
}

// cacheEntry is one file of the cache, after a line with its digest: an edited file is not taken
// for evidence.
type cacheEntry struct {
	Key string `json:"key"`
	Run *Run   `json:"run"`
}

// sumOf returns a digest as a line of JSON.
func sumOf(body []byte) string { return `"` + digestOf(body) + `"` }

func (d *Directory) cacheFile(key string) string {
	return filepath.Join(d.Root, CacheDir, "evidence-"+key[:32]+".json")
}

// keep writes the cache, if it can: without it the next call takes longer.
func (d *Directory) keep(key string, run *Run) {
	if d.NoCache {
		return
	}
	data, err := jsonenc.Marshal(cacheEntry{key, run})
	if err != nil || os.MkdirAll(filepath.Join(d.Root, CacheDir), 0o700) != nil {
		return
	}
	_ = atomicfile.Write(d.cacheFile(key), 0o600, []byte(sumOf(data)+"\n"), data) // as said above
}
