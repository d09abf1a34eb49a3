package evidence_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/fit-eval/fit/internal/evidence"
	"github.com/fit-eval/fit/ledger"
)

// TestAnArtefactLiesInTheDirectory: links may lead anywhere in the run directory and nowhere else,
// and nobody waits for the writer of a pipe.
func TestAnArtefactLiesInTheDirectory(t *testing.T) {
	outside, dir := t.TempDir(), t.TempDir()
	place := filepath.Join(dir, "runs", "1")
	for _, err := range []error{
		os.MkdirAll(place, 0o700),
		os.WriteFile(filepath.Join(outside, "secret"), []byte("secret"), 0o600),
		os.WriteFile(filepath.Join(dir, "kept"), []byte("kept"), 0o600),
		os.Symlink("../../kept", filepath.Join(place, "inside")),
		os.Symlink(filepath.Join(outside, "secret"), filepath.Join(place, "outside")),
		os.Symlink("../../..", filepath.Join(place, "above")),
		syscall.Mkfifo(filepath.Join(place, "pipe"), 0o600),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	d := &evidence.Directory{Root: dir}
	for name, want := range map[string]string{
		"kept":             "",
		"runs/1/inside":    "",
		"runs/1/outside":   "escapes",
		"runs/1/above/any": "escapes",
		"../any":           "escapes",
		"/etc/passwd":      "escapes",
		"runs/1/pipe":      "is not a regular file",
		"runs/1":           "is not a regular file",
		"runs/1/none":      "is missing",
	} {
		t.Run(name, func(t *testing.T) {
			content, err := d.Diff(&ledger.Record{DiffPath: name})
			if want == "" && (err != nil || string(content) != "kept") {
				t.Errorf("%s: %q, %v", name, content, err)
			}
			if want != "" && (err == nil || content != nil || !strings.Contains(err.Error(), want)) {
				t.Errorf("%s: %q, %v, want an error with %q", name, content, err, want)
			}
		})
	}
}
