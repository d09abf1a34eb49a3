package query

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
)

// ExportDocument writes the trace as one structured document on a single line: metadata, the init
// event, all turns, the summary. Questions to the document get the answers that the trace would
// give, except that a document has no room for the cost of single lanes.
func (t *Trace) ExportDocument(ctx context.Context, w io.Writer) error {
	if t.doc != nil {
		_, err := w.Write(append(compact(t.doc.raw), '\n'))
		return err
	}
	out := &documentWriter{w: bufio.NewWriterSize(w, 64<<10)}
	var held []*Turn
	info, err := t.walk(ctx, plan{visit: func(e *Entry) error {
		if !t.seekable { // the head of the document depends on the whole trace, and a stream cannot be read twice
			held = append(held, e.Turn())
		}
		return nil
	}})
	if err != nil {
		return err
	}
	out.head(info)
	if t.seekable {
		_, err = t.walk(ctx, plan{visit: func(e *Entry) error { return out.turn(e.Turn()) }})
	}
	for _, turn := range held {
		if err == nil {
			err = out.turn(turn)
		}
	}
	if err != nil {
		return err
	}
	out.tail(info)
	return out.w.Flush()
}

type documentWriter struct {
	w     *bufio.Writer
	count int
	buf   []byte
}

func (d *documentWriter) text(s string) { _, _ = d.w.WriteString(s) } // the writer keeps the error until it is flushed

func (d *documentWriter) value(v any) {
	raw, err := json.Marshal(v)
	if err != nil {
		raw = []byte("null") // what a trace holds always marshals
	}
	_, _ = d.w.Write(compact(raw))
}

func (d *documentWriter) head(info *Info) {
	d.text(`{"version":"` + DocumentVersion + `","metadata":`)
	d.value(info.Metadata)
	d.text(`,"initEvent":`)
	d.value(info.InitEvent)
	d.text(`,"turns":[`)
}

func (d *documentWriter) turn(turn *Turn) error {
	if d.count > 0 {
		d.text(",")
	}
	d.count++
	d.buf = turn.AppendJSON(d.buf[:0])
	_, err := d.w.Write(compact(d.buf))
	return err
}

func (d *documentWriter) tail(info *Info) {
	d.text(`],"summary":`)
	d.value(info.Summary)
	for _, field := range []struct{ key, value string }{{"verdict", info.Verdict},
		{"discussionId", info.DiscussionID}} {
		if field.value != "" {
			d.text(`,"` + field.key + `":`)
			d.value(field.value)
		}
	}
	d.text("}\n")
}
