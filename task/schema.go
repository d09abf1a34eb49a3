package task

import (
	"errors"
	"io/fs"
	"os"
	"sync"

	"github.com/fit-eval/fit/internal/document"
)

// checksSchema is the schema of the checks that a sample has in a column.
const checksSchema = "checks.schema.json"

// schemaSources returns the JSON schemaSources of the files that this package reads, by the name
// under which they are published.
func schemaSources() (map[string][]byte, error) {
	family, err := document.SchemaOf("family.yaml", familyFile{})
	if err != nil {
		return nil, err
	}
	one, err := document.SchemaOf("task.yaml", TaskFile{})
	if err != nil {
		return nil, err
	}
	spec, err := document.SchemaOf("task of fit versus", specFile{})
	if err != nil {
		return nil, err
	}
	checks, err := document.SchemaOf("checks of a sample", []checkFile{})
	if err != nil {
		return nil, err
	}
	return map[string][]byte{
		"family.schema.json": family, "task.schema.json": one, "versus.schema.json": spec, checksSchema: checks,
	}, nil
}

// compiledSchemas are facts of the program: made once, by the first caller that needs them.
var compiledSchemas = sync.OnceValues(func() (map[string]*document.Schema, error) {
	sources, err := schemaSources()
	if err != nil {
		return nil, err
	}
	compiled := map[string]*document.Schema{}
	for name, source := range sources {
		if compiled[name], err = document.CompileSchema(name, source); err != nil {
			return nil, err
		}
	}
	return compiled, nil
})

// settingsFile is a YAML file of settings, kept to say where in it something is wrong.
type settingsFile struct {
	doc *document.Document // nil: there is no file
}

// readSettings reads and checks a file of settings. A missing file is an empty one.
func readSettings(name, path, schemaName string, into any) (settingsFile, error) {
	source, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return settingsFile{}, nil
	}
	if err != nil {
		return settingsFile{}, err
	}
	schemas, err := compiledSchemas()
	if err != nil {
		return settingsFile{}, err
	}
	doc, err := document.Parse(name, source)
	if err != nil || doc.Empty() {
		return settingsFile{}, err
	}
	invalid := doc.Validate(schemas[schemaName])
	err = doc.Decode(into)
	if invalid != nil { // what could be read all the same keeps one mistake from looking like several
		err = invalid
	}
	return settingsFile{doc}, err
}

// wrong makes an error about a setting; of a file that does not exist it is about the other file.
func (f settingsFile) wrong(otherwise string, path []string, format string, args ...any) error {
	if f.doc == nil {
		return mistake(otherwise, format, args...)
	}
	return f.doc.ErrorAt(path, format, args...)
}
