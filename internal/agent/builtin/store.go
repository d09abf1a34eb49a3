package builtin

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fit-eval/fit/internal/model"
)

// store keeps conversations as files of JSON lines, one message a line, appended as they happen: a
// process that is killed loses at most the message it was writing.
type store struct{ dir string }

// storedMessage is one line of a conversation's file.
type storedMessage struct {
	model.Message
	PromptID string `json:"prompt_id,omitempty"` // of a prompt that was given under an id
}

// validID accepts the ids that we make, and nothing that could be a path.
func validID(id string) bool {
	outside := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '-'
	}
	return id != "" && len(id) <= 128 && strings.IndexFunc(id, outside) < 0
}

// unknownSessionError reports a conversation that cannot be resumed because it is not there.
type unknownSessionError struct{ ID string }

func (e *unknownSessionError) Error() string {
	return fmt.Sprintf("no conversation with the id %q", e.ID)
}

func (s store) path(id string) string { return filepath.Join(s.dir, id+".jsonl") }

func (s store) append(id string, messages ...storedMessage) error {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return fmt.Errorf("keep conversation: %w", err)
	}
	file, err := os.OpenFile(s.path(id), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("keep conversation: %w", err)
	}
	encoder := json.NewEncoder(file)
	for _, m := range messages {
		err = errors.Join(err, encoder.Encode(m))
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("keep conversation: %w", err)
	}
	return nil
}

// load returns the messages of a conversation. A torn last line is left out, and so are replies
// whose tool calls were never answered, because no protocol accepts them; only the very last
// message may be one, for PromptOnce to take up. It also returns the id of the last prompt.
func (s store) load(id string) (messages []model.Message, promptID string, err error) {
	if !validID(id) {
		return nil, "", &unknownSessionError{ID: id}
	}
	file, err := os.Open(s.path(id))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, "", &unknownSessionError{ID: id}
	}
	if err != nil {
		return nil, "", fmt.Errorf("resume conversation: %w", err)
	}
	defer file.Close()
	decoder := json.NewDecoder(bufio.NewReader(file))
	whole := int64(0) // bytes of the file that are whole messages
	for {
		var m storedMessage
		err := decoder.Decode(&m)
		if errors.Is(err, io.EOF) {
			break
		}
		if errors.Is(err, io.ErrUnexpectedEOF) {
			// A torn end must be removed, or the next message would be appended to half a line.
			if err := os.Truncate(s.path(id), whole); err != nil {
				return nil, "", fmt.Errorf("resume conversation %q: %w", id, err)
			}
			break
		}
		if err != nil {
			return nil, "", fmt.Errorf("resume conversation %q: %w", id, err)
		}
		messages = append(messages, m.Message)
		if m.Role == model.User && !hasResults(m.Message) {
			promptID = m.PromptID
		}
		whole = decoder.InputOffset()
	}
	return dropIncompleteCalls(messages), promptID, nil
}

// dropIncompleteCalls leaves out every reply that calls tools and is not followed by their results,
// except at the end.
func dropIncompleteCalls(messages []model.Message) []model.Message {
	var kept []model.Message
	for i, m := range messages {
		last := i == len(messages)-1
		if wantsTools(m) && !last && !hasResults(messages[i+1]) {
			continue
		}
		kept = append(kept, m)
	}
	return kept
}

func hasResults(m model.Message) bool {
	return len(m.Blocks) > 0 && m.Blocks[0].Result != nil
}

func wantsTools(m model.Message) bool {
	return slices.ContainsFunc(m.Blocks, func(b model.Block) bool { return b.Type == model.BlockToolCall })
}
