//go:build !linux

package control

import "path/filepath"

// opened is a run directory.
type opened struct{ dir string }

func openDir(dir string) (opened, error) { return opened{dir}, nil }

func (o opened) name(file string) string { return filepath.Join(o.dir, file) }

func (o opened) close() {}
