package sandbox

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// errNoBwrap is returned when isolation is asked for and bubblewrap is not installed.
var errNoBwrap = errors.New("bubblewrap (bwrap) is not installed")

// systemPaths are what programs need to run at all. They are shown read-only, as far
// as they exist.
var systemPaths = []string{
	"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/nix/store",
}

// secretPaths are within the system's paths and no program's business. Root could
// read them.
var secretPaths = []string{"/etc/shadow", "/etc/gshadow", "/etc/shadow-", "/etc/gshadow-"}

// emptyPaths are there, writable and empty; what is written there is gone afterwards.
var emptyPaths = []string{"/tmp", "/var/tmp", "/home", "/root", "/run"}

// mount is what one path of the sandbox shows.
type mount struct {
	kind   string // a bwrap option
	source string // empty for options without one
}

// view collects the mounts of a sandbox, by path inside it.
type view map[string]mount

// bwrapArgv returns the command line that runs a program in the isolation. Bubblewrap
// reports on descriptor statusFD.
func (i Isolation) bwrapArgv(program string, argv []string, dir string, statusFD int) ([]string, error) {
	bwrap, err := findBwrap()
	if err != nil {
		return nil, err
	}
	v := view{}
	if err := v.addSystem(i.Network); err != nil {
		return nil, err
	}
	if err := v.addRequested(i); err != nil {
		return nil, err
	}
	v.dropCovered()
	if dir, err = realDir(dir); err != nil {
		return nil, err
	}
	if !v.shows(dir) {
		return nil, fmt.Errorf("the working directory %s is not visible in the sandbox: list it as readable or writable", dir)
	}
	args := []string{
		bwrap, "--die-with-parent", "--new-session", "--cap-drop", "ALL",
		"--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try",
		"--json-status-fd", strconv.Itoa(statusFD),
	}
	if !i.Network && i.Join == nil {
		args = append(args, "--unshare-net")
	}
	args = append(args, v.arguments()...)
	args = append(args, "--chdir", dir, "--", program)
	return append(args, argv[1:]...), nil
}

func findBwrap() (string, error) {
	if path, err := exec.LookPath("bwrap"); err == nil && filepath.IsAbs(path) {
		return path, nil
	}
	if info, err := os.Stat("/usr/bin/bwrap"); err == nil && info.Mode()&0o111 != 0 {
		return "/usr/bin/bwrap", nil
	}
	return "", errNoBwrap
}

func realDir(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(dir)
}

// addSystem adds what every sandbox shows.
func (v view) addSystem(network bool) error {
	for _, path := range emptyPaths {
		v[path] = mount{kind: "--tmpfs"}
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
	if network {
		v.addResolver()
	}
	for _, path := range secretPaths {
		v.hide(path)
	}
	return nil
}

// addResolver shows the file behind /etc/resolv.conf, which is often a link to a place
// that the sandbox does not show.
func (v view) addResolver() {
	resolved, err := filepath.EvalSymlinks("/etc/resolv.conf")
	if err == nil && !v.showsFromHost(resolved) {
		v[resolved] = mount{kind: "--ro-bind", source: resolved}
	}
}

// addRequested adds the paths that the caller names.
func (v view) addRequested(i Isolation) error {
	asked := map[string]string{}
	add := func(kind, as, path string) error {
		resolved, err := v.resolve(path)
		if err != nil {
			return fmt.Errorf("%s path: %w", as, err)
		}
		if before, ok := asked[resolved]; ok && before != as {
			return fmt.Errorf("%s is asked to be both %s and %s", path, before, as)
		}
		asked[resolved] = as
		v[resolved] = mount{kind: kind, source: resolved}
		return nil
	}
	for _, path := range i.ReadOnly {
		if err := add("--ro-bind", "readable", path); err != nil {
			return err
		}
	}
	for _, path := range i.Writable {
		if err := add("--bind", "writable", path); err != nil {
			return err
		}
	}
	for _, path := range i.Hidden {
		if !filepath.IsAbs(path) {
			return fmt.Errorf("hidden path: %s is not absolute", path)
		}
		resolved, err := filepath.EvalSymlinks(path)
		if errors.Is(err, os.ErrNotExist) {
			continue // there is nothing to hide
		}
		if err != nil {
			return fmt.Errorf("hidden path: %w", err)
		}
		if before, ok := asked[resolved]; ok {
			return fmt.Errorf("%s is asked to be both %s and hidden", path, before)
		}
		v.hide(resolved)
	}
	return nil
}

// dropCovered drops the system's paths where the caller shows the whole root: they are
// in it, and nothing new can be made in a root that is read-only.
func (v view) dropCovered() {
	root, ok := v["/"]
	if !ok {
		return
	}
	for path, m := range v {
		covered := slices.Contains(systemPaths, path) && m.kind != "--bind"
		_, err := os.Stat(path)
		if path != "/" && (covered || err != nil && root.kind == "--ro-bind") {
			delete(v, path)
		}
	}
}

// hide covers a path with nothing, if the sandbox would show it.
func (v view) hide(path string) {
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
func (v view) resolve(path string) (string, error) {
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
func (v view) addLink(path string) {
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
func (v view) nearest(path string) (mount, bool) {
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

// shows reports whether a path exists in the sandbox.
func (v view) shows(path string) bool {
	if _, ok := v[path]; ok || path == "/" {
		return true
	}
	return v.showsFromHost(path)
}

// showsFromHost reports whether the sandbox shows what the machine has at a path.
func (v view) showsFromHost(path string) bool {
	m, ok := v.nearest(path)
	return ok && (m.kind == "--ro-bind" || m.kind == "--bind")
}

// arguments orders the mounts so that a directory comes before what is mounted inside
// it, and /proc and /dev come after a root that covers everything.
func (v view) arguments() []string {
	var args []string
	if root, ok := v["/"]; ok {
		args = append(args, root.kind, root.source, "/")
	}
	args = append(args, "--proc", "/proc", "--dev", "/dev")
	for _, path := range slices.Sorted(maps.Keys(v)) {
		m := v[path]
		switch {
		case path == "/":
		case m.source == "":
			args = append(args, m.kind, path)
		default:
			args = append(args, m.kind, m.source, path)
		}
	}
	return args
}
