package view

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"

	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/internal/jsonenc"
	"github.com/fit-eval/fit/internal/query"
	"github.com/fit-eval/fit/session"
)

// entry is an entry of a trace as pages show it.
type entry struct {
	Index       int              `json:"index"`
	Role        query.Role       `json:"role"`
	Lane        string           `json:"lane"`
	TimestampMs int64            `json:"timestampMs"`
	Line        int64            `json:"line"`
	Parent      string           `json:"parent,omitempty"`
	Blocks      []block          `json:"blocks"`
	Usage       *query.UsageJSON `json:"usage,omitempty"`
	ToolUseID   string           `json:"toolUseId,omitempty"`
	CallIndex   *int             `json:"callIndex,omitempty"`
	IsError     bool             `json:"isError,omitempty"`
	Subtype     string           `json:"subtype,omitempty"`
	Data        string           `json:"data,omitempty"`
	DataBytes   int              `json:"dataBytes,omitempty"`
	DataCut     bool             `json:"dataCut,omitempty"`
}

// block is a part of an entry.
type block struct {
	Type      string      `json:"type"`
	Text      string      `json:"text,omitempty"`
	Bytes     int         `json:"bytes"`
	Cut       bool        `json:"cut"`
	ID        string      `json:"id,omitempty"`
	Name      string      `json:"name,omitempty"`
	Title     string      `json:"title,omitempty"`
	Input     string      `json:"input,omitempty"`
	Result    *callResult `json:"result,omitempty"`
	N         *int        `json:"n,omitempty"`
	Block     *int        `json:"block,omitempty"`
	MediaType string      `json:"mediaType,omitempty"`
}

// callResult is the result of a tool call.
type callResult struct {
	Index      int        `json:"index"`
	IsError    bool       `json:"isError"`
	Text       string     `json:"text"`
	Bytes      int        `json:"bytes"`
	Cut        bool       `json:"cut"`
	DurationMs *int64     `json:"durationMs"`
	ExitCode   *int       `json:"exitCode,omitempty"`
	FirstError string     `json:"firstError,omitempty"` // the first line of a failure
	Images     []imageRef `json:"images,omitempty"`
}

// imageRef says where the bytes of an image are: /api/trace/image?trace=…&n=…&block=…
type imageRef struct {
	N     int `json:"n"`
	Block int `json:"block"`
}

// images are the images of a block, which is the at-th of an entry.
func (b *block) images(index, at int) []imageRef {
	switch {
	case b.Result != nil:
		return b.Result.Images
	case b.Type != "image":
		return nil
	case b.N != nil && b.Block != nil:
		return []imageRef{{N: *b.N, Block: *b.Block}}
	}
	return []imageRef{{N: index, Block: at}}
}

const (
	// cutAt is how much of a text a page has.
	cutAt = 8 << 10
	// titleLength limits the line that represents a folded call.
	titleLength = 300
	// reach is how far from its call a result is looked for.
	reach = 100
)

// window reads the entries from from up to, not including, to. Calls get the results within reach,
// and results the calls.
func window(ctx context.Context, t *query.Trace, from, to int) ([]entry, error) {
	type call struct {
		at    int // among the items; -1 before them
		block int
		index int
		ms    int64
	}
	items := []entry{}
	calls := map[string]call{} // the last of each lane and id
	err := t.Range(ctx, max(0, from-reach), to+reach, func(e *query.Entry) error {
		inside := e.Index >= from && e.Index < to
		at := -1
		if inside {
			at = len(items)
			items = append(items, show(e, cutAt))
		}
		for i := range e.Content {
			if b := &e.Content[i]; b.Type == query.BlockToolUse && b.ToolUseID != nil {
				calls[e.LaneName()+"\x00"+*b.ToolUseID] = call{
					at:    at,
					block: i,
					index: e.Index,
					ms:    e.TimestampMs,
				}
			}
		}
		if e.Role != query.RoleToolResult || e.ToolUseID == nil {
			return nil
		}
		known, ok := calls[e.LaneName()+"\x00"+*e.ToolUseID]
		if !ok {
			return nil
		}
		if inside {
			items[at].CallIndex = &known.index
		}
		if known.at >= 0 {
			items[known.at].Blocks[known.block].Result = resultOf(e, known.ms)
		}
		return nil
	})
	return items, err
}

// show converts an entry for pages. Texts are cut at limit bytes; 0 is no limit.
func show(e *query.Entry, limit int) entry {
	shown := entry{
		Index:       e.Index,
		Role:        e.Role,
		Lane:        e.LaneName(),
		TimestampMs: e.TimestampMs,
		Line:        e.Line,
		Parent:      e.Parent,
		Usage:       (*query.UsageJSON)(e.Usage),
		IsError:     e.IsError,
		Blocks:      []block{},
	}
	if e.Subtype != nil {
		shown.Subtype = *e.Subtype
	}
	if e.ToolUseID != nil {
		shown.ToolUseID = *e.ToolUseID
	}
	if len(e.Data) > 0 {
		shown.Data, shown.DataBytes, shown.DataCut = cut(string(e.Data), limit)
	}
	for i := range e.Content {
		shown.Blocks = append(shown.Blocks, showBlock(&e.Content[i], e.Index, i, limit))
	}
	if e.Result != nil {
		shown.Blocks = append(shown.Blocks, resultBlocks(e, limit)...)
	}
	return shown
}

