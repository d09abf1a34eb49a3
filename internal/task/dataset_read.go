package task

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/fit-eval/fit/internal/document"
	"github.com/fit-eval/fit/internal/tree"
)

// datasetBounds keep a file of samples from filling the memory.
type datasetBounds struct {
	samples int
	sample  int64 // bytes of one
	all     int64 // bytes of all that are kept
}

var defaultDatasetBounds = datasetBounds{samples: 100_000, sample: 16 << 20, all: 512 << 20}

// datasetRow is one sample as it is in its file.
type datasetRow struct {
	line    int
	columns map[string]any
}

// errEnough ends the reading early.
var errEnough = errors.New("enough samples")

// datasetReader reads a file of samples, one after the other: the file may be larger than the
// memory.
type datasetReader struct {
	name   string // as errors call it
	bounds datasetBounds
	// header is called with the columns where all samples have the same, before the first sample.
	header func(columns []string) error
	row    func(datasetRow) error
	// malformed is called with the error of a line that is not a sample; nil: reading ends there.
	malformed func(error) error
}

func (r *datasetReader) wrong(line int, format string, args ...any) error {
	return &document.Error{File: r.name, Line: line, Msg: fmt.Sprintf(format, args...)}
}

// readRows reads the file of the family that a reader is about.
func (l *loader) readRows(reader *datasetReader) {
	file, err := l.beneath(reader.name)
	if _, out := errors.AsType[*tree.LinkError](err); out {
		l.refused(reader.name, err)
		return
	}
	if err != nil { // reading says it in its own words
		file = filepath.Join(l.real, filepath.FromSlash(reader.name))
	}
	l.add(reader.read(file))
}

// read reads a file by the ending of its name.
func (r *datasetReader) read(path string) error {
	read, ok := map[string]func(*meteredReader) error{
		".csv": r.csv, ".jsonl": r.lines, ".ndjson": r.lines, ".json": r.json, ".yaml": r.yaml, ".yml": r.yaml,
	}[strings.ToLower(filepath.Ext(path))]
	if !ok {
		return mistake(r.name, "a dataset is a .csv, .jsonl, .json or .yaml file")
	}
	// Checked before it is opened: a pipe would wait for a writer.
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return mistake(r.name, "not a regular file")
	}
	file, err := os.Open(path)
	if err != nil {
		return mistake(r.name, "%v", errors.Unwrap(err))
	}
	defer file.Close()
	in := &meteredReader{reader: file, limit: r.bounds.sample}
	if err := in.skipMark(); err != nil {
		return mistake(r.name, "%v", err)
	}
	err = read(in)
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

// meteredReader refuses to read more than one sample may have, and finds the line of an offset.
type meteredReader struct {
	reader   io.Reader
	limit    int64
	since    int64 // bytes since the last sample
	offset   int64
	newlines []int64 // offsets of line ends after those that were counted
	line     int     // line ends that were counted
}

// skipMark leaves out the mark that some programs put before UTF-8, and refuses UTF-16.
func (m *meteredReader) skipMark() error {
	buffered := bufio.NewReaderSize(m.reader, 64<<10)
	m.reader = buffered
	mark, _ := buffered.Peek(3) // a shorter file has none
	switch {
	case string(mark) == "\uFEFF":
		_, _ = buffered.Discard(len(mark)) // it is in the buffer
		m.offset = int64(len(mark))
	case bytes.HasPrefix(mark, []byte{0xFF, 0xFE}), bytes.HasPrefix(mark, []byte{0xFE, 0xFF}):
		return errors.New("it is UTF-16; save the file as UTF-8")
	}
	return nil
}

var errLongSample = errors.New("the sample does not end")

func (m *meteredReader) Read(buffer []byte) (int, error) {
	if m.since > m.limit {
		return 0, errLongSample
	}
	n, err := m.reader.Read(buffer)
	for i, c := range buffer[:n] {
		if c == '\n' {
			m.newlines = append(m.newlines, m.offset+int64(i))
		}
	}
	m.since += int64(n)
	m.offset += int64(n)
	return n, err
}

// lineAt returns the line of an offset; offsets only grow.
func (m *meteredReader) lineAt(offset int64) int {
	at, _ := slices.BinarySearch(m.newlines, offset)
	m.line += at
	m.newlines = slices.Delete(m.newlines, 0, at)
	return m.line + 1
}

func (r *datasetReader) tooLong(line int) error {
	return r.wrong(line, "the sample that begins here has more than %d bytes: is a quote or a bracket not closed?",
		r.bounds.sample)
}

// csv reads comma-separated values; the first line names the columns.
func (r *datasetReader) csv(in *meteredReader) error {
	reader := csv.NewReader(in)
	reader.ReuseRecord = true
	columns, err := r.csvHeader(reader)
	if err != nil {
		return err
	}
	last := 1
	for {
		in.since, in.newlines = 0, in.newlines[:0]
		record, err := reader.Read()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, errLongSample):
			return r.tooLong(last + 1)
		case err != nil:
			return r.csvError(err, len(columns))
		}
		last, _ = reader.FieldPos(0)
		row := datasetRow{line: last, columns: make(map[string]any, len(columns))}
		for i, text := range record {
			if !utf8.ValidString(text) {
				return r.wrong(last, "column %s: not valid UTF-8; save the file as UTF-8", columns[i])
			}
			row.columns[columns[i]] = text
		}
		if err := r.row(row); err != nil {
			return err
		}
	}
}

