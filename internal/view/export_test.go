package view

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/agent/builtin"
)

// exportData is the block of data of an exported page.
type exportData struct {
	LeftOut   int
	Cells     int
	Responses map[string]json.RawMessage
	Kept      map[string][][2]int
}

func exportOf(t *testing.T, cfg ExportConfig, path string) (data exportData, size int, err error) {
	t.Helper()
	server, err := New(Config{Paths: []Path{{Shown: "it", Real: path}}, Dialects: builtin.New().Dialects()})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	var page bytes.Buffer
	if err := server.Export(t.Context(), &page, cfg); err != nil {
		return data, page.Len(), err
	}
	_, rest, _ := strings.Cut(page.String(), `id="fit-data">`)
	block, _, _ := strings.Cut(rest, "</script>")
	if err := json.Unmarshal([]byte(block), &data); err != nil {
		t.Fatal(err)
	}
	return data, page.Len(), nil
}

// longTrace writes a trace of a size that does not compress, with an error in the middle, and
// returns how many entries it has.
func longTrace(t *testing.T, path string, size int) (entries, failed int) {
	t.Helper()
	random := rand.NewChaCha8([32]byte{})
	noise := make([]byte, 3000)
	var out strings.Builder
	for out.Len() < size {
		_, _ = random.Read(noise)
		kind, text := "assistant", base64.StdEncoding.EncodeToString(noise)
		if failed == 0 && out.Len() > size/2 {
			fmt.Fprintf(&out, `{"type":"user","message":{"role":"user","content":[{"type":"tool_result",`+
				`"tool_use_id":"t","content":%q,"is_error":true}]}}`+"\n", text)
			failed = entries
		} else {
			fmt.Fprintf(&out, `{"type":%q,"message":{"id":"m%d","role":%[1]q,"content":[{"type":"text","text":%[3]q}]}}`+"\n",
				kind, entries, text)
		}
		entries++
	}
	if err := os.WriteFile(path, []byte(out.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return entries, failed
}

// TestExportOfALongTrace: a trace that does not fit into a file is there with its beginning, its
// end and its errors; the file says which entries it holds, and keeps its size.
func TestExportOfALongTrace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "long.ndjson")
	entries, failed := longTrace(t, path, 12<<20)
	data, size, err := exportOf(t, ExportConfig{}, path)
	if err != nil {
		t.Fatal(err)
	}
	held := map[int]bool{}
	for _, ranges := range data.Kept {
		for _, r := range ranges {
			for i := r[0]; i < r[1]; i++ {
				held[i] = true
			}
		}
	}
	if !held[0] || !held[entries-1] || !held[failed] || len(held) < 200 {
		t.Errorf("of %d entries %d are there; first %t, last %t, error %t", entries, len(held), held[0], held[entries-1],
			held[failed])
	}
	if size > DefaultMaxBytes || size < DefaultMaxBytes*9/10 {
		t.Errorf("the file has %d bytes", size)
	}
	if data.LeftOut != 0 {
		t.Errorf("%d transcripts are left out", data.LeftOut)
	}
	page := size - len(path)
	for _, limit := range []int{page / 2, 1000} {
		data, size, err := exportOf(t, ExportConfig{MaxBytes: limit}, path)
		if err == nil && (len(data.Kept) == 0 || size > limit) {
			t.Errorf("a file of %d bytes for %d holds %v", size, limit, data.Kept)
		}
	}
}

// TestExportOfManyCells: cells that do not fit are in the grid, and the file says how many have no
// page of their own.
func TestExportOfManyCells(t *testing.T) {
	dir := runDirectory(t, filepath.Join(t.TempDir(), "run"))
	server, err := New(Config{Paths: []Path{{Shown: "run", Real: dir}}, Dialects: builtin.New().Dialects()})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	err = server.Export(t.Context(), io.Discard, ExportConfig{MaxBytes: 1000})
	var least, limit int
	if err == nil {
		t.Fatal("a page that cannot be so small was written")
	}
	_, text, _ := strings.Cut(err.Error(), "has ")
	if _, scanned := fmt.Sscanf(text, "%d bytes", &least); scanned != nil {
		t.Fatalf("the message does not name the least size: %v", err)
	}
	limit = least + 4000
	data, size, err := exportOf(t, ExportConfig{MaxBytes: limit}, dir)
	if err != nil {
		t.Fatal(err)
	}
	if data.Cells == 0 || data.Cells == 48 || size > limit {
		t.Errorf("%d bytes of %d, %d cells left out", size, limit, data.Cells)
	}
}
