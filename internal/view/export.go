package view

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/internal/query"
	"github.com/fit-eval/fit/ledger"
)

// DefaultMaxBytes is the default limit of a page in one file: two megabytes.
const DefaultMaxBytes = 2_000_000

// ExportConfig says what a page in one file contains.
type ExportConfig struct {
	// Command is shown as the command that made the file, and NowMs as the time.
	Command string
	NowMs   int64
	// MaxBytes bounds the file; 0 is DefaultMaxBytes. Transcripts are left out to keep it.
	MaxBytes int
}

// frozen is the data of a page in one file: the answers of the endpoints, by their addresses.
type frozen struct {
	Version     int            `json:"version"`
	Start       string         `json:"start"`
	GeneratedMs int64          `json:"generatedMs"`
	Command     string         `json:"command"`
	LeftOut     int            `json:"leftOut"`
	Cells       int            `json:"cells"` // how many cells have only their mark in the grid
	Responses   map[string]any `json:"responses"`
	// Kept are the entries of the traces that did not fit: pairs of the first one and that after
	// the last one.
	Kept map[string][][2]int `json:"kept,omitempty"`

	handler http.Handler
	bytes   int
	limit   int
	full    int // how often in a row something did not fit
	empty   int // traces without entries
}

// maxFull is after how many things in a row that do not fit no further ones are tried.
const maxFull = 20

// exportBuckets is the resolution of the lanes in a file.
const exportBuckets = 200

// Export writes everything that the server shows as one HTML page that opens from disk. First come
// the experiments with all their cells, then the transcripts, up to the limit: of cells that did
// not pass before those that did. Of transcripts that do not fit it keeps what does: the beginning,
// the end, the errors.
func (s *Server) Export(ctx context.Context, w io.Writer, cfg ExportConfig) error {
	f := s.newFrozen(cfg)
	if err := f.keep(ctx, "/api/experiments"); err != nil {
		return err
	}
	directories, traces := s.locations()
	var transcripts []string
	for _, at := range directories {
		more, err := f.experiment(ctx, s, at)
		if err != nil {
			return err
		}
		transcripts = append(transcripts, more...)
	}
	for _, at := range traces {
		transcripts = append(transcripts, at.id)
	}
	limit := cmp.Or(cfg.MaxBytes, DefaultMaxBytes)
	if f.bytes > f.limit {
		return fmt.Errorf("the page has %d bytes without any transcript: set --max-bytes to that or more, not %d",
			f.bytes+limit-f.limit, limit)
	}
	if err := f.transcripts(ctx, transcripts); err != nil {
		return err
	}
	if len(directories) == 0 && len(traces) > 0 && f.empty == len(traces) {
		return fmt.Errorf("%s: %w", traces[0].shown, query.ErrNothing)
	}
	if len(directories) == 0 && len(traces) > 0 && f.LeftOut == len(traces) {
		return fmt.Errorf("no entry fits into %d bytes: raise --max-bytes", limit)
	}
	switch {
	case len(directories) == 1 || len(s.cfg.Compared) > 0:
		f.Start = "#/x/" + directories[0].id
	case len(directories) == 0 && len(traces) == 1:
		f.Start = "#/trace/" + traces[0].id
	}
	return s.writePage(w, f)
}

func (s *Server) newFrozen(cfg ExportConfig) *frozen {
	page := len(s.assets["index.html"].content) + len(s.assets["app.js"].content) + len(s.assets["app.css"].content)
	return &frozen{
		Version:     version,
		GeneratedMs: cfg.NowMs,
		Command:     cfg.Command,
		Responses:   map[string]any{},
		handler:     s.mux(),
		limit:       cmp.Or(cfg.MaxBytes, DefaultMaxBytes) - page - 1024,
	}
}

// ExportCell writes one cell of the only run directory that the server shows as an HTML page that
// opens from disk: nothing of other cells is in it.
func (s *Server) ExportCell(ctx context.Context, w io.Writer, of ledger.Cell, cfg ExportConfig) error {
	directories, _ := s.locations()
	if len(directories) != 1 {
		return fmt.Errorf("a cell is one of a run directory, and %d are shown", len(directories))
	}
	return s.exportCell(ctx, w, directories[0], of, cfg)
}

