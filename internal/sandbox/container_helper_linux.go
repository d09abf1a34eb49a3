package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/fit-eval/fit/internal/sandbox/internal/first"
	"github.com/fit-eval/fit/internal/sandbox/proc"
)

// holdContainer runs the first process of a container, which holds its network and is the parent of
// all orphans. When its pipe to the process that started it closes, it ends, and everything in the
// container with it.
func holdContainer(args []string) int {
	if len(args) == 0 {
		return 1
	}
	if len(args) > 1 {
		return moveFiles(args[0], args[1:])
	}
	// Handle every signal, so that no process in the container can kill this one.
	signals := make(chan os.Signal, 64)
	signal.Notify(signals)
	proc.CloseAllOnExec()
	conn, err := net.Dial("unixpacket", args[0])
	if err != nil {
		fmt.Fprintln(os.Stderr, "fit:", err)
		return 1
	}
	line, ok := conn.(*net.UnixConn)
	if !ok {
		return 1
	}
	keepThreads()
	return newHolder(line).live(signals, errors.Join(
		unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0),
		unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), // over another container it is not process 1
	))
}

// become makes this thread, which becomes a program, another user.
func (a account) become() error {
	finish := func() error { return nil }
	if a.uid != 0 {
		var err error
		if finish, err = keepAbove(); err != nil {
			return err
		}
	}
	if err := first.SetUser(a.uid, a.gid, a.groups); err != nil {
		return err
	}
	return finish()
}

// maxOwned bounds the files of a home that are looked at.
const maxOwned = 20000

// own gives the user the files that we have written to the mount of its home, such as the settings
// of an agent. It reaches nothing outside, whatever programs put there meanwhile.
func (a account) own(home string) error {
	var here, above unix.Stat_t
	if a.uid == 0 || !filepath.IsAbs(home) || unix.Lstat(home, &here) != nil {
		return nil
	}
	for ; home != "/"; home = filepath.Dir(home) {
		if unix.Lstat(filepath.Dir(home), &above) != nil || here.Dev != above.Dev {
			break
		}
	}
	if home == "/" { // it is the image's
		return nil
	}
	root, err := os.OpenRoot(home)
	if err != nil {
		return err
	}
	defer root.Close()
	seen := 0
	return fs.WalkDir(root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		if seen++; err != nil || seen > maxOwned { // it is gone, or the user's own
			return fs.SkipDir
		}
		info, err := entry.Info()
		if err != nil {
			return nil //nolint:nilerr // it is gone
		}
		if stat, ok := info.Sys().(*syscall.Stat_t); ok && stat.Uid == 0 && stat.Nlink < 2 || entry.IsDir() {
			_ = root.Lchown(name, a.uid, a.gid) // the program says what it cannot read
		}
		return nil
	})
}
