package bwrap

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fit-eval/fit/internal/sandbox/proc"
)

// systemPaths are the paths that programs need to run at all. Those that exist are shown read-only.
var systemPaths = []string{
	"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix/store",
}

// emptyPaths are there, writable and empty; what is written there is gone afterwards. They are
// directories of the sandbox's own root: mounts would cost time.
var emptyPaths = []string{"/tmp", "/var/tmp", "/home", "/root", "/run"}

// procReadOnly are the parts of /proc through which root changes the machine. Bubblewrap leaves
// /proc/sys open to it.
var procReadOnly = []string{"/proc/sys", "/proc/sysrq-trigger"}

// How callers ask for a path.
const (
	asReadable = "readable"
	asWritable = "writable"
)

// mount describes one path of the sandbox.
type mount struct {
	kind   string // a bwrap option
	source string // empty for options without one
	open   bool   // a directory in which everybody may write
}

// Request names the paths that a caller wants to be seen in a sandbox, or not.
type Request struct {
	ReadOnly, Writable, Hidden []string
	Shown                      map[string]string // by the path inside
}

// View collects the mounts of a sandbox, by path inside it.
type View map[string]mount

// New returns what a sandbox shows, and which of the requested paths are writable in it, by their
// real paths.
func New(r Request) (v View, writable map[string]bool, err error) {
	v = View{}
	if err := v.addSystem(); err != nil {
		return nil, nil, err
	}
	asked, err := v.addRequested(r)
	if err != nil {
		return nil, nil, err
	}
	v.hideOwn(asked)
	v.dropCovered()
	writable = map[string]bool{}
	for path, as := range asked {
		writable[path] = as == asWritable
	}
	return v, writable, nil
}

// addSystem adds what every sandbox shows.
func (v View) addSystem() error {
	for _, path := range emptyPaths {
		v[path] = mount{kind: "--dir", open: true}
	}
	for _, path := range systemPaths {
		info, err := os.Lstat(path)
		if err != nil {
			continue
		}
		if info.Mode()&os.ModeSymlink != 0 {
			target, err := os.Readlink(path)
			if err != nil {
				return err
			}
			v[path] = mount{kind: "--symlink", source: target}
			continue
		}
		v[path] = mount{kind: "--ro-bind", source: path}
	}
	for _, path := range procReadOnly {
		if _, err := os.Lstat(path); err == nil {
			v[path] = mount{kind: "--ro-bind", source: path}
		}
	}
	v["/etc"] = mount{kind: "--dir"}
	return nil
}

// addRequested adds the paths that the caller names, and returns the requested kind of each.
func (v View) addRequested(r Request) (map[string]string, error) {
	asked := map[string]string{}
	add := func(kind, as, path string) error {
		resolved, err := v.resolve(path)
		if err != nil {
			return fmt.Errorf("%s path: %w", as, err)
		}
		if before, ok := asked[resolved]; ok && before != as {
			return fmt.Errorf("%s cannot be both %s and %s", path, before, as)
		}
		asked[resolved] = as
		v[resolved] = mount{kind: kind, source: resolved}
		return nil
	}
	for _, path := range r.ReadOnly {
		if err := add("--ro-bind", asReadable, path); err != nil {
			return nil, err
		}
	}
	for _, path := range r.Writable {
		if err := add("--bind", asWritable, path); err != nil {
			return nil, err
		}
	}
	for inside, path := range r.Shown {
		resolved, err := filepath.EvalSymlinks(path)
		if err != nil || !filepath.IsAbs(inside) {
			return nil, fmt.Errorf("path to show at %s: %w", inside, err)
		}
		v[filepath.Clean(inside)] = mount{kind: "--bind", source: resolved}
	}
	for _, path := range r.Hidden {
		if !filepath.IsAbs(path) {
			return nil, fmt.Errorf("hidden path: %s is not absolute", path)
		}
		resolved, err := filepath.EvalSymlinks(path)
		if errors.Is(err, os.ErrNotExist) {
			continue // there is nothing to hide
		}
		if err != nil {
			return nil, fmt.Errorf("hidden path: %w", err)
		}
		if before, ok := asked[resolved]; ok {
			return nil, fmt.Errorf("%s cannot be both %s and hidden", path, before)
		}
		v.hide(resolved)
	}
	return asked, nil
}

// hideOwn hides our own temporary and cache directories and the user's home, wherever they are,
// unless the caller asks for them.
func (v View) hideOwn(requested map[string]string) {
	own := []string{os.TempDir()}
	if home, err := os.UserHomeDir(); err == nil {
		own = append(own, home)
	}
	if cache, err := os.UserCacheDir(); err == nil {
		own = append(own, cache)
	}
	for _, path := range own {
		resolved, err := filepath.EvalSymlinks(path)
		// A home that is a system directory, as in some containers, cannot be hidden.
		if err != nil || !filepath.IsAbs(path) || resolved == "/" || IsSystem(resolved) && resolved != "/opt" {
			continue
		}
		if _, asked := requested[resolved]; !asked {
			v.hide(resolved)
		}
	}
}

// IsSystem reports whether a path is one that every sandbox shows.
func IsSystem(path string) bool { return path == "/etc" || slices.Contains(systemPaths, path) }

