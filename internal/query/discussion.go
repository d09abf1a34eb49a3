package query

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fit-eval/fit/internal/jsontape"
	"github.com/fit-eval/fit/internal/query/internal/scan"
	"github.com/fit-eval/fit/trace"
)

// firstLine is how much of a file is read to find the discussion it belongs to.
const firstLine = 64 << 10

// ByDiscussion lists the traces of a directory that belong to a discussion, oldest first by the
// time of their first event, else by that of the file.
func ByDiscussion(dir, id string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	type found struct {
		path string
		at   int64
	}
	var all []found
	for _, entry := range entries {
		path := filepath.Join(dir, entry.Name())
		if !entry.Type().IsRegular() || !strings.HasSuffix(entry.Name(), ".ndjson") {
			continue
		}
		at, ok := discussionStart(path, id)
		if !ok {
			continue
		}
		if info, err := entry.Info(); at == 0 && err == nil {
			at = info.ModTime().UnixMilli()
		}
		all = append(all, found{path, at})
	}
	slices.SortStableFunc(all, func(a, b found) int {
		return cmp.Or(cmp.Compare(a.at, b.at), strings.Compare(a.path, b.path))
	})
	paths := make([]string, len(all))
	for i := range all {
		paths[i] = all[i].path
	}
	return paths, nil
}

// discussionStart reports whether the first line of a file names a discussion, and when that line
// was written if it says so.
func discussionStart(path, id string) (int64, bool) {
	file, err := os.Open(path)
	if err != nil {
		return 0, false
	}
	defer file.Close()
	head, err := io.ReadAll(io.LimitReader(file, firstLine))
	if err != nil {
		return 0, false
	}
	line, _, _ := bytes.Cut(bytes.TrimPrefix(head, byteOrderMark), []byte("\n"))
	var ev scan.Event
	if !new(scan.LineScanner).Scan(line, &ev, &[]scan.Part{}) {
		return 0, false
	}
	var parser jsontape.Parser
	native, _ := parser.Parse(ev.Native)
	return ev.Ts, native.TextOf("type") == trace.TypeMeta && native.TextOf("discussion_id") == id
}
