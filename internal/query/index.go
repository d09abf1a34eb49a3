package query

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"path/filepath"
	"sort"

	"github.com/fit-eval/fit/internal/query/internal/scan"
	"github.com/fit-eval/fit/session"
	"github.com/fit-eval/fit/trace"
)

// The index file: a fixed header, the records, and a JSON tail with the tables that records refer
// to. Every number is little-endian.
const (
	indexMagic  = "fitidx03"
	indexSuffix = ".fitidx"
	headerSize  = 64
	recordSize  = 32
	edgeSize    = 4 << 10 // how much of both ends of the trace the checksum covers
)

// record describes one line that matters.
type record struct {
	offset int64
	length uint32
	first  uint32 // the index of its first entry
	line   uint32
	id     uint32 // a hash of the id of its only tool call or tool result; 0 if it has none or several
	turns  uint16
	lane   uint16
	tools  uint16 // which set of tools it uses
	kind   scan.Kind
	flags  uint8
}

const (
	flagError     = 1 << iota // holds a tool result that failed
	flagUserText              // holds what a user said
	flagInit                  // an init event
	flagFirstUser             // the first user text of its lane
	flagText                  // holds a text block
	flagIDs                   // holds several ids, so that id is not conclusive
	// of a lane that speaks another dialect: its entries depend on all lines of the lane before it
	flagForeign
	flagUnreported // an assistant's line that no result of its lane follows
)

func (r *record) encode(b []byte) {
	binary.LittleEndian.PutUint64(b, uint64(r.offset))
	binary.LittleEndian.PutUint32(b[8:], r.length)
	binary.LittleEndian.PutUint32(b[12:], r.first)
	binary.LittleEndian.PutUint32(b[16:], r.line)
	binary.LittleEndian.PutUint32(b[20:], r.id)
	binary.LittleEndian.PutUint16(b[24:], r.turns)
	binary.LittleEndian.PutUint16(b[26:], r.lane)
	binary.LittleEndian.PutUint16(b[28:], r.tools)
	b[30], b[31] = byte(r.kind), r.flags
}

func (r *record) decode(b []byte) {
	*r = record{
		offset: int64(binary.LittleEndian.Uint64(b)),
		length: binary.LittleEndian.Uint32(b[8:]),
		first:  binary.LittleEndian.Uint32(b[12:]),
		line:   binary.LittleEndian.Uint32(b[16:]),
		id:     binary.LittleEndian.Uint32(b[20:]),
		turns:  binary.LittleEndian.Uint16(b[24:]),
		lane:   binary.LittleEndian.Uint16(b[26:]),
		tools:  binary.LittleEndian.Uint16(b[28:]),
		kind:   scan.Kind(b[30]),
		flags:  b[31],
	}
}

// idHash returns a hash that compares ids without reading them; equal hashes must be checked
// against the line itself.
func idHash(id []byte) uint32 {
	h := fnv.New32a()
	_, _ = h.Write(id)
	return max(1, h.Sum32())
}

// tables are the part of an index that is loaded as a whole.
type tables struct {
	Lanes    []laneTable `json:"lanes"`
	ToolSets [][]string  `json:"toolSets"`
	Turns    int         `json:"turns"`
	Foreign  bool        `json:"foreign"`
	Problems Problems    `json:"problems"`
}

type laneTable struct {
	Name    string      `json:"name"`
	Turns   int         `json:"turns"`
	Model   int         `json:"modelTurns"` // the model's turns
	FirstMs int64       `json:"firstMs"`
	LastMs  int64       `json:"lastMs"`
	Tools   []ToolCount `json:"tools"` // in the order of first use
}

// index is an open index of a trace.
type index struct {
	tables
	path    string
	trace   string
	size    int64
	records int64
}

// indexPaths returns the possible paths of the index of a file, best first.
func indexPaths(path string, opts Options) []string {
	paths := []string{path + indexSuffix}
	if opts.CacheDir != "" {
		absolute, err := filepath.Abs(path)
		if err == nil {
			sum := sha256.Sum256([]byte(absolute))
			paths = append(paths, filepath.Join(opts.CacheDir, hex.EncodeToString(sum[:12])+indexSuffix))
		}
	}
	return paths
}

func (o *Options) indexes(size int64) bool {
	from := cmp.Or(o.IndexFrom, defaultIndexFrom)
	return from > 0 && size >= from
}

// loadIndex returns the index of a file if there is one that matches the file as it is now.
func loadIndex(path string, info os.FileInfo, opts Options) *index {
	if !info.Mode().IsRegular() || !opts.indexes(info.Size()) {
		return nil
	}
	want, err := indexHeader(path, info)
	if err != nil {
		return nil
	}
	for _, candidate := range indexPaths(path, opts) {
		if idx := readIndex(candidate, want); idx != nil {
			idx.trace, idx.size = path, info.Size()
			return idx
		}
	}
	return nil
}

// indexHeader returns the first part of the header that the index of a file must have: it changes
// whenever the file does.
func indexHeader(path string, info os.FileInfo) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	edges := make([]byte, 0, 2*edgeSize)
	for _, at := range []int64{0, max(0, info.Size()-edgeSize)} {
		part := make([]byte, min(edgeSize, info.Size()))
		if _, err := file.ReadAt(part, at); err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		edges = append(edges, part...)
	}
	sum := sha256.Sum256(edges)
	header := append(make([]byte, 0, headerSize), indexMagic...)
	header = binary.LittleEndian.AppendUint64(header, uint64(info.Size()))
	header = binary.LittleEndian.AppendUint64(header, uint64(info.ModTime().UnixNano()))
	return append(header, sum[:24]...), nil
}