func (s *Server) exportCell(ctx context.Context, w io.Writer, at location, of ledger.Cell, cfg ExportConfig) error {
	f := s.newFrozen(cfg)
	name := strings.Join([]string{component(of.TaskID), component(of.Arm), strconv.Itoa(of.RunIndex)}, "/")
	address := "/api/experiments/" + at.id + "/cells/" + name
	answer, err := f.answer(ctx, address)
	if err != nil {
		return err
	}
	f.put(address, pack(answer))
	if f.bytes > f.limit {
		return fmt.Errorf("the cell has %d bytes without its transcript: raise --max-bytes", f.bytes)
	}
	transcripts, err := tracesIn(answer)
	if err != nil {
		return err
	}
	if err := f.transcripts(ctx, transcripts); err != nil {
		return err
	}
	f.Start = "#/x/" + at.id + "/" + name
	return s.writePage(w, f)
}

// cellFile answers with one cell as a file.
func (s *Server) cellFile(r *http.Request, at location) (any, error) {
	run, err := strconv.Atoi(r.PathValue("run"))
	if err != nil {
		return nil, badRequest("run=" + quote(r.PathValue("run")) + ": want a number of at least 0")
	}
	of := ledger.Cell{TaskID: r.PathValue("task"), Arm: r.PathValue("arm"), RunIndex: run}
	var out bytes.Buffer
	err = s.exportCell(r.Context(), &out, at, of, ExportConfig{NowMs: time.Now().UnixMilli(), Command: "fit view"})
	if err != nil {
		return nil, err
	}
	name := strings.Map(func(r rune) rune {
		if strings.ContainsRune(`/\:*?"<>|`, r) {
			return '-'
		}
		return r
	}, display.Name(fmt.Sprintf("%s-%s-%s-%d", at.name(), of.TaskID, of.Arm, run)))
	return raw{kind: "text/html; charset=utf-8", content: out.Bytes(), name: name + ".html"}, nil
}

// tracesIn lists the traces that the answer about a cell names.
func tracesIn(answer []byte) (ids []string, err error) {
	var found struct {
		Traces []traceRef `json:"traces"`
	}
	err = json.Unmarshal(answer, &found)
	for _, t := range found.Traces {
		ids = append(ids, t.Trace)
	}
	return ids, err
}

// experiment keeps a run directory with its cells and returns its traces, those of failures first.
func (f *frozen) experiment(ctx context.Context, s *Server, at location) ([]string, error) {
	base := "/api/experiments/" + at.id
	for _, address := range []string{base, base + "/cells"} {
		if err := f.keep(ctx, address); err != nil {
			return nil, err
		}
	}
	snap := s.snapshot(at)
	optional := []string{base + "/forest"}
	if snap.kind() == kindVersus {
		optional = append(optional, base+"/versus")
	}
	if testedSkill(at) != "" {
		optional = append(optional, base+"/skill")
	}
	for _, address := range optional {
		var none *problem
		answer, err := f.answer(ctx, address)
		switch {
		case err == nil:
			f.fits(address, pack(answer)) // the page says what it does not have
		case !errors.As(err, &none):
			return nil, err
		}
	}
	cells := slices.Clone(snap.cells)
	slices.SortStableFunc(cells, func(a, b *cell) int { return cellPriority(a.State) - cellPriority(b.State) })
	var transcripts []string
	for _, c := range cells {
		address := fmt.Sprintf("%s/cells/%s/%s/%d", base, component(c.Task), component(c.Arm), c.Run)
		if f.full >= maxFull { // the grid shows it anyway
			f.Cells++
			continue
		}
		answer, err := f.answer(ctx, address)
		if err != nil {
			return nil, err
		}
		traces, err := tracesIn(answer)
		if err != nil {
			return nil, err
		}
		if !f.fits(address, pack(answer)) {
			f.Cells++
			continue
		}
		transcripts = append(transcripts, traces...)
	}
	return transcripts, nil
}

// cellPriority sorts the cells whose transcripts people want to read first.
func cellPriority(state string) int {
	return slices.Index([]string{stateFail, stateError, stateRetry, stateRunning, statePass, stateWaiting}, state)
}

// keep puts an answer into the file.
func (f *frozen) keep(ctx context.Context, address string) error {
	answer, err := f.answer(ctx, address)
	if err != nil {
		return err
	}
	if len(answer) < 4<<10 {
		f.put(address, json.RawMessage(answer))
	} else {
		f.put(address, pack(answer))
	}
	return nil
}

