package tree

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"time"

	"github.com/fit-eval/fit/internal/scratch"
)

// Pack writes a file or a directory as a tar archive that depends only on names, contents, links,
// permissions and the times of files. The time of a directory changes with everything that is made
// in it, even with what is skipped, and is left out. So is everything special.
func (w Walk) Pack(to io.Writer, name string) error {
	info, err := os.Lstat(name) // a symlink is packed as it is
	if err != nil {
		return err
	}
	p := packing{out: tar.NewWriter(to), walk: w, first: map[inode]string{}}
	if info.IsDir() {
		err = p.directory(name, info)
	} else {
		err = p.single(name)
	}
	return errors.Join(err, p.out.Close())
}

type packing struct {
	out   *tar.Writer
	walk  Walk
	first map[inode]string // files with several names, by the first that was packed
}

func (p *packing) directory(name string, info fs.FileInfo) error {
	root, err := os.OpenRoot(name)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := p.add(root, EntryOf(".", info)); err != nil {
		return err
	}
	return p.walk.Each(root, p.add)
}

func (p *packing) single(name string) error {
	root, err := os.OpenRoot(filepath.Dir(name))
	if err != nil {
		return err
	}
	defer root.Close()
	base := filepath.Base(name)
	info, err := root.Lstat(base)
	if err != nil {
		return err
	}
	e := EntryOf(base, info)
	if e.IsLink() {
		if e.Target, err = root.Readlink(base); err != nil {
			return err
		}
	}
	return p.add(root, e)
}

func (p *packing) add(dir *os.Root, e Entry) error {
	header := &tar.Header{
		Name:    e.Path,
		Mode:    int64(e.Mode.Perm()),
		Format:  tar.FormatPAX,
		ModTime: time.Unix(0, 0),
	}
	switch {
	case e.IsDir():
		header.Typeflag, header.Name = tar.TypeDir, e.Path+"/"
		return p.out.WriteHeader(header)
	case e.IsLink():
		header.Typeflag, header.Linkname, header.ModTime = tar.TypeSymlink, e.Target, e.ModTime
		return p.out.WriteHeader(header)
	case !e.IsRegular():
		return nil
	}
	header.ModTime = e.ModTime
	if first, known := p.first[e.inode]; known && e.inode != (inode{}) {
		header.Typeflag, header.Linkname = tar.TypeLink, first
		return p.out.WriteHeader(header)
	}
	p.first[e.inode] = e.Path
	file, err := p.walk.Open(dir, path.Base(e.Path))
	if err != nil {
		return err
	}
	defer file.Close()
	header.Typeflag, header.Size = tar.TypeReg, e.Size
	if err := p.out.WriteHeader(header); err != nil {
		return err
	}
	if _, err := io.CopyN(p.out, file, e.Size); err != nil {
		return fmt.Errorf("%q changed while it was read: %w", e.Path, err)
	}
	return nil
}

// Unpack says how an archive is unpacked.
type Unpack struct {
	// MaxBytes bounds the size of the files; zero: it does not.
	MaxBytes int64
	// NoLinks leaves out symlinks.
	NoLinks bool
	// NoTopLinks refuses symlinks at the top of the archive.
	NoTopLinks bool
	// Top gives the directory the permissions of the one that was packed.
	Top bool
	// Over unpacks over what is there: directories are merged, and keep their permissions, and
	// anything else in the way is removed. Without it, the directory must be empty.
	Over bool
}

// Dir unpacks an archive of Pack into a directory that exists. A hostile program may have written
// the archive: no entry can leave the directory.
func (u Unpack) Dir(from io.Reader, dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	up := unpacking{Unpack: u, root: root, in: tar.NewReader(from)}
	for {
		header, err := up.in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("unpack: %w", err)
		}
		if err := up.entry(header); err != nil {
			return fmt.Errorf("unpack %q: %w", header.Name, err)
		}
	}
	// the padding after its end, which its writer must be able to write
	if _, err := io.Copy(io.Discard, from); err != nil {
		return fmt.Errorf("unpack: %w", err)
	}
	for i := len(up.made) - 1; i >= 0; i-- {
		if err := root.Chmod(up.made[i].name, up.made[i].perm|0o500); err != nil {
			return fmt.Errorf("unpack %q: %w", up.made[i].name, err)
		}
	}
	return nil
}

// unpacking is an archive that is being unpacked.
type unpacking struct {
	Unpack
	root *os.Root
	in   *tar.Reader
	size int64
	made []directory // their permissions come last: one may not be writable
}

type directory struct {
	name string
	perm fs.FileMode
}

func (u *unpacking) entry(header *tar.Header) error {
	name := path.Clean(header.Name)
	perm := header.FileInfo().Mode().Perm()
	if !filepath.IsLocal(filepath.FromSlash(name)) {
		return errors.New("not a path inside the archive's directory")
	}
	if u.size += header.Size; u.MaxBytes > 0 && u.size > u.MaxBytes {
		return &LimitError{What: "bytes", Limit: u.MaxBytes}
	}
	if header.Typeflag == tar.TypeSymlink && u.NoLinks {
		return nil
	}
	if header.Typeflag == tar.TypeSymlink && u.NoTopLinks && path.Dir(name) == "." {
		return errors.New("a symlink at the top of the archive")
	}
	if header.Typeflag == tar.TypeDir {
		return u.directory(name, perm)
	}
	return in(u.root, path.Dir(name), u.Over, func(dir *os.Root) error {
		base := path.Base(name)
		if u.Over {
			if err := scratch.RemoveBelow(dir, base); err != nil {
				return err
			}
		}
		switch header.Typeflag {
		case tar.TypeSymlink:
			return u.stamped(dir, base, header, dir.Symlink(header.Linkname, base))
		case tar.TypeLink:
			// a hard link to a symlink would be a symlink
			if info, err := u.root.Lstat(path.Clean(header.Linkname)); err != nil || !info.Mode().IsRegular() {
				return errors.New("the target of a hard link must be a regular file")
			}
			return u.root.Link(path.Clean(header.Linkname), name)
		case tar.TypeReg:
			return u.stamped(dir, base, header, u.file(dir, base, perm))
		default:
			return fmt.Errorf("kind %c is not expected", header.Typeflag)
		}
	})
}

func (u *unpacking) directory(name string, perm fs.FileMode) error {
	if name == "." {
		if u.Top {
			u.made = append(u.made, directory{name, perm})
		}
		return nil
	}
	return in(u.root, path.Dir(name), u.Over, func(dir *os.Root) error {
		base := path.Base(name)
		if info, err := dir.Lstat(base); u.Over && err == nil {
			if info.IsDir() {
				return nil
			}
			if err := dir.Remove(base); err != nil {
				return err
			}
		}
		u.made = append(u.made, directory{name, perm})
		return dir.Mkdir(base, 0o700)
	})
}

func (u *unpacking) file(dir *os.Root, base string, perm fs.FileMode) error {
	file, err := dir.OpenFile(base, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, u.in)
	return errors.Join(err, file.Chmod(perm|0o400), file.Close())
}

func (u *unpacking) stamped(dir *os.Root, base string, header *tar.Header, err error) error {
	if err != nil {
		return err
	}
	handle, err := dir.Open(".")
	if err != nil {
		return err
	}
	defer handle.Close()
	return stamp(handle, base, header.ModTime)
}
