package fleet

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/fit-eval/fit/internal/jsonlines"
	"github.com/fit-eval/fit/internal/scratch"
	"github.com/fit-eval/fit/internal/tree"
)

// maxTree bounds what is unpacked from one object.
const maxTree = 64 << 30

// packed writes a file or directory as an archive, without what skip accepts.
func packed(w io.Writer, root string, skip func(path string) bool) error {
	walk := tree.Walk{}
	if skip != nil {
		walk.Skip = func(name string) bool { return skip(filepath.Join(root, filepath.FromSlash(name))) }
	}
	return walk.Pack(w, root)
}

// treeHash returns the hash of a file or directory as packed writes it.
func treeHash(root string, skip func(string) bool) (string, error) {
	hash := sha256.New()
	if err := packed(hash, root, skip); err != nil {
		return "", err
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

// putTree packs a file or directory into an object and returns the hash of what was packed.
func putTree(ctx context.Context, store jetstream.ObjectStore, name, root string, skip func(string) bool) (string,
	error,
) {
	reader, writer := io.Pipe()
	var hash string
	var packing sync.WaitGroup
	packing.Go(func() {
		var err error
		hash, err = packTree(writer, root, skip)
		_ = writer.CloseWithError(err) // nil is the end of the file
	})
	_, err := store.Put(ctx, jetstream.ObjectMeta{Name: name}, reader)
	_ = reader.Close() // packing ends if the store did not read everything
	packing.Wait()
	return hash, err
}

// packTree packs a file or directory and returns the hash of what was packed.
func packTree(w io.Writer, root string, skip func(string) bool) (string, error) {
	encoder := encoders.Get().(*zstd.Encoder)
	defer func() { encoder.Reset(nil); encoders.Put(encoder) }()
	encoder.Reset(w)
	hash := sha256.New()
	if err := errors.Join(packed(io.MultiWriter(encoder, hash), root, skip), encoder.Close()); err != nil {
		return "", err
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

// stalledAfter is how long reading an object may make no progress, and longestRead how long it may
// take: without a deadline the library gives up after seconds, however large the object is.
const (
	stalledAfter = 20 * time.Second
	longestRead  = 24 * time.Hour
)

// errContent is returned for an object that is not what was announced.
var errContent = errors.New("its content does not have the hash that was announced")

// moving is a reader that resets a timer with every read.
type moving struct {
	io.Reader
	stall *time.Timer
}

func (m moving) Read(p []byte) (int, error) {
	m.stall.Reset(stalledAfter)
	return m.Reader.Read(p)
}

// packWindow bounds what packing and unpacking keep in memory, for many attempts at a time.
const packWindow = 1 << 20

// encoders are reused: making one costs more than packing the files of a short attempt.
var encoders = sync.Pool{New: func() any {
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest),
		zstd.WithWindowSize(packWindow))
	if err != nil {
		panic(err) // the options are constants
	}
	return encoder
}}

// errTooLarge says that something has too many bytes.
var errTooLarge = errors.New("too large")

// bounded is a buffer of limited size.
type bounded struct {
	bytes.Buffer
	left int
}

func (b *bounded) Write(p []byte) (int, error) {
	if b.left -= len(p); b.left < 0 {
		return 0, errTooLarge
	}
	return b.Buffer.Write(p)
}

// getTree unpacks an object into a new directory.
func getTree(ctx context.Context, store jetstream.ObjectStore, name, want, dir string) error {
	ctx, cancel := context.WithTimeout(ctx, longestRead)
	defer cancel()
	stall := time.AfterFunc(stalledAfter, cancel)
	defer stall.Stop()
	object, err := store.Get(ctx, name)
	if err != nil {
		return err
	}
	defer object.Close()
	return unpackTree(moving{object, stall}, want, dir)
}

// unpackTree unpacks what packTree made into a new directory, which gets its name when everything
// in it is there and has the expected hash.
func unpackTree(from io.Reader, want, dir string) error {
	decoder, err := zstd.NewReader(from, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(256<<20))
	if err != nil {
		return err
	}
	defer decoder.Close()
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return err
	}
	temporary, err := os.MkdirTemp(filepath.Dir(dir), ".new-")
	if err != nil {
		return err
	}
	hash := sha256.New()
	err = tree.Unpack{MaxBytes: maxTree, Top: true}.Dir(io.TeeReader(decoder, hash), temporary)
	if err == nil && hex.EncodeToString(hash.Sum(nil)) != want {
		err = errContent
	}
	if err == nil {
		err = os.Rename(temporary, dir)
	}
	if err != nil {
		return errors.Join(err, scratch.RemoveAll(temporary))
	}
	return nil
}

// fetchTree makes sure that a tree is in a cache, which keeps trees by their hash. Several workers
// of a machine can share it.
func fetchTree(ctx context.Context, store jetstream.ObjectStore, cache, hash string) error {
	if _, err := hex.DecodeString(hash); err != nil || len(hash) != 2*sha256.Size || strings.ToLower(hash) != hash {
		return fmt.Errorf("tree %.80q: not a hash", hash)
	}
	dir := filepath.Join(cache, hash)
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	if err := os.MkdirAll(cache, 0o700); err != nil {
		return fmt.Errorf("lock tree %s: %w", hash[:12], err)
	}
	unlock, err := jsonlines.LockFile(ctx, dir+".lock")
	if err != nil {
		return fmt.Errorf("lock tree %s: %w", hash[:12], err)
	}
	defer unlock()
	if _, err := os.Stat(dir); err == nil {
		return nil // another worker was quicker
	}
	if err := getTree(ctx, store, hash, hash, dir); err != nil {
		return fmt.Errorf("fetch tree %s: %w", hash[:12], err)
	}
	return nil
}
