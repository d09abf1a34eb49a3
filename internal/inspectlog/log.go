// Package inspectlog reads logs of Inspect: an archive with a member for each sample, or one JSON
// document. Archives may be hostile. A sample is also a trace, for which the package has a decoder.
package inspectlog

import (
	"archive/zip"
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/zstd"

	"github.com/fit-eval/fit/internal/jsondoc"
)

const (
	// methodZstd is how newer versions compress members.
	methodZstd = 93
	// maxMember bounds what one member unpacks to: a sample with all that its agent did.
	maxMember = 128 << 20
	// maxMembers bounds the members of an archive.
	maxMembers = 2_000_000
	// maxRatio bounds how many times larger an archive may become, from maxUnpacked on: members may
	// share what they unpack.
	maxRatio    = 500
	maxUnpacked = 256 << 20
	// maxHead is how much of a file shows what it is.
	maxHead = 4 << 10
)

const (
	headerMember    = "header.json"
	startMember     = "_journal/start.json" // of a log that was cut
	reductionMember = "reductions.json"
	samplePrefix    = "samples/"
	documentSample  = "sample " // and its number, in a log that is one document
)

// Is reports whether a file is a log of Inspect.
func Is(file string) bool {
	head := headOf(file)
	if !isArchive(head) {
		return jsondoc.Has(file, func(members map[string]byte) bool {
			return members["version"] != 0 && members["status"] == '"' ||
				members["eval"] == '{' && members["samples"] == '['
		})
	}
	archive, err := zip.OpenReader(file)
	if err != nil {
		return strings.HasSuffix(file, ".eval") // one that was cut: reading it says so
	}
	defer archive.Close()
	return slices.ContainsFunc(archive.File, func(member *zip.File) bool {
		return member.Name == headerMember || member.Name == startMember
	})
}

func isArchive(head []byte) bool { return bytes.HasPrefix(head, []byte("PK\x03\x04")) }

func headOf(path string) []byte {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return nil // to open a pipe might wait forever
	}
	file, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer file.Close()
	head := make([]byte, maxHead)
	n, _ := io.ReadFull(file, head) // less is enough
	return bytes.TrimPrefix(head[:n], []byte("\ufeff"))
}

// Parts see the parts of a log. Texts are valid during the call only.
type Parts struct {
	// Header sees what holds for the whole log, before its samples or after them. Of a log that was
	// cut it is what is known at its beginning. There are at most so many samples.
	Header func(text []byte, cut bool, samples int) error
	// Reductions sees what is known of the samples over all epochs.
	Reductions func(text []byte) error
	// Sample sees each sample with its name in the log.
	Sample func(name string, text []byte) error
}

// Read reads a log.
func Read(file string, parts Parts) error {
	if !isArchive(headOf(file)) {
		return readDocument(file, parts)
	}
	opened, err := openArchive(file)
	if err != nil {
		return err
	}
	defer opened.Close()
	if err := opened.header(parts.Header); err != nil {
		return err
	}
	if err := opened.show(reductionMember, parts.Reductions); err != nil {
		return err
	}
	opened.members = nil // with the directory of a large log, it takes as much memory as half of its results
	for i, member := range opened.File {
		opened.File[i] = nil
		if isSample(member.Name) {
			sample := func(text []byte) error { return parts.Sample(member.Name, text) }
			if err := opened.see(member, sample); err != nil {
				return err
			}
		}
	}
	return nil
}

func isSample(name string) bool {
	return strings.HasPrefix(name, samplePrefix) && strings.HasSuffix(name, ".json")
}

// archive is a log that is an archive.
type archive struct {
	*zip.ReadCloser
	members map[string]*zip.File
	// packed is the size of the archive, unpacked that of what was read of it.
	packed, unpacked int64
	buffer           bytes.Buffer
	deflated         *bufio.Reader
	inflater         io.ReadCloser
	zstd             *zstd.Decoder
}

func openArchive(file string) (*archive, error) {
	opened, err := zip.OpenReader(file)
	if err != nil {
		if errors.Is(err, zip.ErrFormat) {
			err = errors.New("copy it again from where it was written")
		}
		return nil, fmt.Errorf("the archive was cut, or is none: %w", err)
	}
	a := &archive{ReadCloser: opened, members: make(map[string]*zip.File, len(opened.File))}
	if info, err := os.Stat(file); err == nil {
		a.packed = info.Size()
	}
	opened.RegisterDecompressor(zip.Deflate, a.inflate)
	opened.RegisterDecompressor(methodZstd, a.unpackZstd)
	if err := a.check(); err != nil {
		return nil, errors.Join(err, opened.Close())
	}
	return a, nil
}

