package session

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/fit-eval/fit/internal/lazyregexp"
)

// maxDocument bounds documents that have to be read whole.
const maxDocument = 512 << 20

// ownDocument is how the JSON of an EnrichedSession, or of several, begins.
var ownDocument = lazyregexp.New(`^\[?\s*\{\s*"version":\s*\d+,\s*"sessionId":`)

// Load reads the sessions in a file of any kind, which it recognises by its content: a trace, an
// agent's stream, a file that an agent has left on disk, an ATIF document, or sessions stored as
// JSON.
func Load(path string, dialects Dialects, opts Options) ([]*EnrichedSession, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if info, err := file.Stat(); err == nil && info.IsDir() {
		return nil, fmt.Errorf("%s is a directory; name a file in it", path)
	}
	head := make([]byte, 64<<10)
	n, err := io.ReadFull(file, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	head = bytes.TrimLeft(bytes.TrimPrefix(head[:n], []byte("\xef\xbb\xbf")), " \t\r\n")
	isATIF := looksLikeATIF(head)
	if !isATIF && !ownDocument.Get().Match(head) {
		sessions, err := ReadFile(path, dialects, opts)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		return sessions, nil
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	data, err := io.ReadAll(io.LimitReader(file, maxDocument+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	if len(data) > maxDocument {
		return nil, fmt.Errorf("%s is larger than %d bytes", path, maxDocument)
	}
	sessions, err := loadDocument(data, isATIF, opts)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return sessions, nil
}

func loadDocument(data []byte, isATIF bool, opts Options) ([]*EnrichedSession, error) {
	data = bytes.TrimSpace(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")))
	if isATIF {
		return loadATIF(data, opts)
	}
	var sessions []*EnrichedSession
	if data[0] == '{' {
		sessions = []*EnrichedSession{{}}
		if err := json.Unmarshal(data, sessions[0]); err != nil {
			return nil, fmt.Errorf("stored session: %w", err)
		}
		return sessions, nil
	}
	if err := json.Unmarshal(data, &sessions); err != nil {
		return nil, fmt.Errorf("stored sessions: %w", err)
	}
	return sessions, nil
}

// loadATIF reads a trajectory, or a list of them.
func loadATIF(data []byte, opts Options) ([]*EnrichedSession, error) {
	documents := []json.RawMessage{data}
	if data[0] == '[' {
		if err := json.Unmarshal(data, &documents); err != nil {
			return nil, fmt.Errorf("%w: %w", errNotATIF, err)
		}
	}
	var sessions []*EnrichedSession
	for _, document := range documents {
		s, err := ImportATIF(document, opts)
		if err != nil {
			return nil, err
		}
		sessions = append(sessions, s)
	}
	return sessions, nil
}
