package task

import (
	"errors"
	"io/fs"

	"github.com/fit-eval/fit/internal/document"
	"github.com/fit-eval/fit/internal/tree"
)

// settingsFile is a YAML file of settings, kept to say where in it something is wrong.
type settingsFile struct {
	doc *document.Document // nil: there is no file
}

// readSettings reads and checks a file of settings. A missing file is an empty one.
func (l *loader) readSettings(name string, into any) (settingsFile, error) {
	source, err := l.read(name)
	switch link, out := errors.AsType[*tree.LinkError](err); {
	case out:
		l.refused(name, link)
		return settingsFile{}, nil
	case errors.Is(err, fs.ErrNotExist):
		return settingsFile{}, nil
	case err != nil:
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
