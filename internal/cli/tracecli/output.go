package tracecli

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/internal/jsonenc"
	"github.com/fit-eval/fit/internal/query"
)

// The formats of answers.
const (
	formatText   = "text"
	formatJSON   = "json"
	formatNDJSON = "ndjson"
)

// output prints the answer to one question.
type output struct {
	app    *app
	w      *bufio.Writer
	format string
	style  jsonenc.Style
	colour bool
	// columns is how wide a line may be; 0 where a program reads the answer.
	columns int
	// explained is set when it was said why there is no record.
	explained bool
	// multi is set when more than one file was asked.
	multi bool
	// mayLack is set where one of several files may hold nothing.
	mayLack bool
	opened  bool // the bracket of a JSON array
	count   int
	header  string
	// scratch is reused from record to record.
	scratch []byte
}

// print runs a verb with an output and makes sure that everything it wrote arrives. A reader that
// has seen enough, such as head, ends it quietly.
func (a *app) print(ctx context.Context, run func(*output) error) error {
	sink, closeSink := a.pager(ctx)
	out := &output{
		app:    a,
		w:      bufio.NewWriterSize(sink, 64<<10),
		format: a.flags.format.Value,
		colour: a.con.Colour(),
	}
	if a.con.StdoutIsTerminal() {
		out.columns = a.con.Columns()
	}
	out.style = jsonenc.Style{Signatures: a.flags.signatures}
	err := run(out)
	if err == nil {
		err = a.reportEmpty(out, sink)
	}
	err = cmp.Or(err, out.w.Flush())
	closed := closeSink()
	for _, t := range a.opened {
		a.note(t)
	}
	if errors.Is(err, syscall.EPIPE) || errors.Is(err, io.ErrClosedPipe) {
		return nil
	}
	if err != nil {
		return classify(err)
	}
	return closed
}

// record prints one element of a list. In text mode text writes it; nil means one line per field.
func (o *output) record(file string, value any, text func()) error {
	raw, err := o.marshal(value)
	if err != nil {
		return err
	}
	switch o.format {
	case formatJSON:
		o.separate()
		style := jsonenc.Style{Indent: 2, Level: 1, Signatures: o.style.Signatures}
		o.write(style.AppendJSON(nil, o.withFile(raw, file)))
	case formatNDJSON:
		o.write(append(o.style.AppendJSON(nil, o.withFile(raw, file)), '\n'))
	default:
		o.group(file)
		if text != nil {
			text()
		} else {
			o.fields(raw)
		}
	}
	o.count++
	return o.failed()
}

// marshal is json.Marshal with a shorter way for what can append itself.
func (o *output) marshal(value any) ([]byte, error) {
	if record, ok := value.(appender); ok {
		o.scratch = record.AppendJSON(o.scratch[:0])
		return o.scratch, nil
	}
	return json.Marshal(value)
}

// appender is what records of which there may be many can do.
type appender interface{ AppendJSON(dst []byte) []byte }

// failed tells early that nobody reads any more, so that a pass over a large file ends.
func (o *output) failed() error {
	_, err := o.w.Write(nil)
	return err
}

func (o *output) separate() {
	if o.count == 0 {
		o.print("[\n  ")
		o.opened = true
		return
	}
	o.print(",\n  ")
}

// end closes a list.
func (o *output) end() error {
	switch {
	case o.format == formatJSON && o.opened:
		o.print("\n]\n")
	case o.format == formatJSON:
		o.print("[]\n")
	case o.format == formatText && o.count == 0:
		o.print("\n")
		if !o.explained && !slices.ContainsFunc(o.app.opened, (*query.Trace).Nothing) {
			fmt.Fprintln(o.app.con.Stderr, "nothing found")
		}
	}
	return o.failed()
}

// object prints the answer of a verb that has one answer per file: bare for one file, as elements
// of a list for several.
func (o *output) object(file string, value any, text func()) error {
	if o.multi || o.format == formatNDJSON {
		return o.record(file, value, text)
	}
	raw, err := o.marshal(value)
	if err != nil {
		return err
	}
	switch {
	case o.format == formatJSON:
		o.write(append(jsonenc.Style{Indent: 2, Signatures: o.style.Signatures}.AppendJSON(nil, raw), '\n'))
	case text != nil:
		text()
	default:
		o.fields(raw)
	}
	o.count++
	return o.failed()
}

// endObjects closes the list of the answers of several files.
func (o *output) endObjects() error {
	if o.multi {
		return o.end()
	}
	return nil
}

// withFile adds the file that a record came from.
func (o *output) withFile(raw []byte, file string) []byte {
	if !o.multi || file == "" {
		return raw
	}
	if string(raw) == "null" || len(raw) < 2 || raw[0] != '{' {
		raw = []byte("{}")
	}
	name, _ := json.Marshal(file) // a string always marshals
	body := raw[:len(raw)-1]
	if len(body) > 1 {
		body = append(body[:len(body):len(body)], ',')
	}
	body = append(body[:len(body):len(body)], `"file":`...)
	return append(append(body, name...), '}')
}

// group prints the name of a file before the first record of it.
func (o *output) group(file string) {
	if !o.multi || file == "" || file == o.header {
		return
	}
	o.header = file
	o.line(o.paint(bold, "# "+file))
}

// fields prints a record as one line per field, and on a terminal a field that takes more as lines
// that fit. The lane is left out where there is none.
func (o *output) fields(raw []byte) {
	if len(raw) == 0 || raw[0] != '{' {
		o.line(o.plain(raw))
		return
	}
	jsonenc.EachMember(raw, func(key string, value []byte) {
		if key == "source" && string(value) == "null" {
			return
		}
		o.print(o.paint(dim, key+":"))
		text := o.plain(value)
		if o.columns > 0 && len(key)+len(": ")+len(text) > o.columns {
			if _, ok := jsonenc.Text(value); !ok {
				text = display.Text(string(jsonenc.Style{Indent: 2}.AppendJSON(nil, value)))
			}
			o.line("")
			o.line(display.Fold("  "+strings.ReplaceAll(text, "\n", "\n  "), o.columns))
			return
		}
		o.line(" " + text)
	})
}

func (o *output) plain(value []byte) string {
	if text, ok := jsonenc.Text(value); ok {
		return display.Text(text)
	}
	return display.Line(string(o.style.AppendJSON(nil, value)))
}

func (o *output) line(text string) {
	o.print(text)
	o.print("\n")
}

func (o *output) linef(format string, args ...any) { o.line(fmt.Sprintf(format, args...)) }

func (o *output) print(text string) {
	_, _ = o.w.WriteString(o.app.secrets().String(text)) // the writer keeps the error; failed and Flush return it
}

// write prints JSON, in which nothing that a terminal would obey stays as it is.
func (o *output) write(b []byte) { _, _ = o.w.Write(display.JSON(o.app.secrets().JSON(b))) }

const (
	bold = "1"
	dim  = "2"
	red  = "31"
)

// paint colours our own words; it is used on nothing that an agent has written.
func (o *output) paint(code, text string) string {
	if !o.colour {
		return display.Text(text)
	}
	return "\x1b[" + code + "m" + display.Text(text) + "\x1b[0m"
}

// index is the number of an entry as it is shown in front of a line.
func (o *output) index(n int) string { return o.paint(dim, "["+strconv.Itoa(n)+"]") }

// lane is the prefix that names the participant; empty for traces without envelopes.
func (o *output) lane(source *string) string {
	if source == nil || *source == "" {
		return ""
	}
	return o.paint(bold, display.Line(*source)+":") + " "
}
