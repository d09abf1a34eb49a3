package skilltest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/fit-eval/fit/internal/skill"
)

// feedbackFile is the file of a run directory with what a person says about the cases: a text for
// each directory of a case, as the convention of workspaces has it.
const feedbackFile = "feedback.json"

// maxFeedback bounds the text about a case.
const maxFeedback = 10_000

// ReadFeedback returns what a person said about the cases of a test, by their ids. A directory
// without feedback has none.
func (t *Test) ReadFeedback(dir string) (map[string]string, error) {
	file, err := readFeedback(dir)
	if err != nil {
		return nil, err
	}
	said := map[string]string{}
	for i := range t.Cases {
		var text string
		if json.Unmarshal(file[evalDir(t.Cases[i].ID)], &text) == nil && text != "" {
			said[t.Cases[i].ID] = text
		}
	}
	return said, nil
}

// WriteFeedback replaces what a person said about a case; an empty text takes it away. What else
// other tools keep in the file stays. The caller sees to it that nobody else writes at that time.
func (t *Test) WriteFeedback(dir, id, text string) error {
	if t.find(id).Prompt == "" {
		return fmt.Errorf("there is no case %s in this test", id)
	}
	if text = strings.TrimSpace(text); len(text) > maxFeedback || !utf8.ValidString(text) {
		return fmt.Errorf("feedback on case %s must be UTF-8 text of at most %d bytes", id, maxFeedback)
	}
	file, err := readFeedback(dir)
	if err != nil {
		return err
	}
	delete(file, evalDir(id))
	if text != "" {
		file[evalDir(id)], _ = json.Marshal(text) // it is valid UTF-8
	}
	return writeJSON(filepath.Join(dir, feedbackFile), file)
}

// readFeedback reads the file. A directory from a stranger may have a link or a pipe in its place.
func readFeedback(dir string) (map[string]json.RawMessage, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	file := map[string]json.RawMessage{}
	text, err := skill.ReadFile(root, feedbackFile)
	if errors.Is(err, fs.ErrNotExist) {
		return file, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &file)
	}
	if err == nil && file == nil {
		err = errors.New("it is null")
	}
	if err != nil {
		return nil, fmt.Errorf(`%s: %w; it must be {"eval-1": "…", …}: mend it, or move it away`,
			filepath.Join(dir, feedbackFile), err)
	}
	return file, nil
}