func (r *datasetReader) csvHeader(reader *csv.Reader) ([]string, error) {
	record, err := reader.Read()
	switch {
	case errors.Is(err, io.EOF):
		return nil, r.wrong(1, "it is empty; the first line names the columns")
	case errors.Is(err, errLongSample):
		return nil, r.tooLong(1)
	case err != nil:
		return nil, r.csvError(err, 0)
	}
	columns := slices.Clone(record)
	for i, name := range columns {
		columns[i] = strings.TrimSpace(name)
		if columns[i] == "" {
			return nil, r.wrong(1, "column %d has no name; the first line names the columns", i+1)
		}
	}
	if twice := duplicate(columns); twice != "" {
		return nil, r.wrong(1, "two columns are called %s", twice)
	}
	if one := columns[0]; len(columns) == 1 && strings.ContainsAny(one, ";\t") {
		return nil, r.wrong(1, "the only column is called %q; separate columns by commas", one)
	}
	return columns, r.header(columns)
}

func (r *datasetReader) csvError(err error, columns int) error {
	parse, ok := errors.AsType[*csv.ParseError](err)
	if !ok {
		return fmt.Errorf("%s: %w", r.name, err)
	}
	if errors.Is(err, csv.ErrFieldCount) {
		return r.wrong(parse.Line, "not as many values as the first line has columns, which is %d; put values with "+
			"commas in quotes", columns)
	}
	return r.wrong(parse.Line, "%v; a quote inside of quotes is written twice", parse.Err)
}

// lines reads one JSON object per line.
func (r *datasetReader) lines(in *meteredReader) error {
	buffered := bufio.NewReaderSize(in, 64<<10)
	for number := 1; ; number++ {
		in.since, in.newlines = 0, in.newlines[:0]
		line, err := buffered.ReadBytes('\n')
		if errors.Is(err, errLongSample) {
			return r.tooLong(number)
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("%s: %w", r.name, err)
		}
		if len(bytes.TrimSpace(line)) > 0 {
			if problem := r.object(number, line); problem != nil {
				return problem
			}
		}
		if err != nil {
			return nil
		}
	}
}

func (r *datasetReader) object(line int, source []byte) error {
	row := datasetRow{line: line}
	value, err := document.JSONValue(source)
	if err != nil {
		err = r.wrong(line, "must be one JSON object per sample: %v", withoutPlace(err))
	} else if row.columns, _ = value.(map[string]any); row.columns == nil {
		err = r.wrong(line, "must be one JSON object per sample, not %s", kindOf(value))
	}
	if err == nil {
		return r.row(row)
	}
	if r.malformed != nil {
		return r.malformed(err)
	}
	return err
}

// kindOf names the kind of a JSON value.
func kindOf(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case string:
		return "a text"
	case bool:
		return "true or false"
	case []any:
		return "a list"
	}
	return "a number"
}

// json reads a list of objects.
func (r *datasetReader) json(in *meteredReader) error {
	decoder := json.NewDecoder(in)
	start := in.offset // of what the decoder sees
	line := func() int { return in.lineAt(start + decoder.InputOffset()) }
	if token, err := decoder.Token(); err != nil || token != json.Delim('[') {
		return r.wrong(1, "must be a JSON list of objects; one object per line is a .jsonl file")
	}
	for decoder.More() {
		in.since = 0
		begins := line()
		var source json.RawMessage
		err := decoder.Decode(&source)
		switch ends := line(); {
		case errors.Is(err, errLongSample):
			return r.tooLong(begins)
		case err != nil:
			return r.wrong(ends, "must be one JSON object per sample: %s", document.SyntaxWords(err))
		default:
			begins = ends
		}
		if err := r.object(begins, source); err != nil {
			return err
		}
	}
	if _, err := decoder.Token(); err != nil {
		return r.wrong(line(), "the list is not closed: %v", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return r.wrong(line(), "there is more after the list; the file must be one list of objects")
	}
	return nil
}

// yaml reads a list of mappings.
func (r *datasetReader) yaml(in *meteredReader) error {
	source, err := io.ReadAll(in)
	if errors.Is(err, errLongSample) {
		return r.wrong(1, "larger than %d bytes; large datasets are .jsonl or .csv files", r.bounds.sample)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", r.name, err)
	}
	doc, err := document.Parse(r.name, source)
	if err != nil {
		return err
	}
	parts := doc.Parts()
	if len(parts) == 0 && !doc.Empty() {
		return doc.ErrorAt(nil, "must be a list of samples")
	}
	for _, part := range parts {
		content, err := part.JSON()
		if err != nil {
			return err
		}
		if err := r.object(part.ErrorAt(nil, "").Line, content); err != nil {
			return err
		}
	}
	return nil
}

// ReadRows reads all rows of a file of samples: .csv, .jsonl, .json or .yaml.
func ReadRows(path string) ([]map[string]any, error) {
	var rows []map[string]any
	size := int64(0)
	reader := &datasetReader{
		name:   path,
		bounds: defaultDatasetBounds,
		header: func([]string) error { return nil },
	}
	reader.row = func(row datasetRow) error {
		if size += sizeOf(row.columns); size > reader.bounds.all {
			return reader.wrong(row.line, "more than %d bytes; split the file", reader.bounds.all)
		}
		rows = append(rows, row.columns)
		return nil
	}
	return rows, reader.read(path)
}
