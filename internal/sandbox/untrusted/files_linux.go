package untrusted

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// What Landlock is to refuse where files are not shown: to read, run, change, make and remove them.
const (
	fileAccess = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_EXECUTE |
		unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE
	access = unix.LANDLOCK_ACCESS_FS_REFER<<1 - 1 | unix.LANDLOCK_ACCESS_FS_TRUNCATE
)

// enter keeps what this thread starts from what is hidden, where the kernel can (Linux
// 5.13) and the sandbox made no view. It needs no privileges.
func (f Files) enter() error {
	if len(f.Hidden) == 0 {
		return nil
	}
	version, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return nil
	}
	handled := uint64(access)
	if version < 3 { // Linux 6.2
		handled &^= unix.LANDLOCK_ACCESS_FS_TRUNCATE
	}
	if version < 2 { // Linux 5.19
		handled &^= unix.LANDLOCK_ACCESS_FS_REFER
	}
	attr := unix.LandlockRulesetAttr{Handled_access_fs: handled}
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)),
		unsafe.Sizeof(attr.Handled_access_fs), 0)
	if errno != 0 {
		return os.NewSyscallError("landlock_create_ruleset", errno)
	}
	rules := ruleset{fd, handled}
	defer unix.Close(int(fd))
	rules.allow("/", unix.LANDLOCK_ACCESS_FS_REFER) // or nothing moves between directories
	f.show(rules, "/")
	for _, path := range append(f.Shown, f.Temp) {
		rules.allow(path, access)
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, fd, 0, 0); errno != 0 {
		return os.NewSyscallError("landlock_restrict_self", errno)
	}
	return os.Setenv("TMPDIR", f.Temp)
}

// show allows to use a path, except for what is hidden below it. Directories on the way to that
// can be neither listed nor changed.
func (f Files) show(rules ruleset, path string) {
	if slices.Contains(f.Hidden, path) {
		return
	}
	below := strings.TrimSuffix(path, "/") + "/"
	if !slices.ContainsFunc(f.Hidden, func(hidden string) bool { return strings.HasPrefix(hidden, below) }) {
		rules.allow(path, access)
		return
	}
	entries, _ := os.ReadDir(path) // what cannot be listed is not shown
	for _, entry := range entries {
		if entry.Type()&os.ModeSymlink == 0 { // the file that a link leads to decides
			f.show(rules, filepath.Join(path, entry.Name()))
		}
	}
}

// ruleset is what one of Landlock's allows, of the kinds of access that it handles.
type ruleset struct {
	fd      uintptr
	handled uint64
}

// allow adds a rule. A path that is gone, or that nobody could reach anyway, needs none.
func (r ruleset) allow(path string, allowed uint64) {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	var stat unix.Stat_t
	if unix.Fstat(fd, &stat) == nil && stat.Mode&unix.S_IFMT != unix.S_IFDIR {
		allowed &= fileAccess
	}
	rule := unix.LandlockPathBeneathAttr{
		Allowed_access: allowed & r.handled,
		Parent_fd:      int32(fd), //nolint:gosec // descriptors are small
	}
	_, _, _ = unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, r.fd, unix.LANDLOCK_RULE_PATH_BENEATH,
		uintptr(unsafe.Pointer(&rule)), 0, 0, 0)
}
