package bwrap

import (
	"bytes"
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
)

// etcNames are the visible parts of /etc: what programs need to find libraries, names,
// certificates, time zones and their own settings. Everything else there is the machine's, not the
// program's. passwd and group are made for each sandbox.
var etcNames = []string{
	"alpine-release", "alternatives", "bash.bashrc", "crypto-policies", "debian_version", "fonts", "gai.conf",
	"host.conf", "hosts", "inputrc", "java*", "ld.so.cache", "ld.so.conf", "ld-musl-*.path", "locale.alias",
	"locale.conf", "localtime", "lsb-release", "magic", "maven", "mime.types", "netconfig", "networks",
	"nsswitch.conf", "os-release", "php*", "pki/ca-trust", "pki/tls/cert.pem", "pki/tls/certs",
	"pki/tls/openssl.cnf", "profile", "protocols", "R", "redhat-release", "resolv.conf", "rpc", "ruby*", "services",
	"shells", "ssl/cert.pem", "ssl/certs", "ssl/openssl.cnf", "system-release", "timezone",
}

// maxEtcEntries bounds the entries of one directory of /etc that are copied; larger ones are
// mounted.
const maxEtcEntries = 32

// EtcView describes the /etc of a sandbox. Files are copied into it, because that is much cheaper
// than mounting them; a file's descriptor is not known here, so only its path is listed.
type EtcView struct {
	Files   []EtcFile
	options [][]string // bubblewrap's, for directories and links; each ends with a path
	entries int        // of the trees
}

// EtcFile is a file of /etc, and the one that it shows.
type EtcFile struct{ Path, Source string }

// Etc returns the /etc of a sandbox.
func Etc() EtcView { return etcShown() }

// Arguments returns bubblewrap's arguments for directories and links, below a directory of the
// sandbox.
func (e EtcView) Arguments(below string) []string {
	var args []string
	for _, option := range e.options {
		last := len(option) - 1
		args = append(append(args, option[:last]...), below+option[last])
	}
	return args
}

// etcShown finds out once what of etcNames this machine has.
var etcShown = sync.OnceValue(func() EtcView {
	var shown EtcView
	for _, name := range etcNames {
		found, _ := filepath.Glob("/etc/" + name) // only a bad pattern is an error
		for _, path := range found {
			if dir := filepath.Dir(path); dir != "/etc" {
				shown.addDir(filepath.Dir(dir))
				shown.addDir(dir)
			}
			shown.add(path)
		}
	}
	return shown
})

func (e *EtcView) addDir(path string) {
	if path != "/etc" && path != "/" {
		e.options = append(e.options, []string{"--perms", "0755", "--dir", path})
	}
}

// add adds a file or a directory. A link at the top is followed: that of resolv.conf often leads to
// where the sandbox shows nothing.
func (e *EtcView) add(path string) {
	source, err := filepath.EvalSymlinks(path)
	if err != nil {
		return
	}
	info, err := os.Stat(source)
	switch {
	case err != nil:
	case info.Mode().IsRegular() && info.Mode().Perm()&0o004 != 0:
		e.Files = append(e.Files, EtcFile{Path: path, Source: source})
	case info.IsDir():
		copied := EtcView{}
		if copied.addTree(path, source) != nil || copied.entries > maxEtcEntries {
			copied = EtcView{options: [][]string{{"--ro-bind", source, path}}}
		}
		e.options = append(e.options, copied.options...)
		e.Files = append(e.Files, copied.Files...)
	}
}

// addTree adds what a directory holds: directories, links as they are, and files that everybody may
// read.
func (e *EtcView) addTree(path, source string) error {
	return filepath.WalkDir(source, func(from string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.entries++; e.entries > maxEtcEntries {
			return fs.SkipAll
		}
		to := path + strings.TrimPrefix(from, source)
		switch info, err := entry.Info(); {
		case err != nil:
			return err
		case entry.IsDir():
			e.addDir(to)
		case entry.Type() == fs.ModeSymlink:
			target, err := os.Readlink(from)
			e.options = append(e.options, []string{"--symlink", target, to})
			return err
		case entry.Type().IsRegular() && info.Mode().Perm()&0o004 != 0:
			e.Files = append(e.Files, EtcFile{Path: to, Source: from})
		}
		return nil
	})
}

// Accounts returns the files /etc/passwd and /etc/group of a sandbox: those of the machine, and the
// user of the program if they lack it.
func Accounts(uid, gid int, home string) (passwd, group []byte) {
	home = cmp.Or(home, "/")
	passwd = withAccount("/etc/passwd", uid, fmt.Sprintf("fit:x:%d:%d::%s:/bin/sh\n", uid, gid, home))
	return passwd, withAccount("/etc/group", gid, fmt.Sprintf("fit:x:%d:\n", gid))
}

func withAccount(file string, id int, line string) []byte {
	content, err := os.ReadFile(file)
	if err != nil {
		content = nil
	}
	for entry := range bytes.Lines(content) {
		if fields := bytes.Split(entry, []byte(":")); len(fields) > 2 && string(fields[2]) == strconv.Itoa(id) {
			return content
		}
	}
	if len(content) > 0 && content[len(content)-1] != '\n' {
		content = append(content, '\n')
	}
	return append(content, line...)
}
