package proc

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Mount is a directory of a file system of some kind, and where it is mounted; options are those
// of the file system.
type Mount struct{ Device, Root, Point, Kind, Options string }

// Mounts lists the mounts that a process sees, oldest first. A process that has ended sees none.
func Mounts(process string) []Mount {
	content, _ := os.ReadFile(process + "/mountinfo")
	var all []Mount
	for line := range strings.Lines(string(content)) {
		// 36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue
		before, after, _ := strings.Cut(line, " - ")
		at, system := strings.Split(before, " "), strings.Split(strings.TrimSpace(after), " ")
		if len(at) > 4 && len(system) > 2 { // the source of a mount may be empty, between its two blanks
			all = append(all, Mount{at[2], Unescape(at[3]), Unescape(at[4]), system[0], system[2]})
		}
	}
	return all
}

// Unescape undoes what the kernel does to blanks, line ends and backslashes of a path.
func Unescape(path string) string {
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

// OtherNames returns the other paths under which path, or part of it, is visible because it is
// Mount more than once.
func OtherNames(path string) []string {
	all := Mounts("/proc/self")
	var own Mount // the last that covers the path is the one that shows it
	for _, m := range all {
		if _, ok := below(m.Point, path); ok && len(m.Point) >= len(own.Point) {
			own = m
		}
	}
	rest, _ := below(own.Point, path)
	place := filepath.Join(own.Root, rest) // in its file system
	var names []string
	for _, m := range all {
		if m.Device != own.Device || m.Point == own.Point {
			continue
		}
		original, other := path, m.Point
		if rest, ok := below(m.Root, place); ok {
			other = filepath.Join(m.Point, rest)
		} else if rest, ok := below(place, m.Root); ok {
			original = filepath.Join(path, rest)
		} else {
			continue
		}
		if sameFile(original, other) { // else something is Mount over it
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
