package query

import (
	"context"
	"encoding/json"
	"os"
	"regexp"
)

// ToolUse is one use of a tool and what came back.
type ToolUse struct {
	TurnIndex int             `json:"turnIndex"`
	Name      string          `json:"name"`
	ToolUseID string          `json:"toolUseId"`
	Input     json.RawMessage `json:"input,omitempty"`
	Result    *ToolResult     `json:"result"`
	Source    *string         `json:"source"`
	// The rest is additional: when it was asked and answered, and the sub-agent it belongs to.
	TimestampMs int64  `json:"timestampMs,omitempty"`
	DurationMs  *int64 `json:"durationMs,omitempty"`
	Parent      string `json:"parentToolUseId,omitempty"`
	// Command is the shell command and Path the first file, if it is about one.
	Command string `json:"-"`
	Path    string `json:"-"`
}

// ToolResult is the result of a tool call.
type ToolResult struct {
	Content *string `json:"content,omitempty"`
	IsError bool    `json:"isError"`
}

// entryPosition is where an entry is: in the file, or in memory if the file cannot be read again.
type entryPosition struct {
	entry  *Entry
	lane   *laneState
	index  int
	line   int64
	offset int64
	length int
	part   int
	role   Role
}

// pairing is a call and the place of its result. Only places are kept, so that a file of any length
// is paired in little memory.
type pairing struct {
	id     string
	call   entryPosition
	result *entryPosition
}

// ToolUses shows every tool call that has an id, with its result. A repeated id keeps its first
// place and its last value.
func (t *Trace) ToolUses(ctx context.Context, visit func(*ToolUse) error) error {
	pairs, err := t.pair(ctx)
	if err != nil {
		return err
	}
	reader, err := t.positionReader()
	if err != nil {
		return err
	}
	defer reader.close()
	for i := range pairs {
		if err := ctx.Err(); err != nil {
			return err
		}
		call, err := reader.call(&pairs[i])
		if err != nil {
			return err
		}
		if call == nil {
			continue
		}
		if err := visit(call); err != nil {
			return err
		}
	}
	return nil
}

func (t *Trace) pair(ctx context.Context) ([]pairing, error) {
	var pairs ordered[pairing]
	_, err := t.walk(ctx, plan{visit: func(e *Cursor) error {
		switch e.Role {
		case RoleAssistant:
			e.callIDs(func(id string) {
				pair, _ := pairs.row(new(e.inLane(id)))
				pair.id, pair.call = id, t.position(e)
			})
		case RoleToolResult:
			if pair := pairs.find(e.inLane(e.resultID())); pair != nil {
				pair.result = new(t.position(e))
			}
		}
		return nil
	}})
	return pairs.rows, err
}

func (t *Trace) position(e *Cursor) entryPosition {
	if !t.seekable || e.entry != nil {
		return entryPosition{entry: e.Entry()}
	}
	return entryPosition{
		lane:   e.lane,
		index:  e.Index,
		line:   e.Line,
		offset: e.ev.Offset,
		length: len(e.ev.Raw),
		part:   e.part,
		role:   e.Role,
	}
}

// positionReader reads entries at known places.
type positionReader struct {
	file     *os.File
	line     lineFetcher
	redactor Redactor
}

func (t *Trace) positionReader() (*positionReader, error) {
	r := &positionReader{redactor: t.opts.Redactor}
	if !t.seekable {
		return r, nil
	}
	file, err := os.Open(t.Path)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	r.file, r.line = file, lineFetcher{file: file, size: info.Size()}
	return r, nil
}

func (r *positionReader) close() {
	if r.file != nil {
		_ = r.file.Close()
	}
}

func (r *positionReader) entry(p *entryPosition) (*Entry, error) {
	if p.entry != nil {
		return p.entry, nil
	}
	ev, err := r.line.fetch(p.offset, p.length)
	if err != nil {
		return nil, err
	}
	e := Cursor{
		lane:  p.lane,
		Index: p.index,
		Role:  p.role,
		Line:  p.line,
		ev:    ev,
		part:  p.part,
	}
	if p.role == RoleToolResult && p.part >= len(ev.Parts) {
		return nil, errChanged
	}
	return e.decode().redact(r.redactor), nil
}

func (r *positionReader) call(p *pairing) (*ToolUse, error) {
	entry, err := r.entry(&p.call)
	if err != nil {
		return nil, err
	}
	var call *ToolUse
	for _, b := range entry.Content {
		if b.Type == BlockToolUse && textOf(b.ToolUseID) == p.id {
			call = &ToolUse{
				TurnIndex:   entry.Index,
				Name:        b.Name,
				ToolUseID:   p.id,
				Input:       b.Input,
				Source:      entry.Lane,
				TimestampMs: entry.TimestampMs,
				Parent:      entry.Parent,
			}
			call.Command, _ = b.command()
			if paths := b.paths(); len(paths) > 0 {
				call.Path = paths[0]
			}
		}
	}
	if call == nil || p.result == nil {
		return call, nil
	}
	result, err := r.entry(p.result)
	if err != nil {
		return nil, err
	}
	call.answer(result)
	return call, nil
}

func (c *ToolUse) answer(entry *Entry) {
	c.Result = &ToolResult{Content: entry.Result, IsError: entry.IsError}
	if c.TimestampMs != 0 && entry.TimestampMs >= c.TimestampMs {
		c.DurationMs = new(entry.TimestampMs - c.TimestampMs)
	}
}

// Command is one shell command.
type Command struct {
	TurnIndex int     `json:"turnIndex"`
	ToolUseID string  `json:"toolUseId"`
	Command   string  `json:"command"`
	Source    *string `json:"source"`
	IsError   *bool   `json:"isError,omitempty"`
}

// Commands shows the shell commands; match, if not nil, must find something in them.
func (t *Trace) Commands(ctx context.Context, match *regexp.Regexp, visit func(Command) error) error {
	var commands ordered[Command]
	_, err := t.walk(ctx, plan{visit: func(e *Cursor) error {
		switch e.Role {
		case RoleAssistant:
			if !e.usesAny() {
				return nil
			}
			entry := e.Entry()
			for i := range entry.Content {
				b := &entry.Content[i]
				text, ok := b.command()
				if !ok || textOf(b.ToolUseID) == "" {
					continue
				}
				command, _ := commands.row(new(e.inLane(*b.ToolUseID)))
				*command = Command{
					TurnIndex: entry.Index,
					ToolUseID: *b.ToolUseID,
					Command:   text,
					Source:    entry.Lane,
					IsError:   command.IsError,
				}
			}
		case RoleToolResult:
			if command := commands.find(e.inLane(e.resultID())); command != nil {
				command.IsError = new(e.IsError())
			}
		}
		return nil
	}})
	if err != nil {
		return err
	}
	for _, command := range commands.rows {
		if match != nil && !match.MatchString(command.Command) {
			continue
		}
		if err := visit(command); err != nil {
			return err
		}
	}
	return nil
}

// command returns the shell command of a call.
func (b *Block) command() (string, bool) {
	switch {
	case b.Type != BlockToolUse:
		return "", false
	case b.Canonical != "":
		return b.Command, b.Canonical == "bash"
	}
	return textOf(b.input("command")), b.Name == "Bash"
}
