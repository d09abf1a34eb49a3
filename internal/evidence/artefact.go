package evidence

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/fit-eval/fit/ledger"
)

// artefact is a file that a record names. It is hashed while it is read, so that what was read can
// be compared with what the sealed record vouches for.
type artefact struct {
	io.Reader
	file    *os.File
	hash    hash.Hash
	name    string
	vouched string // empty if nothing vouches for it
}

// vouched returns the digest that a record has of one of its files; empty if it has none.
func vouched(record *ledger.Record, name string) string {
	for _, artifact := range record.Artifacts {
		if artifact.Path == name {
			return artifact.SHA256
		}
	}
	return ""
}

// open opens a file by the name that a record gives it; nil: the record names none. A missing file
// is an error: without it, what the agent did is unknown. So is a name that leads out of the
// directory.
func (d *Directory) open(record *ledger.Record, name string) (*artefact, error) {
	if name == "" {
		return nil, nil
	}
	file, err := openBeneath(d.Root, filepath.FromSlash(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s is missing: put it back as it was recorded", name)
	}
	if err != nil {
		return nil, err
	}
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file: put it back as it was recorded", name)
		return nil, errors.Join(err, file.Close())
	}
	sum := sha256.New()
	return &artefact{
		Reader:  io.TeeReader(file, sum),
		file:    file,
		hash:    sum,
		name:    name,
		vouched: vouched(record, name),
	}, nil
}

// openInRoot opens a file inside dir, non-blocking: a FIFO does not wait for a writer.
func openInRoot(dir, name string) (*os.File, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
}

// digest reads the rest of the file and returns the digest of the whole. A file that is not what
// was recorded is an error.
func (a *artefact) digest() (string, error) {
	if _, err := io.Copy(io.Discard, a); err != nil {
		return "", err
	}
	sum := hex.EncodeToString(a.hash.Sum(nil))
	if a.vouched != "" && sum != a.vouched {
		return "", fmt.Errorf("%s differs from the record: put back the original", a.name)
	}
	return sum, nil
}

// Close implements io.Closer.
func (a *artefact) Close() error { return a.file.Close() }

// digest hashes a file that a record names.
func (d *Directory) digest(record *ledger.Record, name string) (string, error) {
	if name == "" && record.DiffPath == "" && len(record.Artifacts) > 0 && filepath.IsLocal(record.RunDir) {
		added := filepath.Join(record.RunDir, "diff.patch")
		if _, err := os.Lstat(filepath.Join(d.Root, added)); err == nil {
			return "", fmt.Errorf("%s was added: the record says that the attempt changed nothing", added)
		}
	}
	file, err := d.open(record, name)
	if file == nil || err != nil {
		return "", err
	}
	defer file.Close()
	return file.digest()
}

// read reads a file that a record names, up to a bound.
func (d *Directory) read(record *ledger.Record, name string, most int64) ([]byte, error) {
	file, err := d.open(record, name)
	if file == nil || err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, most))
	if err != nil {
		return nil, err
	}
	_, err = file.digest()
	return data, err
}