// fits puts an answer into the file if there is room for it.
func (f *frozen) fits(address, packed string) bool {
	if f.bytes+len(address)+8+len(packed) > f.limit {
		f.full++
		return false
	}
	f.full = 0
	f.put(address, packed)
	return true
}

func (f *frozen) put(address string, answer any) {
	f.Responses[address] = answer
	f.bytes += len(address) + 8
	switch a := answer.(type) {
	case string:
		f.bytes += len(a)
	case json.RawMessage:
		f.bytes += len(a)
	}
}

// pack shortens an answer for the file.
func pack(answer []byte) string {
	var out bytes.Buffer
	writer, _ := gzip.NewWriterLevel(&out, gzip.BestCompression) // the level is a valid one
	_, _ = writer.Write(answer)                                  // a buffer takes everything
	_ = writer.Close()
	return "gz:" + base64.StdEncoding.EncodeToString(out.Bytes())
}

// component escapes a part of an address as the pages' encodeURIComponent does, so that they find
// the answer.
func component(text string) string {
	var out strings.Builder
	for i := range len(text) {
		switch c := text[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', strings.IndexByte("-_.!~*'()", c) >= 0:
			out.WriteByte(c)
		default:
			fmt.Fprintf(&out, "%%%02X", c)
		}
	}
	return out.String()
}

// answer asks an endpoint.
func (f *frozen) answer(ctx context.Context, address string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return nil, err
	}
	out := &recorder{header: http.Header{}, status: http.StatusOK}
	f.handler.ServeHTTP(out, request)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case out.status != http.StatusOK:
		var said struct {
			Error struct {
				Message string `json:"message"`
			} `json:"error"`
		}
		_ = json.Unmarshal(out.body.Bytes(), &said) // else it is empty
		return nil, &problem{status: out.status, message: said.Error.Message}
	}
	if kind := out.header.Get("Content-Type"); imageKinds[kind] { // a page without a server shows it from its address
		return []byte("data:" + kind + ";base64," + base64.StdEncoding.EncodeToString(out.body.Bytes())), nil
	}
	return out.body.Bytes(), nil
}

// recorder keeps an answer.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (r *recorder) Header() http.Header            { return r.header }
func (r *recorder) WriteHeader(status int)         { r.status = status }
func (r *recorder) Write(part []byte) (int, error) { return r.body.Write(part) }

// The lines of index.html that are replaced with what they name.
const (
	styleLine  = `<link rel="stylesheet" href="app.css">`
	scriptLine = `<script defer src="app.js"></script>`
)

// writePage writes the page with its style, its script and its data in it. The policy allows only
// that script and style.
func (s *Server) writePage(w io.Writer, f *frozen) error {
	var data bytes.Buffer
	encoder := json.NewEncoder(&data) // it escapes <, > and &, so that the data cannot end its block
	if err := encoder.Encode(f); err != nil {
		return err
	}
	page := string(s.assets["index.html"].content)
	if strings.Count(page, styleLine) != 1 || strings.Count(page, scriptLine) != 1 {
		return errors.New("the front end has no place for its style and its script")
	}
	style := string(s.assets["app.css"].content)
	script := strings.ReplaceAll(string(s.assets["app.js"].content), "</script", `<\/script`)
	if strings.Contains(style, "</style") {
		return errors.New("the style would end its block")
	}
	page = strings.Replace(page, scriptLine, "", 1)
	page = strings.Replace(page, styleLine, fmt.Sprintf(
		`<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'sha256-%s'; style-src 'sha256-%s'; img-src data:; base-uri 'none'; form-action 'none'">`+
			"\n<style>%s</style>", sum(script), sum(style), style), 1)
	ending := fmt.Sprintf("<script type=\"application/json\" id=\"fit-data\">%s</script>\n<script>%s</script>\n</body>",
		bytes.TrimSpace(data.Bytes()), script)
	at := strings.LastIndex(page, "</body>")
	if at < 0 {
		return errors.New("the front end has no body")
	}
	_, err := io.WriteString(w, page[:at]+ending+page[at+len("</body>"):])
	return err
}

func sum(text string) string {
	digest := sha256.Sum256([]byte(text))
	return base64.StdEncoding.EncodeToString(digest[:])
}