// inflate is a decompressor of members. There is one for all of them, because only one is read at a
// time, and each would take 40 KB.
func (a *archive) inflate(packed io.Reader) io.ReadCloser {
	if a.inflater == nil {
		a.deflated = bufio.NewReader(packed)
		a.inflater = flate.NewReader(a.deflated)
		return a.inflater
	}
	a.deflated.Reset(packed)
	if err := a.inflater.(flate.Resetter).Reset(a.deflated, nil); err != nil {
		return io.NopCloser(failing{err})
	}
	return a.inflater
}

// unpackZstd is the other.
func (a *archive) unpackZstd(packed io.Reader) io.ReadCloser {
	var err error
	if a.zstd == nil {
		a.zstd, err = zstd.NewReader(packed, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxMember),
			zstd.WithDecoderLowmem(true))
	} else {
		err = a.zstd.Reset(packed)
	}
	if err != nil {
		return io.NopCloser(failing{err})
	}
	return io.NopCloser(a.zstd)
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// check refuses an archive that Inspect cannot have written.
func (a *archive) check() error {
	if len(a.File) > maxMembers {
		return fmt.Errorf("the archive has more than %d members", maxMembers)
	}
	for _, member := range a.File {
		switch name := member.Name; {
		case a.members[name] != nil:
			return fmt.Errorf("the member %q is there twice: the log was altered", name)
		case path.IsAbs(name) || strings.Contains(name, `\`) || slices.Contains(strings.Split(name, "/"), ".."):
			return fmt.Errorf("the member %q is outside of the archive: the log was altered", name)
		default:
			a.members[name] = member
		}
	}
	return nil
}

func (a *archive) header(see func(text []byte, cut bool, samples int) error) error {
	name, cut := headerMember, false
	if a.members[name] == nil {
		name, cut = startMember, true
	}
	if a.members[name] == nil {
		return errors.New("the archive has no header.json: it is no log of Inspect")
	}
	return a.show(name, func(text []byte) error { return see(text, cut, len(a.File)) })
}

// show shows a member that may be absent.
func (a *archive) show(name string, see func(text []byte) error) error {
	if member := a.members[name]; member != nil {
		return a.see(member, see)
	}
	return nil
}

func (a *archive) see(member *zip.File, see func(text []byte) error) error {
	text, err := a.unpack(member)
	if err == nil {
		err = see(text)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", member.Name, err)
	}
	return nil
}

// unpack returns a member, until the next is unpacked. What it says of its size is not trusted.
func (a *archive) unpack(member *zip.File) ([]byte, error) {
	unpacked, err := member.Open()
	if err != nil {
		return nil, err
	}
	defer unpacked.Close()
	if a.buffer.Cap() > maxMember/16 {
		a.buffer = bytes.Buffer{} // a large sample is not kept in memory
	}
	a.buffer.Reset()
	n, err := io.Copy(&a.buffer, io.LimitReader(unpacked, maxMember+1))
	a.unpacked += n
	switch {
	case a.unpacked > maxUnpacked && a.unpacked > maxRatio*a.packed:
		return nil, fmt.Errorf("the archive unpacks to more than %d times its size", maxRatio)
	case n > maxMember:
		return nil, fmt.Errorf("it unpacks to more than %d bytes", maxMember)
	case err != nil:
		return nil, err
	}
	return a.buffer.Bytes(), nil
}

// readDocument reads a log that is one JSON document, sample by sample.
func readDocument(file string, parts Parts) error {
	opened, err := os.Open(file)
	if err != nil {
		return err
	}
	defer opened.Close()
	whole, samples := map[string]json.RawMessage{}, 0
	err = jsondoc.Members(opened, func(name string, decoder *json.Decoder) error {
		if name == "samples" {
			return jsondoc.Elements(decoder, func(raw []byte) error {
				samples++
				return parts.Sample(documentSample+strconv.Itoa(samples), raw)
			})
		}
		var value json.RawMessage
		err := decoder.Decode(&value)
		whole[name] = value
		return err
	})
	if err != nil {
		return err
	}
	if reductions := whole["reductions"]; reductions != nil {
		delete(whole, "reductions")
		if err := parts.Reductions(reductions); err != nil {
			return fmt.Errorf("reductions: %w", err)
		}
	}
	text, err := json.Marshal(whole)
	if err != nil {
		return err
	}
	return parts.Header(text, false, samples)
}
