package network

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/fit-eval/fit/internal/gateway/calls"
)

// watchProcesses looks again and again at the arguments and the environment of every process on
// this machine but this one, which has the key. What it returns ends that, and says which had the
// key, and how many different ones were looked at.
func watchProcesses() (end func() (holders []string, looked int)) {
	over, done := make(chan struct{}), make(chan struct{})
	found, seen := map[string]bool{}, map[string]bool{}
	own := strconv.Itoa(os.Getpid())
	go func() {
		defer close(done)
		for {
			processes, _ := filepath.Glob("/proc/[0-9]*")
			for _, process := range processes {
				for _, name := range []string{"cmdline", "environ"} {
					file := filepath.Join(process, name)
					content, err := os.ReadFile(file)
					if err != nil || filepath.Base(process) == own { // it has ended, or is another user's
						continue
					}
					seen[process] = true
					if bytes.Contains(content, []byte(key)) {
						found[file] = true
					}
				}
			}
			select {
			case <-over:
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	}()
	return func() (holders []string, looked int) {
		close(over)
		<-done
		for file := range found {
			holders = append(holders, file)
		}
		return holders, len(seen)
	}
}

// noFileHolds looks for a secret in every file below a directory, also in those that are packed.
func noFileHolds(t *testing.T, dir, secret string) {
	t.Helper()
	files, records := 0, 0
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		files++
		switch filepath.Ext(path) {
		case ".zst":
			content = unpacked(t, content)
		case calls.Extension:
			records++
			content = append(content, bodies(t, path)...)
		}
		if bytes.Contains(content, []byte(secret)) {
			t.Errorf("%s holds the key", path)
		}
		return err
	})
	if err != nil || files == 0 || records == 0 {
		t.Errorf("%v: %d files, %d records of calls", err, files, records)
	}
}

func unpacked(t *testing.T, packed []byte) []byte {
	decoder, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer decoder.Close()
	text, err := decoder.DecodeAll(packed, nil)
	if err != nil {
		t.Error(err)
	}
	return text
}

// bodies are all requests and replies of a record.
func bodies(t *testing.T, path string) (all []byte) {
	record, err := calls.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer record.Close()
	for _, call := range record.Calls() {
		for _, body := range []*calls.Body{call.Request, call.Response} {
			text, err := record.Body(body)
			if err != nil {
				t.Errorf("%s, call %d: %v", path, call.Seq, err)
			}
			all = append(all, text...)
		}
	}
	return all
}
