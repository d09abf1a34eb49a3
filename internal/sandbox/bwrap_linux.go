package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/fit-eval/fit/internal/sandbox/bwrap"
	"github.com/fit-eval/fit/internal/sandbox/seccomp"
	"github.com/fit-eval/fit/internal/sandbox/untrusted"
)

// The descriptors that bubblewrap gets behind those of the program, in this order. The program
// itself gets none of them.
const (
	fdStatus    = iota // where bubblewrap reports
	fdSeccomp          // the system calls that are refused
	fdPasswd           // /etc/passwd
	fdGroup            // /etc/group
	fdArguments        // bubblewrap's own arguments: a command line would show them to the program
	fdSelf             // our own binary, which becomes the program
	fdStart            // where it reports that it does
	fdEtc              // files for /etc, one after the other, then the accounts of untrusted programs
)

// bwrapOrder holds what the supervisor of an isolated program must know beyond the command line.
type bwrapOrder struct {
	// UID is the user that the program becomes if we are root; otherwise 0.
	UID int `json:"uid,omitempty"`
	// Mapped are the paths that the program will own. Each has the number of the user namespace
	// that maps the owner, among those that the supervisor was handed.
	Mapped []mappedPath `json:"mapped,omitempty"`
	// Namespaces counts those.
	Namespaces int `json:"namespaces,omitempty"`
	// FirstFD is the first descriptor of the list above.
	FirstFD int `json:"firstFd"`
	// Etc are the files of /etc, in the order of their descriptors.
	Etc []string `json:"etc,omitempty"`
	// Untrusted is set if untrusted programs have a view of their own.
	Untrusted bool `json:"untrusted,omitempty"`
	// Bwrap is bubblewrap, Arguments are its own, and Dir is where the program begins.
	Bwrap     string   `json:"bwrap"`
	Arguments []string `json:"arguments"`
	Dir       string   `json:"dir"`
}

// mappedPath is a path that shows up in the sandbox as the program's own.
type mappedPath struct {
	Path      string `json:"path"`
	Writable  bool   `json:"writable,omitempty"`
	Namespace int    `json:"namespace"`
}

// bwrapOrder builds the command line of the isolation. The program itself is added by the
// supervisor, which knows the user that it can be.
func (i Isolation) bwrapOrder(dir string, extraFiles int) (*bwrapOrder, error) {
	program, err := bwrap.Find()
	if err != nil {
		return nil, &setupError{Err: err}
	}
	v, writable, err := bwrap.New(bwrap.Request{
		ReadOnly: i.ReadOnly,
		Writable: i.Writable,
		Hidden:   i.Hidden,
		Shown:    i.Shown,
	})
	if err != nil {
		return nil, err
	}
	if dir, err = realDir(dir); err != nil {
		return nil, err
	}
	if !v.Shows(dir) {
		return nil, fmt.Errorf("the working directory %s is not visible in the sandbox: "+
			"list it as readable or writable", dir)
	}
	ord := &bwrapOrder{FirstFD: 3 + extraFiles, Bwrap: program, Dir: dir}
	ord.Arguments = []string{
		"--die-with-parent", "--new-session", "--cap-drop", "ALL",
		"--as-pid-1", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try",
		"--json-status-fd", ord.descriptor(fdStatus),
	}
	if seccomp.Filter() != nil {
		ord.add("--seccomp", ord.descriptor(fdSeccomp))
	}
	if !i.Network && i.Join == nil {
		ord.add("--unshare-net")
	}
	ord.add(v.Arguments("")...)
	ord.addEtc("")
	ord.addAccounts("", fdPasswd, fdGroup)
	if i.Untrusted != nil {
		if err := ord.addUntrusted(i); err != nil {
			return nil, err
		}
	}
	ord.add("--chdir", "/")
	if os.Geteuid() == 0 {
		ord.Mapped = mappedPaths(writable)
	}
	return ord, nil
}

func (o *bwrapOrder) add(arguments ...string) { o.Arguments = append(o.Arguments, arguments...) }

// descriptor returns the number of one of bubblewrap's descriptors.
func (o *bwrapOrder) descriptor(fd int) string { return strconv.Itoa(o.FirstFD + fd) }

// addUntrusted makes what programs see that the program does not trust; fit-untrusted enters it.
func (o *bwrapOrder) addUntrusted(i Isolation) error {
	v, _, err := bwrap.New(bwrap.Request{
		ReadOnly: i.Untrusted.ReadOnly,
		Writable: i.Untrusted.Writable,
		Hidden:   slices.Concat(i.Hidden, i.Untrusted.Hidden),
		Shown:    i.Shown,
	})
	if err != nil {
		return fmt.Errorf("what %s shows: %w", untrusted.Name, err)
	}
	o.add(v.Arguments(untrusted.Root)...)
	o.addEtc(untrusted.Root)
	o.addAccounts(untrusted.Root, fdEtc+len(o.Etc), fdEtc+len(o.Etc)+1)
	o.Untrusted = true
	return nil
}

// addEtc shows a part of /etc below a directory of the sandbox.
func (o *bwrapOrder) addEtc(below string) {
	shown := bwrap.Etc()
	o.add(shown.Arguments(below)...)
	for _, file := range shown.Files {
		o.add("--perms", "0644", "--file", o.descriptor(fdEtc+len(o.Etc)), below+file.Path)
		o.Etc = append(o.Etc, file.Source)
	}
}

func (o *bwrapOrder) addAccounts(below string, passwd, group int) {
	o.add("--perms", "0644", "--file", o.descriptor(passwd), below+"/etc/passwd",
		"--perms", "0644", "--file", o.descriptor(group), below+"/etc/group")
}

// mappedPaths returns the requested paths, except those of the system, which keep their owners.
func mappedPaths(requested map[string]bool) []mappedPath {
	var mapped []mappedPath
	for path, writable := range requested {
		if path != "/" && !bwrap.IsSystem(path) {
			mapped = append(mapped, mappedPath{Path: path, Writable: writable})
		}
	}
	return mapped
}

func realDir(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(dir)
}
