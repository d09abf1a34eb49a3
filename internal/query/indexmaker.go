package query

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fit-eval/fit/internal/atomicfile"
	"github.com/fit-eval/fit/internal/query/internal/scan"
	"github.com/fit-eval/fit/trace"
)

// indexMaker takes notes during a complete pass and leaves an index behind. On any error it gives
// up silently: an index is only a convenience.
type indexMaker struct {
	trace    *Trace
	header   []byte
	info     os.FileInfo
	tables   tables
	lanes    map[string]int
	sets     map[string]uint16
	records  []byte // about nine bytes for every kilobyte of trace
	unusable bool
}

// newIndexMaker returns nil if the trace is to have no index, or has one.
func (t *Trace) newIndexMaker() *indexMaker {
	if t.index != nil || !t.seekable {
		return nil
	}
	info, err := os.Stat(t.Path)
	if err != nil || !t.opts.indexes(info.Size()) {
		return nil
	}
	header, err := indexHeader(t.Path, info)
	if err != nil {
		return nil
	}
	return &indexMaker{
		trace:  t,
		header: header,
		info:   info,
		lanes:  map[string]int{},
		sets:   map[string]uint16{"": 0},
		tables: tables{ToolSets: [][]string{{}}},
	}
}

// add notes one line.
func (m *indexMaker) add(ev *scan.Event, first, turns int, in *Info) {
	if m.unusable {
		return
	}
	lane := m.lane(ev)
	table := &m.tables.Lanes[lane]
	table.Turns += turns
	m.tables.Turns = first + turns
	foreign := ev.Kind == scan.Other && in.lane(ev.Lane, ev.Bare).foreign != nil
	if ev.Kind == scan.Other && !foreign {
		return
	}
	r := record{
		offset: ev.Offset,
		length: uint32(len(ev.Raw)),
		first:  uint32(first),
		line:   uint32(ev.Line),
		turns:  uint16(turns),
		lane:   uint16(lane),
		kind:   ev.Kind,
	}
	if turns > math.MaxUint16 || first > math.MaxUint32/2 || ev.Line > math.MaxUint32/2 || lane > math.MaxUint16 {
		m.unusable = true
		return
	}
	if foreign {
		r.flags, m.tables.Foreign = flagForeign, true
	}
	m.describe(&r, ev, table)
	m.records = append(m.records, make([]byte, recordSize)...)
	r.encode(m.records[len(m.records)-recordSize:])
}

func (m *indexMaker) lane(ev *scan.Event) int {
	name := ev.Lane
	if ev.Bare {
		name = bareLane
	}
	n, ok := m.lanes[name]
	if !ok {
		n = len(m.tables.Lanes)
		name = strings.Clone(name)
		m.lanes[name] = n
		m.tables.Lanes = append(m.tables.Lanes, laneTable{Name: name})
	}
	return n
}

func (m *indexMaker) describe(r *record, ev *scan.Event, table *laneTable) {
	if ev.Kind == scan.System && string(ev.Subtype) == "init" {
		r.flags |= flagInit
	}
	var tools []string
	for i := range ev.Parts {
		p := &ev.Parts[i]
		switch p.Type {
		case scan.Text:
			r.flags |= flagText
			if ev.Kind == scan.User {
				r.flags |= flagUserText
			}
		case scan.ToolUse:
			name := unescape(p.Name)
			tools = append(tools, name)
			table.count(name)
			r.noteID(p.ID)
		case scan.ToolResult:
			if p.IsError {
				r.flags |= flagError
			}
			r.noteID(p.ID)
		case scan.OtherPart, scan.Thinking, scan.Broken:
		}
	}
	if r.flags&flagUserText != 0 && !table.sawUser() {
		r.flags |= flagFirstUser
	}
	r.tools = m.toolSet(tools)
}

// noteID keeps the hash of a line's only id.
func (r *record) noteID(id []byte) {
	if r.id != 0 || r.flags&flagIDs != 0 {
		r.id = 0
		r.flags |= flagIDs
		return
	}
	r.id = idHash(id)
}

// sawUser reports whether the lane had a user's text before, and notes that it has one now. FirstMs
// is not yet in use while the pass runs.
func (t *laneTable) sawUser() bool {
	before := t.FirstMs != 0
	t.FirstMs = 1
	return before
}

func (t *laneTable) count(tool string) {
	for i := range t.Tools {
		if t.Tools[i].Tool == tool {
			t.Tools[i].Count++
			return
		}
	}
	t.Tools = append(t.Tools, ToolCount{Tool: tool, Count: 1})
}

// anyTools represents a set that did not fit into the table: the line must be read.
const anyTools = math.MaxUint16

func (m *indexMaker) toolSet(tools []string) uint16 {
	if len(tools) == 0 {
		return 0
	}
	slices.Sort(tools)
	tools = slices.Compact(tools)
	key := strings.Join(tools, "\x00")
	n, ok := m.sets[key]
	if !ok {
		if len(m.tables.ToolSets) >= 4096 {
			return anyTools
		}
		n = uint16(len(m.tables.ToolSets))
		m.sets[key] = n
		m.tables.ToolSets = append(m.tables.ToolSets, tools)
	}
	return n
}

// uses reports whether a record's line may use a tool.
func (x *index) uses(r *record, tool string) bool {
	return int(r.tools) >= len(x.ToolSets) || slices.Contains(x.ToolSets[r.tools], tool)
}

// write stores the index where it can be stored, unless the trace has changed meanwhile.
func (m *indexMaker) write(in *Info) {
	now, err := os.Stat(m.trace.Path)
	if m.unusable || err != nil || now.Size() != m.info.Size() || !now.ModTime().Equal(m.info.ModTime()) {
		return
	}
	m.tables.Problems = in.Problems
	for i := range m.tables.Lanes {
		t := &m.tables.Lanes[i]
		t.FirstMs = 0
		if l := in.lanes[t.Name]; l != nil && t.Name != trace.Orchestrator {
			t.FirstMs, t.LastMs = l.FirstMs, l.LastMs
			if l.account != nil {
				t.Model = l.account.fold.Turns()
			}
		}
	}
	m.markUnreported()
	tail, err := json.Marshal(m.tables)
	if err != nil {
		return
	}
	m.header = binary.LittleEndian.AppendUint64(m.header, uint64(len(m.records)/recordSize))
	m.header = append(m.header, make([]byte, headerSize-len(m.header))...)
	for _, path := range indexPaths(m.trace.Path, m.trace.opts) {
		if os.MkdirAll(filepath.Dir(path), 0o700) == nil &&
			atomicfile.Write(path, 0o600, m.header, m.records, tail) == nil {
			return
		}
	}
}

// markUnreported marks the lines of assistants after the last result of their lane: only they show
// what was used since.
func (m *indexMaker) markUnreported() {
	reported := make([]bool, len(m.tables.Lanes))
	var r record
	for at := len(m.records) - recordSize; at >= 0; at -= recordSize {
		r.decode(m.records[at:])
		switch {
		case r.kind == scan.Result:
			reported[r.lane] = true
		case r.kind == scan.Assistant && !reported[r.lane]:
			r.flags |= flagUnreported
			r.encode(m.records[at:])
		}
	}
}
