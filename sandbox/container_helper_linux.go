package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// containerName is the name under which our binary is the first process of a container, and under
// which it moves files in and out.
const containerName = "fit-sandbox-container"

// calledContainer reports whether this process is ours in a container.
func calledContainer() bool { return filepath.Base(os.Args[0]) == containerName }

// insideHolder is the first process of a container: it starts supervisors and opens sockets, as the
// holder of a network does, and is the parent of all orphans.
type insideHolder struct {
	holder
	starting sync.Mutex  // held while a supervisor is started and not yet known
	running  map[int]int // requests by the process that they started
}

// holdContainer is the life of the first process of a container. It ends with the line to whoever
// started it, and everything in the container with it.
func holdContainer() int {
	if len(os.Args) > 2 {
		return moveFiles(os.Args[1], os.Args[2:])
	}
	// Handle every signal, so that no process in the container can kill this one.
	signals := make(chan os.Signal, 64)
	signal.Notify(signals)
	closeAllOnExec()
	conn, err := net.Dial("unixpacket", os.Args[len(os.Args)-1])
	if err != nil {
		fmt.Fprintln(os.Stderr, "fit:", err)
		return 1
	}
	line, ok := conn.(*net.UnixConn)
	if !ok {
		return 1
	}
	h := &insideHolder{holder: holder{line: line}, running: map[int]int{}}
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		h.fail(0, err)
		return 1
	}
	go func() {
		for sent := range signals {
			if sent == syscall.SIGCHLD {
				h.reap()
			}
		}
	}()
	h.say(networkReport{}, -1)
	for {
		body, files, err := receivePacket(line)
		if err != nil {
			return 0
		}
		var request networkRequest
		if err := json.Unmarshal(body, &request); err != nil {
			closeFiles(files)
			h.fail(0, err)
			continue
		}
		if request.Do == networkStart {
			h.start(request.ID, files)
			continue
		}
		h.serve(request, files)
	}
}

// start runs a supervisor, as the holder of a network does, but waits for it with all other
// children.
func (h *insideHolder) start(id int, files []*os.File) {
	defer closeFiles(files)
	if len(files) < 4 {
		h.fail(id, errFewDescriptors)
		return
	}
	cmd := reaperCommand(files[0], files[1:], reaperAttributes(false))
	h.starting.Lock()
	defer h.starting.Unlock()
	if err := cmd.Start(); err != nil {
		h.fail(id, fmt.Errorf("start its supervisor: %w", err))
		return
	}
	h.running[cmd.Process.Pid] = id
	h.say(networkReport{ID: id, PID: cmd.Process.Pid}, -1)
	_ = cmd.Process.Release()
}

// reap collects every process that has exited and reports the exits of those we were asked to run.
func (h *insideHolder) reap() {
	h.starting.Lock()
	defer h.starting.Unlock()
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil || pid <= 0 {
			return
		}
		id, known := h.running[pid]
		if !known {
			continue
		}
		delete(h.running, pid)
		ended := networkReport{ID: id, Ended: true}
		if status.Signaled() {
			ended.Signal = unix.SignalName(status.Signal())
		}
		h.say(ended, -1)
	}
}

// account is a user of a container.
type account struct {
	uid, gid int
	groups   []int
	home     string
}

// findAccount reads a user as engines write it: a name or a number, and a group behind a colon.
func findAccount(text string) (account, error) {
	name, group, _ := strings.Cut(text, ":")
	found := account{uid: -1}
	for _, fields := range accountLines("/etc/passwd") {
		if len(fields) > 3 && (fields[0] == name || fields[2] == name) {
			name = fields[0]
			found.uid, found.gid = number(fields[2]), number(fields[3])
			if len(fields) > 5 {
				found.home = fields[5]
			}
			break
		}
	}
	if found.uid < 0 {
		if found.uid = number(name); found.uid < 0 {
			return found, fmt.Errorf("the image has no user %q", name)
		}
	}
	for _, fields := range accountLines("/etc/group") {
		if len(fields) < 3 {
			continue
		}
		if group != "" && (fields[0] == group || fields[2] == group) {
			found.gid, group = number(fields[2]), ""
		}
		if len(fields) > 3 {
			for member := range strings.SplitSeq(fields[3], ",") {
				if member == name {
					found.groups = append(found.groups, number(fields[2]))
				}
			}
		}
	}
	if group != "" {
		if found.gid = number(group); found.gid < 0 {
			return found, fmt.Errorf("the image has no group %q", group)
		}
	}
	return found, nil
}

func accountLines(path string) [][]string {
	content, _ := os.ReadFile(path) // an image without accounts has numbers only
	var lines [][]string
	for line := range strings.Lines(string(content)) {
		lines = append(lines, strings.Split(strings.TrimSpace(line), ":"))
	}
	return lines
}

func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return -1
	}
	return n
}

// become makes this thread, which becomes a program, another user.
func (a account) become() error {
	groups := a.groups
	if err := unix.Setgroups(groups); err != nil {
		return err
	}
	finish := func() error { return nil }
	if a.uid != 0 {
		var err error
		if finish, err = keepAbove(); err != nil {
			return err
		}
	}
	for _, call := range [][4]uintptr{
		{unix.SYS_SETRESGID, uintptr(a.gid), uintptr(a.gid), uintptr(a.gid)},
		{unix.SYS_SETRESUID, uintptr(a.uid), uintptr(a.uid), uintptr(a.uid)},
	} {
		if _, _, errno := unix.RawSyscall(call[0], call[1], call[2], call[3]); errno != 0 {
			return errno
		}
	}
	return finish()
}

// maxOwned bounds the files of a home that are looked at.
const maxOwned = 20000

// own gives the user what we have written to the mount that its home lies in, such as the settings
// of an agent. Nothing outside of it is reached, whatever programs put there meanwhile.
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