func readIndex(path string, want []byte) *index {
	file, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer file.Close()
	header := make([]byte, headerSize)
	if _, err := file.ReadAt(header, 0); err != nil || !bytes.HasPrefix(header, want) {
		return nil
	}
	info, err := file.Stat()
	if err != nil {
		return nil
	}
	idx := &index{path: path, records: int64(binary.LittleEndian.Uint64(header[48:]))}
	tail := headerSize + idx.records*recordSize
	if idx.records < 0 || idx.records > info.Size()/recordSize || tail > info.Size() {
		return nil
	}
	raw := make([]byte, info.Size()-tail)
	if _, err := file.ReadAt(raw, tail); err != nil && !errors.Is(err, io.EOF) {
		return nil
	}
	if json.Unmarshal(raw, &idx.tables) != nil {
		return nil
	}
	return idx
}

// errStaleIndex means that the index does not describe the file after all.
var errStaleIndex = errors.New("the index does not match the trace")

// dropIndex removes an index that turned out to be damaged. Visitors may have seen entries already,
// so the question has to be asked again.
func (t *Trace) dropIndex() error {
	if err := os.Remove(t.index.path); err != nil {
		return fmt.Errorf("the index %s is damaged and cannot be removed: %w", t.index.path, err)
	}
	return fmt.Errorf("the index %s was damaged and has been removed: rerun the command", t.index.path)
}

// each calls visit with the records from number n on.
func (x *index) each(n int64, visit func(*record) error) error {
	file, err := os.Open(x.path)
	if err != nil {
		return err
	}
	defer file.Close()
	buf := make([]byte, 2048*recordSize)
	var r record
	for n < x.records {
		part := buf[:min(int64(len(buf)), (x.records-n)*recordSize)]
		if _, err := file.ReadAt(part, headerSize+n*recordSize); err != nil {
			return errStaleIndex
		}
		for at := 0; at < len(part); at += recordSize {
			r.decode(part[at:])
			if err := visit(&r); err != nil {
				return err
			}
		}
		n += int64(len(part) / recordSize)
	}
	return nil
}

// seek returns the number of the record that holds an entry.
func (x *index) seek(turn int) (int64, error) {
	file, err := os.Open(x.path)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	buf := make([]byte, recordSize)
	var r record
	n := sort.Search(int(x.records), func(i int) bool {
		if _, readErr := file.ReadAt(buf, headerSize+int64(i)*recordSize); readErr != nil {
			err = errStaleIndex
		}
		r.decode(buf)
		return int(r.first)+int(r.turns) > turn
	})
	return int64(n), err
}

// walk shows the wanted lines only. Lines of other dialects are always read, because what they mean
// depends on those before them.
func (x *index) walk(ctx context.Context, w *walker) error {
	file, err := os.Open(x.trace)
	if err != nil {
		return err
	}
	defer file.Close()
	lines := lineFetcher{file: file, size: x.size}
	from := int64(0)
	if w.plan.from > 0 && !x.Foreign {
		if from, err = x.seek(w.plan.from); err != nil {
			return err
		}
	}
	err = x.each(from, func(r *record) error {
		if w.plan.to > 0 && int(r.first) >= w.plan.to {
			return errStop
		}
		if r.flags&flagForeign == 0 && !w.plan.want(r) {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		ev, err := lines.fetch(r)
		if err != nil {
			return err
		}
		ev.Line, ev.Keep = int64(r.line), w.plan.keep == nil || w.plan.keep(ev)
		w.next = int(r.first)
		return w.event(ev)
	})
	if err == nil {
		x.complete(w.info)
	}
	return err
}

// complete adds what the index knows about the lines that were not read.
func (x *index) complete(in *Info) {
	in.TurnCount, in.Problems = 0, x.Problems
	for _, table := range x.Lanes {
		l := in.lane(table.Name, false)
		l.Turns, l.FirstMs, l.LastMs, l.turns = table.Turns, table.FirstMs, table.LastMs, table.Model
		if l.Dialect == "" && l.Turns > 0 {
			l.Dialect = session.StreamDialectName
		}
		if l.wanted {
			in.TurnCount += table.Turns
		}
	}
}

// lineFetcher reads single lines of a trace. Neighbouring lines come out of one read.
type lineFetcher struct {
	file    io.ReaderAt
	size    int64
	scanner scan.LineScanner
	buf     []byte
	start   int64 // of buf in the file
	last    int64 // where the line before ends
	ev      scan.Event
	parts   []scan.Part
}

// A line close to the one before is taken for the next of many, and one read gets as many as fit.
const (
	fetchNear  = 4 << 10
	fetchAhead = 64 << 10
)

func (f *lineFetcher) fetch(r *record) (*scan.Event, error) {
	end := r.offset + int64(r.length)
	if r.offset < 0 || r.length > trace.MaxLine || end > f.size {
		return nil, errStaleIndex
	}
	if r.offset < f.start || end > f.start+int64(len(f.buf)) {
		n := int64(r.length)
		if gap := r.offset - f.last; gap >= 0 && gap <= fetchNear {
			n = min(max(n, fetchAhead), f.size-r.offset)
		}
		if int64(cap(f.buf)) < n {
			f.buf = make([]byte, n)
		}
		f.buf, f.start = f.buf[:n], r.offset
		if _, err := f.file.ReadAt(f.buf, r.offset); err != nil {
			return nil, errStaleIndex
		}
	}
	f.last = end
	from := int(r.offset - f.start)
	f.parts, f.ev = f.parts[:0], scan.Event{Offset: r.offset}
	if !f.scanner.Scan(f.buf[from:from+int(r.length)], &f.ev, &f.parts) {
		return nil, errStaleIndex
	}
	return &f.ev, nil
}