func showBlock(b *query.Block, n, at, limit int) block {
	shown := block{Type: b.Type}
	switch b.Type {
	case query.BlockText, query.BlockThinking:
		shown.Text, shown.Bytes, shown.Cut = cut(b.Text, limit)
	case query.BlockToolUse:
		shown.Name, shown.Title = b.Name, titleOf(b)
		shown.Input, shown.Bytes, shown.Cut = cut(string(b.Input), limit)
		if b.ToolUseID != nil {
			shown.ID = *b.ToolUseID
		}
	default:
		if kind, _, ok := imageIn(b.Raw); ok {
			return block{
				Type:      "image",
				N:         &n,
				Block:     &at,
				MediaType: kind,
			}
		}
		shown.Type, shown.Name = "other", b.Type
		shown.Text, shown.Bytes, shown.Cut = cut(string(b.Raw), limit)
	}
	return shown
}

// resultBlocks splits a tool result: a text, or a list of texts and images.
func resultBlocks(e *query.Entry, limit int) []block {
	var blocks []block
	for i, part := range resultParts(*e.Result) {
		if part.kind != "" {
			blocks = append(blocks, block{
				Type:      "image",
				N:         &e.Index,
				Block:     &i,
				MediaType: part.kind,
			})
			continue
		}
		b := block{Type: query.BlockText}
		b.Text, b.Bytes, b.Cut = cut(part.text, limit)
		blocks = append(blocks, b)
	}
	return blocks
}

// resultPart is a text, or an image where kind is set.
type resultPart struct {
	text string
	kind string
	data string // base64
}

// resultParts splits the content of a tool result where it is a list of blocks.
func resultParts(content string) []resultPart {
	var list []json.RawMessage
	if !strings.HasPrefix(content, "[{") || json.Unmarshal([]byte(content), &list) != nil {
		return []resultPart{{text: content}}
	}
	var parts []resultPart
	for _, one := range list {
		var text struct {
			Type string  `json:"type"`
			Text *string `json:"text"`
		}
		kind, data, image := imageIn(one)
		switch {
		case image:
			parts = append(parts, resultPart{kind: kind, data: data})
		case json.Unmarshal(one, &text) == nil && text.Type == query.BlockText && text.Text != nil:
			parts = append(parts, resultPart{text: *text.Text})
		default:
			parts = append(parts, resultPart{text: string(one)})
		}
	}
	return parts
}

// imageKinds are the types of images that are shown. None of them can hold a script.
var imageKinds = map[string]bool{"image/png": true, "image/jpeg": true, "image/gif": true, "image/webp": true}

// imageIn finds the image of a block, in the forms that models accept.
func imageIn(raw json.RawMessage) (kind, data string, ok bool) {
	var image struct {
		Type     string `json:"type"`
		MimeType string `json:"mimeType"`
		Data     string `json:"data"`
		Source   struct {
			MediaType string `json:"media_type"`
			Data      string `json:"data"`
		} `json:"source"`
	}
	if len(raw) == 0 || json.Unmarshal(raw, &image) != nil || image.Type != "image" {
		return "", "", false
	}
	kind, data = image.Source.MediaType, image.Source.Data
	if data == "" {
		kind, data = image.MimeType, image.Data
	}
	return kind, data, imageKinds[kind] && data != ""
}

func resultOf(e *query.Entry, calledMs int64) *callResult {
	result := &callResult{Index: e.Index, IsError: e.IsError, ExitCode: e.ExitCode}
	if e.TimestampMs > 0 && calledMs > 0 && e.TimestampMs >= calledMs {
		result.DurationMs = new(e.TimestampMs - calledMs)
	}
	if e.Result == nil {
		return result
	}
	var texts []string
	for i, part := range resultParts(*e.Result) {
		if part.kind != "" {
			result.Images = append(result.Images, imageRef{N: e.Index, Block: i})
			continue
		}
		texts = append(texts, part.text)
	}
	result.Text, result.Bytes, result.Cut = cut(strings.Join(texts, "\n"), cutAt)
	if e.IsError || e.ExitCode != nil && *e.ExitCode != 0 {
		result.FirstError = firstError(result.Text)
	}
	return result
}

// firstError returns the first line of a failure that says something beside the exit code.
func firstError(text string) string {
	for line := range strings.SplitSeq(text, "\n") {
		if line = strings.TrimSpace(line); line != "" && session.ExitCode(line) == nil {
			return display.CutRunes(line, titleLength)
		}
	}
	return ""
}

// cut returns the beginning of a text, how long the whole is, and whether it was cut.
func cut(text string, limit int) (string, int, bool) {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if limit == 0 || len(text) <= limit {
		return text, len(text), false
	}
	return display.FirstBytes(text, limit), len(text), true
}

// titleKeys are the arguments that say most about a call, the best first.
var titleKeys = []string{
	"command", "cmd", "file_path", "path", "notebook_path", "pattern", "query", "url", "description", "prompt",
	"message",
}

// titleOf returns one line for a folded call: its command, its file, or its first argument.
func titleOf(b *query.Block) string {
	title := b.Command
	if title == "" && len(b.Paths) > 0 {
		title = b.Paths[0]
	}
	if title == "" {
		best := len(titleKeys)
		jsonenc.EachMember(b.Input, func(key string, value []byte) {
			text, ok := jsonenc.Text(value)
			if !ok || strings.TrimSpace(text) == "" {
				return
			}
			for i, known := range titleKeys[:best] {
				if key == known {
					best, title = i, text
					return
				}
			}
			title = cmp.Or(title, text)
		})
	}
	return display.CutRunes(strings.Join(strings.Fields(display.FirstBytes(title, 4*titleLength)), " "), titleLength)
}
