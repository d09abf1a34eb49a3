package export

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/internal/jsonenc"
	"github.com/fit-eval/fit/internal/query"
)

// Document writes the trace as one structured document on a single line: metadata, the init event,
// all entries, the summary, the lanes. Questions to the document get the answers that the trace
// would give, except that they do not know the cost of single lanes.
func Document(ctx context.Context, t *query.Trace, w io.Writer) error {
	if stored := t.Stored(); stored != nil {
		_, err := w.Write(append(compact(stored), '\n'))
		return err
	}
	if err := t.Spool(); err != nil { // the head of the document depends on the whole trace
		return err
	}
	info, err := t.Walk(ctx, nil)
	if err != nil {
		return err
	}
	if t.Nothing() {
		return fmt.Errorf("%s: %w", t.Name(), query.ErrNothing)
	}
	out := &documentWriter{w: bufio.NewWriterSize(w, 64<<10)}
	out.text(`{"version":"` + query.DocumentVersion + `"`)
	out.member("metadata", info.Metadata)
	out.member("initEvent", info.InitEvent)
	out.text(`,"turns":[`)
	if err := t.Range(ctx, 0, info.TurnCount, out.entry); err != nil {
		return err
	}
	out.text("]")
	out.member("summary", info.Summary)
	if info.Verdict != "" {
		out.member("verdict", info.Verdict)
	}
	if info.DiscussionID != "" {
		out.member("discussionId", info.DiscussionID)
	}
	if info.Lanes != nil {
		out.member("lanes", info.Lanes)
	}
	out.text("}\n")
	return out.w.Flush()
}

// compact returns JSON on one line, with terminal control characters escaped.
func compact(raw []byte) []byte {
	return display.JSON(jsonenc.Style{Signatures: true}.AppendJSON(nil, raw))
}

// documentWriter ignores errors; its writer keeps the first until it is flushed.
type documentWriter struct {
	w     *bufio.Writer
	count int
	buf   []byte
}

func (d *documentWriter) text(s string) { _, _ = d.w.WriteString(s) }

func (d *documentWriter) member(key string, value any) {
	raw, err := json.Marshal(value)
	if err != nil {
		raw = []byte("null") // what a trace holds always marshals
	}
	d.text(`,"` + key + `":`)
	_, _ = d.w.Write(compact(raw))
}

func (d *documentWriter) entry(entry *query.Entry) error {
	if d.count > 0 {
		d.text(",")
	}
	d.count++
	d.buf = entry.AppendJSON(d.buf[:0])
	_, err := d.w.Write(compact(d.buf))
	return err
}
