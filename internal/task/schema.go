package task

import (
	"errors"
	"io/fs"
	"os"

	"github.com/fit-eval/fit/internal/document"
)

// settingsFile is a YAML file of settings, kept to say where in it something is wrong.
type settingsFile struct {
	doc *document.Document // nil: there is no file
}

// readSettings reads and checks a file of settings. A missing file is an empty one.
func readSettings(name, path string, into any) (settingsFile, error) {
	source, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return settingsFile{}, nil
	}
	if err != nil {
		return settingsFile{}, err
	}
	doc, err := document.Parse(name, source)
	if err != nil || doc.Empty() {
		return settingsFile{}, err
	}
	invalid := doc.Conforms(into)
	err = doc.Decode(into)
	if invalid != nil { // what could be read anyway keeps one mistake from looking like several
		err = invalid
	}
	return settingsFile{doc}, err
}

// wrong makes an error about a setting; if the file does not exist, the error is about the other
// file.
func (f settingsFile) wrong(otherwise string, path []string, format string, args ...any) error {
	if f.doc == nil {
		return mistake(otherwise, format, args...)
	}
	return f.doc.ErrorAt(path, format, args...)
}
