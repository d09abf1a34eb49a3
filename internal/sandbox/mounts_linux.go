package sandbox

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// mounted is a directory of a file system of some kind, and where it is mounted; options are those
// of the file system.
type mounted struct{ device, root, point, kind, options string }

// mounts lists the mounts that a process sees, oldest first. A process that has ended sees none.
func mounts(process string) []mounted {
	content, _ := os.ReadFile(process + "/mountinfo")
	var all []mounted
	for line := range strings.Lines(string(content)) {
		// 36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue
		before, after, _ := strings.Cut(line, " - ")
		at, system := strings.Split(before, " "), strings.Split(strings.TrimSpace(after), " ")
		if len(at) > 4 && len(system) > 2 { // the source of a mount may be empty, between its two blanks
			all = append(all, mounted{at[2], unescapeMount(at[3]), unescapeMount(at[4]), system[0], system[2]})
		}
	}
	return all
}

// unescapeMount undoes what the kernel does to blanks, line ends and backslashes of a path.
func unescapeMount(path string) string {
	var out strings.Builder
	for len(path) > 0 {
		if path[0] == '\\' && len(path) >= 4 {
			if code, err := strconv.ParseUint(path[1:4], 8, 8); err == nil {
				out.WriteByte(byte(code))
				path = path[4:]
				continue
			}
		}
		out.WriteByte(path[0])
		path = path[1:]
	}
	return out.String()
}

// otherNames returns the other paths under which path, or part of it, is visible because it is
// mounted more than once.
func otherNames(path string) []string {
	all := mounts("/proc/self")
	var own mounted // the last that covers the path is the one that shows it
	for _, m := range all {
		if _, ok := below(m.point, path); ok && len(m.point) >= len(own.point) {
			own = m
		}
	}
	rest, _ := below(own.point, path)
	place := filepath.Join(own.root, rest) // in its file system
	var names []string
	for _, m := range all {
		if m.device != own.device || m.point == own.point {
			continue
		}
		original, other := path, m.point
		if rest, ok := below(m.root, place); ok {
			other = filepath.Join(m.point, rest)
		} else if rest, ok := below(place, m.root); ok {
			original = filepath.Join(path, rest)
		} else {
			continue
		}
		if sameFile(original, other) { // else something is mounted over it
			names = append(names, other)
		}
	}
	return names
}

// below returns the path relative to a directory that contains it.
func below(dir, path string) (string, bool) {
	rest, err := filepath.Rel(dir, path)
	return rest, err == nil && filepath.IsLocal(rest)
}

func sameFile(a, b string) bool {
	one, errOne := os.Stat(a)
	other, errOther := os.Stat(b)
	return errOne == nil && errOther == nil && os.SameFile(one, other)
}