// dropCovered drops the system's paths where the caller shows the whole root: they are
// in it, and nothing new can be made in a root that is read-only. Then the empty directories must
// be mounted.
func (v View) dropCovered() {
	root, ok := v["/"]
	if !ok {
		return
	}
	for path, m := range v {
		if m.kind == "--dir" { // it would be one of the machine's
			v[path] = mount{kind: "--tmpfs", open: m.open}
		}
		covered := slices.Contains(systemPaths, path) && m.kind != "--bind"
		_, err := os.Stat(path)
		if path != "/" && (covered || err != nil && root.kind == "--ro-bind") {
			delete(v, path)
		}
	}
}

// hide covers a path with an empty one, wherever the sandbox would show it.
func (v View) hide(path string) {
	v.cover(path)
	for _, other := range proc.OtherNames(path) {
		if _, asked := v[other]; !asked || IsSystem(other) {
			v.cover(other)
		}
	}
}

func (v View) cover(path string) {
	info, err := os.Stat(path)
	if err != nil || !v.showsFromHost(path) {
		return
	}
	if info.IsDir() {
		v[path] = mount{kind: "--tmpfs"}
		return
	}
	v[path] = mount{kind: "--ro-bind", source: os.DevNull}
}

// resolve returns the real path, and repeats in the sandbox the links that lead to it,
// so that the path the caller knows works inside too.
func (v View) resolve(path string) (string, error) {
	if !filepath.IsAbs(path) {
		return "", fmt.Errorf("%s is not absolute", path)
	}
	resolved, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", err
	}
	if clean := filepath.Clean(path); clean != resolved {
		v.addLink(clean)
	}
	return resolved, nil
}

// addLink adds the first link on the way to a path, unless a shown directory has it.
func (v View) addLink(path string) {
	prefix := ""
	for part := range strings.SplitSeq(strings.TrimPrefix(path, "/"), "/") {
		prefix += "/" + part
		info, err := os.Lstat(prefix)
		if err != nil || v.showsFromHost(prefix) {
			return
		}
		if info.Mode()&os.ModeSymlink == 0 {
			continue
		}
		if resolved, err := filepath.EvalSymlinks(prefix); err == nil {
			v[prefix] = mount{kind: "--symlink", source: resolved}
		}
		return
	}
}

// nearest returns the mount that decides about a path: its own, or that of the
// closest directory above it.
func (v View) nearest(path string) (mount, bool) {
	for {
		if m, ok := v[path]; ok {
			return m, true
		}
		if path == "/" {
			return mount{}, false
		}
		path = filepath.Dir(path)
	}
}

// Shows reports whether a path exists in the sandbox.
func (v View) Shows(path string) bool {
	if _, ok := v[path]; ok || path == "/" {
		return true
	}
	return v.showsFromHost(path)
}

// showsFromHost reports whether the sandbox shows what the machine has at a path.
func (v View) showsFromHost(path string) bool {
	m, ok := v.nearest(path)
	return ok && (m.kind == "--ro-bind" || m.kind == "--bind")
}

// Arguments orders the mounts so that a directory comes before what is mounted inside it, and /proc
// and /dev come after a root that covers everything. The view lies below a directory of the
// sandbox, or is all of it where that is empty.
func (v View) Arguments(below string) []string {
	var args []string
	if below != "" {
		args = append(args, "--perms", "0755", "--dir", below)
	}
	if root, ok := v["/"]; ok {
		args = append(args, root.kind, root.source, below+"/")
	}
	args = append(args, "--proc", below+"/proc", "--dev", below+"/dev")
	made := map[string]bool{"/": true, "/proc": true, "/dev": true}
	for _, path := range slices.Sorted(maps.Keys(v)) {
		if path == "/" {
			continue
		}
		args = v.appendParents(args, made, below, filepath.Dir(path))
		made[path] = true
		m := v[path]
		switch {
		case m.open:
			args = append(args, "--perms", "1777")
		case m.kind == "--dir":
			args = append(args, "--perms", "0755")
		}
		if args = append(args, m.kind); m.source != "" {
			args = append(args, m.source)
		}
		args = append(args, below+path)
	}
	return append(args, "--chmod", "1777", below+"/dev/shm")
}

// appendParents makes the directories on the way to a mount that no other mount brings. Those that
// bubblewrap makes itself are accessible only to their owner, which is not always the program.
func (v View) appendParents(args []string, made map[string]bool, below, dir string) []string {
	if made[dir] || v.showsFromHost(dir) {
		return args
	}
	args = v.appendParents(args, made, below, filepath.Dir(dir))
	made[dir] = true
	return append(args, "--perms", "0755", "--dir", below+dir)
}

// Find returns the path of bubblewrap.
func Find() (string, error) {
	if path, err := exec.LookPath("bwrap"); err == nil && filepath.IsAbs(path) {
		return path, nil
	}
	if info, err := os.Stat("/usr/bin/bwrap"); err == nil && info.Mode()&0o111 != 0 {
		return "/usr/bin/bwrap", nil
	}
	return "", errors.New("bubblewrap (bwrap) is not installed")
}
