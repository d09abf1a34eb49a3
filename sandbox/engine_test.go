//go:build unix

package sandbox

import (
	"os"
	"path/filepath"
	"testing"
)

// writtenBeside is an engine that says of its first questions what podman says of any image while
// another one is being written: to find the parent of one, it reads all.
const writtenBeside = `#!/bin/sh
echo asked >> "$0.log"
if [ "$(wc -l < "$0.log")" -lt 3 ]; then
  echo 'Error: locating item named "manifest" for image with ID "19f8c0d2" (consider removing the image to resolve the issue): file does not exist' >&2
  exit 125
fi
echo '[{"Id": "4711"}]'
`

// It is not parallel: a program that was just written cannot be started while another test forks.
func TestAnImageIsFoundWhileAnotherIsWritten(t *testing.T) {
	program := filepath.Join(t.TempDir(), "podman")
	if err := os.WriteFile(program, []byte(writtenBeside), 0o755); err != nil {
		t.Fatal(err)
	}
	image, err := (&Engine{Kind: IsolationPodman, program: program}).Inspect(t.Context(), "one")
	if err != nil || image.ID != "sha256:4711" {
		t.Errorf("%+v, %v", image, err)
	}
}
