package view

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/fit-eval/fit/internal/experiment"
)

// root is a path that the user gave. Nothing outside is served.
type root struct {
	given string // as the user wrote it
	dir   string // absolute; of a trace, its directory
	file  string // the trace's name; empty for a directory
}

// location is a run directory, or a trace outside of one.
type location struct {
	id    string
	shown string // as people know it: below the path that they gave
	path  string // absolute; empty of a comparison
	sides []side // of a comparison of two experiments
}

// The bounds of the search for run directories, so that a home directory given by mistake ends
// soon.
const (
	maxDepth  = 8
	maxPlaces = 20_000
)

func openRoots(paths []Path) ([]root, error) {
	var roots []root
	for _, path := range paths {
		given := path.Shown
		absolute, err := filepath.Abs(path.Real)
		if err != nil {
			return nil, err
		}
		info, err := os.Stat(absolute)
		switch {
		case err != nil:
			return nil, err
		case info.IsDir():
			roots = append(roots, root{given: given, dir: absolute})
		case info.Mode().IsRegular():
			roots = append(roots, root{given: given, dir: filepath.Dir(absolute), file: filepath.Base(absolute)})
		default:
			return nil, fmt.Errorf("%s is neither a directory nor a file", given)
		}
	}
	return roots, nil
}

// locationID names a place the same way after every start, and reveals nothing about its path.
func locationID(absolute string) string {
	sum := sha256.Sum256([]byte(absolute))
	return hex.EncodeToString(sum[:5])
}

// places finds the run directories and the traces below the roots.
func (s *Server) locations() (directories, traces []location) {
	seen := map[string]bool{}
	if s.compared != nil {
		directories = append(directories, s.compared.at)
	}
	for _, r := range s.roots {
		if r.file != "" {
			path := filepath.Join(r.dir, r.file)
			traces = append(traces, location{id: locationID(path), shown: r.given, path: path})
			continue
		}
		found, files := r.search()
		for _, one := range found {
			if !seen[one.path] {
				seen[one.path] = true
				directories = append(directories, one)
			}
		}
		for _, one := range files {
			if !seen[one.path] {
				seen[one.path] = true
				traces = append(traces, one)
			}
		}
	}
	return directories, traces
}

// search walks a root. It does not follow links, and it does not look into run directories, where
// agents have written.
func (r root) search() (directories, traces []location) {
	opened, err := os.OpenRoot(r.dir)
	if err != nil {
		return nil, nil
	}
	defer opened.Close()
	looked := 0
	_ = fs.WalkDir(opened.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		looked++
		switch {
		case looked > maxPlaces:
			return fs.SkipAll
		case err != nil: // unreadable entries are left out
			if entry != nil && entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		case !entry.IsDir():
			if entry.Type().IsRegular() && isTrace(name) {
				traces = append(traces, r.location(name))
			}
			return nil
		case name != "." && (strings.HasPrefix(path.Base(name), ".") || path.Base(name) == "node_modules"),
			strings.Count(name, "/") >= maxDepth:
			return fs.SkipDir
		case isRunDirectory(opened, name):
			directories = append(directories, r.location(name))
			return fs.SkipDir
		}
		return nil
	})
	return directories, traces
}

func (r root) location(name string) location {
	absolute := filepath.Join(r.dir, filepath.FromSlash(name))
	return location{id: locationID(absolute), shown: filepath.Join(r.given, filepath.FromSlash(name)), path: absolute}
}

// isTrace reports whether a file outside of run directories is shown as a trace, by its name.
func isTrace(name string) bool {
	for _, packed := range []string{".zst", ".gz"} {
		name = strings.TrimSuffix(name, packed)
	}
	return strings.HasSuffix(name, ".ndjson")
}

func isRunDirectory(opened *os.Root, dir string) bool {
	return slices.ContainsFunc([]string{experiment.LedgerFile, experiment.PlanFile}, func(name string) bool {
		info, err := opened.Lstat(path.Join(dir, name))
		return err == nil && info.Mode().IsRegular()
	})
}

// directory finds the run directory with an id.
func (s *Server) directory(id string) (location, error) {
	if strings.Contains(id, sidesIn) {
		return s.comparisonOf(id)
	}
	if known, ok := s.cache.location(id); ok {
		if _, err := os.Lstat(known.path); errors.Is(err, fs.ErrNotExist) && known.path != "" {
			return location{}, &problem{status: http.StatusGone, message: known.shown + " no longer exists"}
		}
		return known, nil
	}
	directories, _ := s.locations()
	s.cache.remember(directories)
	if known, ok := s.cache.location(id); ok {
		return known, nil
	}
	return location{}, notFound("there is no run directory "+quote(id)+" below the given ones",
		"fit view DIR shows others")
}

