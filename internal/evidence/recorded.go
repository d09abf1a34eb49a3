package evidence

import (
	"fmt"
	"path/filepath"
	"slices"

	"github.com/fit-eval/fit/ledger"
	"github.com/fit-eval/fit/session"
)

// Prompts returns what reached the model of an attempt beside the conversation: what its trace
// shows, and what the gateway recorded. It reads the record of calls each time, because a report
// compares the prompts of a few attempts and not of all.
func (d *Directory) Prompts(record *ledger.Record, run *Run) ([]PromptText, error) {
	list := slices.Clone(run.Prompts)
	name := session.RecordOf(record.AgentTracePath)
	if vouched(record, name) == "" {
		return list, nil // nothing was recorded
	}
	_, err := d.digest(record, name)
	if err != nil {
		return list, fmt.Errorf("system prompts of %s: %w", cellName(record), err)
	}
	found, err := session.RecordedPrompts(filepath.Join(d.Root, filepath.FromSlash(name)), run.Session.Lane)
	if err != nil {
		return list, fmt.Errorf("system prompts of %s: %w", cellName(record), err)
	}
	return append(list, Prompts(slices.Concat(found...))...), nil
}
