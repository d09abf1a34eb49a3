package sandbox

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/fit-eval/fit/internal/tree"
)

// The file operations of our binary in a container.
const (
	filesPut     = "put"
	filesOverlay = "lay"
	filesGet     = "get"
	filesClear   = "clear"
	filesOwn     = "own"
)

// moveTimeout limits one operation: a process left in the container can stop our binary.
const moveTimeout = 5 * time.Minute

// statusNoFile is the exit status for a file that does not exist.
const statusNoFile = 44

// Put empties a directory of the container, never through a link, and copies a directory of the
// machine into it.
func (c *Container) Put(ctx context.Context, dir, path string) error {
	return c.send(ctx, Isolation{}, filesPut, dir, path)
}

// Lay copies a directory of the machine over one of the container, which may be one that isolation
// mounts. It removes what is in the way, and writes nothing through a link.
func (c *Container) Lay(ctx context.Context, isolation Isolation, dir, path string) error {
	return c.send(ctx, isolation, filesOverlay, dir, path)
}

func (c *Container) send(ctx context.Context, isolation Isolation, verb, dir, path string) error {
	read, write := io.Pipe()
	go func() { write.CloseWithError(tree.Walk{}.Pack(write, dir)) }()
	_, err := c.moves(ctx, isolation, read, nil, verb, path)
	_ = read.Close()
	return err
}

// Get copies a file or a tree of the container into a new directory of the machine: regular files
// and directories, up to a number of bytes.
func (c *Container) Get(ctx context.Context, path, dir string, limit int64) error {
	return c.get(ctx, path, dir, limit, false)
}

// Extract is Get with links, which lead where they lead in the container.
func (c *Container) Extract(ctx context.Context, path, dir string, limit int64) error {
	return c.get(ctx, path, dir, limit, true)
}

func (c *Container) get(ctx context.Context, path, dir string, limit int64, links bool) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	read, write := io.Pipe()
	unpacked := make(chan error, 1)
	go func() {
		// A file that an agent makes appear between two looks is fetched twice.
		err := tree.Unpack{MaxBytes: limit, NoLinks: !links, Over: true}.Dir(read, dir)
		_ = read.CloseWithError(err)
		unpacked <- err
	}()
	status, err := c.moves(ctx, Isolation{}, nil, write, filesGet, path)
	_ = write.Close()
	if failed := <-unpacked; failed != nil {
		return fmt.Errorf("get %s: %w", path, failed)
	}
	if status == statusNoFile {
		return fmt.Errorf("get %s: %w", path, fs.ErrNotExist)
	}
	return err
}

// Clear makes an empty directory in the container, replacing whatever is there.
func (c *Container) Clear(ctx context.Context, path string, mode fs.FileMode) error {
	_, err := c.moves(ctx, Isolation{}, nil, nil, filesClear, path, strconv.FormatUint(uint64(mode.Perm()), 8))
	return err
}

// Own gives mounted directories to a user of the container with everything in them; empty: the
// container's.
func (c *Container) Own(ctx context.Context, user string, isolation Isolation, dirs ...string) error {
	user = cmp.Or(user, c.cfg.User, "0:0") // the image may name none
	_, err := c.moves(ctx, isolation, nil, nil, append([]string{filesOwn, user}, dirs...)...)
	return err
}

// moves runs our binary in the container.
func (c *Container) moves(ctx context.Context, isolation Isolation, in io.Reader, out io.Writer, args ...string,
) (int, error) {
	var said bytes.Buffer
	isolation.Kind, isolation.Container, isolation.User = c.cfg.Engine.Kind, c, "0:0"
	if c.cfg.Work != "" {
		isolation.Writable = append(append([]string{}, isolation.Writable...), c.cfg.Work)
	}
	result, err := Local{}.Spawn(ctx, SpawnSpec{
		Argv:      append([]string{helperInside}, args...),
		Dir:       "/",
		Stdin:     in,
		Isolation: isolation,
		MaxOutput: -1,
		Timeout:   moveTimeout,
		Grace:     -1,
	}, out, &said)
	switch {
	case err != nil:
		return -1, err
	case result.Cancelled:
		return -1, context.Cause(ctx)
	case result.TimedOut:
		return -1, fmt.Errorf("%s %s in the container did not end within %s", args[0], args[1], moveTimeout)
	case result.ExitCode == 0 || result.ExitCode == statusNoFile:
		return result.ExitCode, nil
	}
	return result.ExitCode, fmt.Errorf("%s %s in the container: %s", args[0], args[1], strings.TrimSpace(said.String()))
}

// moveFiles is the other side of a transfer; it runs in the container.
func moveFiles(verb string, args []string) int {
	var err error
	switch verb {
	case filesPut:
		if err = clearDir(args[0], "755"); err == nil {
			err = unpackFiles(args[0], false)
		}
	case filesOverlay:
		err = unpackFiles(args[0], true)
	case filesGet:
		err = tree.Walk{}.Pack(os.Stdout, args[0])
	case filesClear:
		err = clearDir(args[0], args[1])
	case filesOwn:
		err = ownFiles(args[0], args[1:])
	default:
		err = errors.New("unknown request " + verb)
	}
	switch {
	case err == nil:
		return 0
	case verb == filesGet && errors.Is(err, fs.ErrNotExist):
		return statusNoFile
	}
	fmt.Fprintln(os.Stderr, err)
	return 1
}

func unpackFiles(path string, over bool) error {
	if err := os.MkdirAll(path, 0o755); err != nil {
		return err
	}
	return tree.Unpack{Over: over}.Dir(os.Stdin, path)
}

// parentsWithoutLinks removes links and files that are in place of the directories above a path.
func parentsWithoutLinks(path string) error {
	for at := filepath.Dir(path); at != "/"; at = filepath.Dir(at) {
		if info, err := os.Lstat(at); err == nil && !info.IsDir() {
			if err := os.Remove(at); err != nil {
				return err
			}
		}
	}
	return nil
}

func clearDir(path, mode string) error {
	bits, err := strconv.ParseUint(mode, 8, 32)
	if err != nil || !filepath.IsAbs(path) || filepath.Clean(path) == "/" {
		return fmt.Errorf("%s is not a directory that can be emptied", path)
	}
	if err := parentsWithoutLinks(filepath.Clean(path)); err != nil {
		return err
	}
	if err := os.RemoveAll(path); err != nil { // if it is a mount, only its content is removed
		names, readErr := os.ReadDir(path)
		if readErr != nil {
			return err
		}
		for _, entry := range names {
			if err := os.RemoveAll(filepath.Join(path, entry.Name())); err != nil {
				return err
			}
		}
	}
	if err := os.MkdirAll(path, 0o755); err != nil {
		return err
	}
	return os.Chmod(path, fs.FileMode(bits))
}

func ownFiles(user string, dirs []string) error {
	who, err := findAccount(user)
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		if err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			return os.Lchown(path, who.uid, who.gid)
		}); err != nil {
			return err
		}
	}
	return nil
}
