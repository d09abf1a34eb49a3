package experiment

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// start is a line of the journal: an attempt that was begun.
type start struct {
	Arm      string `json:"arm"`
	TaskID   string `json:"taskId"`
	RunIndex int    `json:"runIndex"`
	Attempt  int    `json:"attempt"`
	StartMs  int64  `json:"startMs"`
	PID      int    `json:"pid"`
}

// journal notes attempts before they begin. It is written without waiting for the disk: a killed
// process loses nothing of it, and after a power cut an attempt that is missing here is simply made
// again.
type journal struct{ file *os.File }

// openJournal reads what earlier processes began. A line that was being written when its process
// died was not acted upon yet; it is closed and left alone.
func openJournal(path string, visit func(start)) (*journal, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	reader := bufio.NewReader(file)
	for {
		line, err := reader.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, errors.Join(fmt.Errorf("read journal %s: %w", path, err), file.Close())
		}
		var s start
		whole := err == nil
		if whole && json.Unmarshal(line, &s) == nil && s.Attempt > 0 {
			visit(s)
		}
		if whole {
			continue
		}
		if len(line) > 0 {
			if _, err := file.Write([]byte("\n")); err != nil {
				return nil, errors.Join(fmt.Errorf("open journal %s: %w", path, err), file.Close())
			}
		}
		return &journal{file: file}, nil
	}
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

func (j *journal) close() error { return j.file.Close() }
