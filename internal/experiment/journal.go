package experiment

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/fit-eval/fit/ledger"
)

// start is a line of the journal: an attempt that was begun.
type start struct {
	Arm      string `json:"arm"`
	TaskID   string `json:"taskId"`
	RunIndex int    `json:"runIndex"`
	Attempt  int    `json:"attempt"`
	StartMs  int64  `json:"startMs"`
	PID      int    `json:"pid"`
	// Probe is set if no attempt was begun but a model was asked for one reply.
	Probe *Probe `json:"probe,omitempty"`
	// Process is set where a process began to work in the directory, and where it ended.
	Process *Process `json:"process,omitempty"`
}

// Process is one call of Run: what it may spend, and how it ended.
type Process struct {
	Budgets Budgets `json:"budgets,omitzero"`
	NoProbe bool    `json:"noProbe,omitempty"` // models were not asked for a reply before the first cell
	Status  string  `json:"status,omitempty"`  // empty while it works, and if it was killed
	Reason  string  `json:"reason,omitempty"`
}

// Why says why the process ended before the experiment did; empty if it did not.
func (p *Process) Why() string {
	switch p.Status {
	case "", Complete:
		return ""
	case OverBudget:
		return "stopped by budget: " + p.Reason
	}
	return p.Reason
}

// Probe is the cost of checking, before the first cell, that the model of an arm or of the judge
// replies.
type Probe struct {
	Who        string            `json:"who"` // an arm, or judge
	Tokens     *ledger.UsageJSON `json:"tokens,omitempty"`
	CostUSD    *float64          `json:"costUsd"`
	CostSource string            `json:"costSource,omitempty"`
}

// journal notes attempts before they begin. It is written without waiting for the disk: a killed
// process loses nothing of it, and after a power cut an attempt that is missing here is simply
// repeated. Only a record waits for it, because a record without a start is no evidence.
type journal struct {
	file   *os.File
	noSync bool
}

// openJournal reads what earlier processes began. A line that was being written when its process
// died was not acted upon yet; it is terminated and left alone.
func openJournal(path string, visit func(start)) (*journal, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	rest, err := readJournal(file, visit)
	if err == nil && len(rest) > 0 {
		_, err = file.Write([]byte("\n"))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open journal %s: %w", path, err), file.Close())
	}
	return &journal{file: file}, nil
}

// readJournal visits the whole lines and returns the one that has no end.
func readJournal(file io.Reader, visit func(start)) (rest []byte, err error) {
	reader := bufio.NewReader(file)
	for {
		line, err := reader.ReadBytes('\n')
		switch {
		case errors.Is(err, io.EOF):
			return line, nil
		case err != nil:
			return nil, err
		}
		var s start
		if json.Unmarshal(line, &s) == nil && (s.Attempt > 0 || s.Probe != nil || s.Process != nil) {
			visit(s)
		}
	}
}

// Started is an attempt that was begun.
type Started struct {
	ledger.Key
	StartMs int64
}

// ReadStarts returns the attempts that were begun in a run directory, in their order.
func ReadStarts(dir string) ([]Started, error) {
	var started []Started
	err := visitJournal(dir, func(s start) {
		if s.Attempt > 0 {
			key := ledger.Key{
				Arm:      s.Arm,
				TaskID:   s.TaskID,
				RunIndex: s.RunIndex,
				Attempt:  s.Attempt,
			}
			started = append(started, Started{Key: key, StartMs: s.StartMs})
		}
	})
	if err != nil {
		return nil, fmt.Errorf("read attempts: %w", err)
	}
	return started, nil
}

// ReadProbes returns the probes of a run directory.
func ReadProbes(dir string) ([]Probe, error) {
	var probes []Probe
	err := visitJournal(dir, func(s start) {
		if s.Probe != nil {
			probes = append(probes, *s.Probe)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("read probes: %w", err)
	}
	return probes, nil
}

// ReadProcess returns the last process that worked in a run directory; nil where none is known.
func ReadProcess(dir string) (*Process, error) {
	var last *Process
	err := visitJournal(dir, func(s start) {
		if s.Process != nil {
			last = s.Process
		}
	})
	if err != nil {
		return nil, fmt.Errorf("read processes: %w", err)
	}
	return last, nil
}

// visitJournal reads the journal of a run directory; a ledger that was downloaded alone has none.
func visitJournal(dir string, visit func(start)) error {
	file, err := os.Open(filepath.Join(dir, AttemptsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = readJournal(file, visit)
	return err
}

func (j *journal) start(s start) error {
	line, err := json.Marshal(s)
	if err != nil {
		return err
	}
	if _, err := j.file.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("write journal: %w", err)
	}
	return nil
}

// sync waits until what was started is on disk.
func (j *journal) sync() error {
	if j.noSync {
		return nil
	}
	return j.file.Sync()
}

func (j *journal) close() error { return j.file.Close() }