// tracePath finds the file of a trace id: the id of a trace outside of run directories, or that of
// a run directory and the file's name in it. Files that agents wrote are not served.
func (s *Server) tracePath(id string) (traceFile, error) {
	if s.threads != nil {
		return s.threads.trace(id)
	}
	dir, name, inside := strings.Cut(id, "/")
	if !inside {
		_, traces := s.locations()
		for _, one := range traces {
			if one.id == id {
				return traceFile{
					id:    id,
					name:  filepath.Base(one.path),
					shown: one.shown,
					path:  one.path,
				}, nil
			}
		}
		return traceFile{}, notFound("there is no trace "+quote(id)+" among the given ones", "fit view TRACE shows it")
	}
	at, err := s.directory(dir)
	if err != nil {
		return traceFile{}, err
	}
	if !isAttemptFile(name) || !isTrace(name) {
		return traceFile{}, notFound(quote(name)+" is not a trace of "+at.shown, "")
	}
	file, err := contained(at.path, name)
	if err != nil && !isPacked(name) { // traces are packed when their attempt has ended, and links to them stay
		if packed, again := contained(at.path, name+".zst"); again == nil {
			file, name, err = packed, name+".zst", nil
		}
	}
	if err != nil {
		return traceFile{}, err
	}
	return traceFile{
		id:    id,
		name:  path.Base(name),
		shown: filepath.Join(at.shown, filepath.FromSlash(name)),
		path:  file,
		dir:   at,
	}, nil
}

// traceFile is a trace that may be read.
type traceFile struct {
	id    string
	name  string
	shown string
	path  string
	dir   location // the run directory that it belongs to; the zero value outside of one
	// bytes and modifiedMs are those of the file when it was opened.
	bytes      int64
	modifiedMs int64
}

// stamp changes with the file.
func (f traceFile) stamp() string { return fmt.Sprintf("%d %d", f.bytes, f.modifiedMs) }

// isAttemptFile reports whether a name in a run directory is that of a file which fit keeps of an
// attempt: runs/task/arm/run/attempt/file, or one level deeper except in the agent's own directory.
func isAttemptFile(name string) bool {
	parts := strings.Split(name, "/")
	return fs.ValidPath(name) && parts[0] == experiment.RunsDir &&
		(len(parts) == 6 || len(parts) == 7 && parts[5] != finalDir)
}

// irregular returns an error if a file that fit opens by name is not a regular file: reading a pipe
// would wait forever, and a link leads out of the directory.
func irregular(at location) error {
	entries, err := os.ReadDir(at.path)
	if err != nil {
		return nil //nolint:nilerr // reading it reports the error
	}
	for _, entry := range entries {
		opened := slices.Contains([]string{".json", ".jsonl", ".yaml"}, filepath.Ext(entry.Name()))
		if opened && !entry.Type().IsRegular() {
			return fmt.Errorf("%s is not a regular file; put the original back", filepath.Join(at.shown, entry.Name()))
		}
	}
	return nil
}

// finalDir is what the agent left, in the directory of an attempt.
const finalDir = "cwd"

// contained returns the path of a regular file in a directory. A name that leads out of the
// directory, by dots or by links, does not exist.
func contained(dir, name string) (string, error) {
	gone := notFound(quote(name)+" is not there", "")
	opened, err := os.OpenRoot(dir)
	if err != nil {
		return "", gone
	}
	defer opened.Close()
	info, err := opened.Stat(filepath.FromSlash(name))
	switch {
	case errors.Is(err, fs.ErrPermission):
		return "", unreadable(errors.New(quote(name) + " cannot be read: permission denied"))
	case err != nil || !info.Mode().IsRegular():
		return "", gone
	}
	// Traces are opened by their path, with an index beside them: there must be no link on the way.
	base, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", gone
	}
	want := filepath.Join(base, filepath.FromSlash(name))
	if resolved, err := filepath.EvalSymlinks(want); err != nil || resolved != want {
		return "", gone
	}
	return want, nil
}

// readContained reads at most limit bytes of a file in a run directory.
func readContained(dir, name string, limit int64) (content []byte, size int64, err error) {
	opened, err := os.OpenRoot(dir)
	if err != nil {
		return nil, 0, err
	}
	defer opened.Close()
	// opening a pipe must not wait for its writer
	file, err := opened.OpenFile(filepath.FromSlash(name), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, 0, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, 0, err
	}
	if !info.Mode().IsRegular() {
		return nil, 0, fmt.Errorf("%s is not a regular file", name)
	}
	content = make([]byte, min(limit, info.Size()))
	n, err := io.ReadFull(file, content)
	if errors.Is(err, io.ErrUnexpectedEOF) { // it has been cut meanwhile
		err = nil
	}
	return content[:n], info.Size(), err
}
