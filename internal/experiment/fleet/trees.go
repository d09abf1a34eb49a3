package fleet

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"github.com/klauspost/compress/zstd"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/fit-eval/fit/internal/experiment/fleet/portable"
	"github.com/fit-eval/fit/internal/jsonlines"
	"github.com/fit-eval/fit/internal/scratch"
	"github.com/fit-eval/fit/internal/tree"
)

// maxTree bounds what is unpacked from one object.
const maxTree = 64 << 30

// objectName returns the name of the object that holds the content with a hash. Who knows the hash
// can read it; the name does not show it.
func objectName(hash string) string { return derived("name", hash) }

func derived(what, hash string) string {
	sum := sha256.Sum256([]byte("fit " + what + " " + hash))
	return hex.EncodeToString(sum[:])
}

// cipherOf returns the cipher of the content with a hash. What is read is compared with the hash,
// so it need not be authenticated.
func cipherOf(hash string, iv []byte) (cipher.Stream, error) {
	key, err := hex.DecodeString(derived("key", hash))
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewCTR(block, iv), nil
}

// putObject stores what a function writes, which must have a hash, as an object that only those can
// read who know the hash.
func putObject(ctx context.Context, store jetstream.ObjectStore, hash string, write func(io.Writer) error) error {
	iv := make([]byte, aes.BlockSize)
	_, _ = rand.Read(iv) // it never fails
	stream, err := cipherOf(hash, iv)
	if err != nil {
		return err
	}
	reader, writer := io.Pipe()
	var writing sync.WaitGroup
	writing.Go(func() {
		_ = writer.CloseWithError(write(cipher.StreamWriter{S: stream, W: writer})) // nil is the end of the file
	})
	_, err = store.Put(ctx, jetstream.ObjectMeta{Name: objectName(hash)}, io.MultiReader(bytes.NewReader(iv), reader))
	_ = reader.Close() // writing ends if the store did not read everything
	writing.Wait()
	return err
}

// openObject reads the object with a hash, as it was written.
func (h *Hub) openObject(ctx context.Context, store jetstream.ObjectStore, hash string) (io.Reader, error) {
	if _, err := hex.DecodeString(hash); err != nil || len(hash) != 2*sha256.Size || strings.ToLower(hash) != hash {
		return nil, fmt.Errorf("object %.80q: not a hash", hash)
	}
	info, err := store.GetInfo(ctx, objectName(hash))
	if err != nil {
		return nil, err
	}
	stream, err := h.stream(ctx, "OBJ_"+treesBucket)
	if err != nil {
		return nil, err
	}
	from := &chunks{
		ctx:     ctx,
		stream:  stream,
		subject: "$O." + treesBucket + ".C." + info.NUID,
		left:    int64(min(info.Size, maxTree)),
	}
	iv := make([]byte, aes.BlockSize)
	if _, err := io.ReadFull(from, iv); err != nil {
		return nil, fmt.Errorf("%w: %w", errContent, err)
	}
	plain, err := cipherOf(hash, iv)
	return cipher.StreamReader{S: plain, R: from}, err
}

// checkTree makes sure that a stored tree is the one with its hash.
func (h *Hub) checkTree(ctx context.Context, store jetstream.ObjectStore, hash string) error {
	from, err := h.openObject(ctx, store, hash)
	if err != nil {
		return err
	}
	decoder, err := newDecoder(from)
	if err != nil {
		return err
	}
	defer decoder.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, io.LimitReader(decoder, maxTree)); err != nil {
		return decodeError(err)
	}
	if hex.EncodeToString(sum.Sum(nil)) != hash {
		return errContent
	}
	return nil
}

func newDecoder(from io.Reader) (*zstd.Decoder, error) {
	return zstd.NewReader(from, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(256<<20),
		zstd.WithDecoderMaxWindow(8*packWindow))
}

// decodeError says of an error in what was read that it is not what was announced.
func decodeError(err error) error {
	if isAny(err, context.Canceled, context.DeadlineExceeded, nats.ErrTimeout, nats.ErrNoResponders,
		nats.ErrConnectionClosed, nats.ErrDisconnected) {
		return err
	}
	return fmt.Errorf("%w: %w", errContent, err)
}

// packTree packs a file or directory and returns the hash and the size of what was packed.
func packTree(w io.Writer, root string, skip func(string) bool) (sha string, size int64, err error) {
	encoder := encoders.Get().(*zstd.Encoder)
	defer func() { encoder.Reset(nil); encoders.Put(encoder) }()
	encoder.Reset(w)
	hash, plain := sha256.New(), counted(0)
	err = portable.Archive(io.MultiWriter(encoder, hash, &plain), root, skip)
	if err = errors.Join(err, encoder.Close()); err != nil {
		return "", 0, err
	}
	return hex.EncodeToString(hash.Sum(nil)), int64(plain), nil
}

// counted counts what is written to it.
type counted int64

func (c *counted) Write(p []byte) (int, error) {
	*c += counted(len(p))
	return len(p), nil
}

// errContent is returned for an object that is not what was announced.
var errContent = errors.New("its content does not have the hash that was announced")

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

// maxResult bounds what an attempt can leave, and how much of it there may be in few bytes.
const (
	maxResult     = 8 << 30
	alwaysAllowed = 256 << 20
	maxRatio      = 200
)

// resultLimit returns how large the files of an attempt may be that were packed into some bytes.
func resultLimit(packed int64) int64 { return min(maxResult, max(alwaysAllowed, maxRatio*packed)) }

// resultUnpack is how the files of an attempt are unpacked: what fit itself reads is no link.
var resultUnpack = tree.Unpack{Top: true, NoTopLinks: true}

// unpackTree unpacks what packTree made into a new directory, which gets its name when everything
// in it is there and has the expected hash.
func unpackTree(from io.Reader, want, dir string, limit int64, how tree.Unpack) error {
	decoder, err := newDecoder(from)
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
	err = how.Dir(io.TeeReader(io.LimitReader(decoder, limit), hash), temporary)
	if err != nil {
		if !errors.As(err, new(*fs.PathError)) || !isFullDisk(err) {
			err = decodeError(err)
		}
	} else if hex.EncodeToString(hash.Sum(nil)) != want {
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

func isFullDisk(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// fetchTree makes sure that a tree is in a cache, which keeps trees by their hash. Several workers
// of a machine can share it.
func (h *Hub) fetchTree(ctx context.Context, store jetstream.ObjectStore, cache, hash string) error {
	dir := filepath.Join(cache, hash)
	if _, err := os.Stat(dir); err == nil && filepath.IsLocal(hash) {
		return nil
	}
	if err := os.MkdirAll(cache, 0o700); err != nil {
		return fmt.Errorf("lock tree %.12s: %w", hash, err)
	}
	from, err := h.openObject(ctx, store, hash)
	if err != nil {
		return fmt.Errorf("fetch tree %.12s: %w", hash, err)
	}
	unlock, err := jsonlines.LockFile(ctx, dir+".lock")
	if err != nil {
		return fmt.Errorf("lock tree %.12s: %w", hash, err)
	}
	defer unlock()
	if _, err := os.Stat(dir); err == nil {
		return nil // another worker was quicker
	}
	if err := unpackTree(from, hash, dir, maxTree, tree.Unpack{Top: true}); err != nil {
		return fmt.Errorf("fetch tree %.12s: %w", hash, err)
	}
	return nil
}
