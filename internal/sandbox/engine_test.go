//go:build unix

package sandbox

import (
	"os"
	"path/filepath"
	"testing"
)

// An engine that fails twice, with what podman says of any image while another process writes or
// removes one: to find the parent of an image or a layer to reuse, it reads all images.
const (
	imageWritten = `#!/bin/sh
echo asked >> "$0.log"
if [ "$(wc -l < "$0.log")" -lt 3 ]; then
  echo 'Error: locating item named "manifest" for image with ID "19f8c0d2" (consider removing the image to resolve the issue): file does not exist' >&2
  exit 125
fi
echo '[{"Id": "4711"}]'
`
	imageRemoved = `#!/bin/sh
case "$1" in
build)
  echo asked >> "$0.log"
  if [ "$(wc -l < "$0.log")" -lt 3 ]; then
    echo 'Error: checking if cached image exists from a previous build: getting top layer info: layer not known' >&2
    exit 125
  fi
  touch "$0.built" ;;
image)
  if [ ! -e "$0.built" ]; then echo 'Error: one: image not known' >&2; exit 125; fi
  echo '[{"Id": "4711"}]' ;;
esac
`
)

// fakePodman is for tests that are not parallel: a program that was just written cannot be started
// while another test forks.
func fakePodman(t *testing.T, script string) *Engine {
	t.Helper()
	program := filepath.Join(t.TempDir(), "podman")
	if err := os.WriteFile(program, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return &Engine{Kind: IsolationPodman, program: program}
}

func TestAnImageIsFoundWhileAnotherIsWritten(t *testing.T) {
	image, err := fakePodman(t, imageWritten).Inspect(t.Context(), "one")
	if err != nil || image.ID != "sha256:4711" {
		t.Errorf("%+v, %v", image, err)
	}
}

func TestAnImageIsBuiltWhileAnotherIsRemoved(t *testing.T) {
	engine := fakePodman(t, imageRemoved)
	image, err := engine.Build(t.Context(), Build{Content: "sha256:one", Text: "FROM scratch", Context: t.TempDir()})
	if err != nil || image.ID != "sha256:4711" {
		t.Errorf("%+v, %v", image, err)
	}
}
