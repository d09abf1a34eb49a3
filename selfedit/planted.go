package selfedit

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/fit-eval/fit/internal/display"
)

// maxIndex bounds the size of an index that is read whole.
const maxIndex = 1 << 30

// checkNotPlanted refuses a repository that was made inside the tracked files of another one. Git
// never makes such a thing by itself, and it would let anybody step off a protected branch by
// running git init in a subdirectory.
func checkNotPlanted(inner repository) error {
	parent := filepath.Dir(inner.top)
	if parent == inner.top {
		return nil
	}
	outer, err := findRepository(parent)
	if err != nil {
		// No outer repository; or one so broken that whoever broke it could have changed its branch
		// as well.
		return nil
	}
	rel, err := filepath.Rel(outer.top, inner.top)
	if err != nil {
		return outOfScope("%v", err)
	}
	tracked, err := outer.tracksBelow(filepath.ToSlash(rel))
	if err != nil {
		return outOfScope("failed to read the index of the outer repository %s: %v", display.Name(outer.top), err)
	}
	if tracked {
		return outOfScope("the repository %s lies in a directory whose files belong to the repository %s",
			display.Name(inner.top), display.Name(outer.top))
	}
	return nil
}

// tracksBelow reports whether the repository's index holds files in a directory.
func (r *repository) tracksBelow(rel string) (bool, error) {
	entries, err := r.localConfig()
	if err != nil {
		return false, err
	}
	hashSize := 20
	for _, entry := range entries {
		if entry.section == "extensions" && entry.key == "objectformat" && strings.EqualFold(entry.value, "sha256") {
			hashSize = 32
		}
	}
	text, err := readRegular(filepath.Join(r.gitDir, "index"), maxIndex)
	if isAbsent(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	shared, tracked, err := scanIndex(text, hashSize, rel)
	if err != nil || tracked || shared == "" {
		return tracked, err
	}
	if text, err = readRegular(filepath.Join(r.gitDir, "sharedindex."+shared), maxIndex); err != nil {
		return false, err
	}
	_, tracked, err = scanIndex(text, hashSize, rel)
	return tracked, err
}

var errIndex = errors.New("it is no index that can be read here")

const (
	indexHeader   = 12
	indexStatSize = 40
	modeDirectory = 0o040000
)

// scanIndex looks in the text of an index for a file below a directory. It also returns the name of
// the shared index that a split index builds on.
func scanIndex(text []byte, hashSize int, dir string) (shared string, tracked bool, err error) {
	if len(text) < indexHeader+hashSize || string(text[:4]) != "DIRC" {
		return "", false, errIndex
	}
	version, count := binary.BigEndian.Uint32(text[4:]), binary.BigEndian.Uint32(text[8:])
	if version < 2 || version > 4 {
		return "", false, fmt.Errorf("%w: its version is %d", errIndex, version)
	}
	rest := text[indexHeader : len(text)-hashSize]
	var name []byte
	for range count {
		var mode uint32
		if mode, name, rest, err = nextIndexEntry(rest, name, version, hashSize); err != nil {
			return "", false, err
		}
		isSparse := mode == modeDirectory && strings.HasPrefix(dir+"/", string(name))
		if strings.HasPrefix(string(name), dir+"/") || isSparse {
			return "", true, nil
		}
	}
	return sharedIndex(rest, hashSize), false, nil
}

// nextIndexEntry reads one entry; name is the one before it, on which version 4 builds.
func nextIndexEntry(text, previous []byte, version uint32, hashSize int) (mode uint32, name, rest []byte, err error) {
	fixed := indexStatSize + hashSize + 2
	if len(text) < fixed {
		return 0, nil, nil, errIndex
	}
	mode = binary.BigEndian.Uint32(text[24:])
	if binary.BigEndian.Uint16(text[fixed-2:])&0x4000 != 0 {
		fixed += 2
	}
	if len(text) < fixed {
		return 0, nil, nil, errIndex
	}
	tail := text[fixed:]
	if version == 4 {
		strip, length := indexVarint(tail)
		if length == 0 || strip > len(previous) {
			return 0, nil, nil, errIndex
		}
		tail = tail[length:]
		name = append(name, previous[:len(previous)-strip]...)
	}
	end := bytes.IndexByte(tail, 0)
	if end < 0 {
		return 0, nil, nil, errIndex
	}
	name = append(name, tail[:end]...)
	if version == 4 {
		return mode, name, tail[end+1:], nil
	}
	// Entries are padded with one to eight zero bytes to a multiple of eight.
	size := (fixed + end + 8) &^ 7
	if size > len(text) {
		return 0, nil, nil, errIndex
	}
	return mode, name, text[size:], nil
}

// indexVarint reads git's offset encoding: seven bits a byte, most significant first, each further
// byte adding one.
func indexVarint(text []byte) (value, length int) {
	for i, c := range text {
		if i == 4 {
			return 0, 0
		}
		value = value<<7 | int(c&0x7f)
		if c&0x80 == 0 {
			return value, i + 1
		}
		value++
	}
	return 0, 0
}

// sharedIndex returns the name in the extension that marks a split index.
func sharedIndex(extensions []byte, hashSize int) string {
	for len(extensions) >= 8 {
		size := int64(binary.BigEndian.Uint32(extensions[4:]))
		body := extensions[8:]
		if size > int64(len(body)) {
			return ""
		}
		if string(extensions[:4]) == "link" && size >= int64(hashSize) {
			if id := body[:hashSize]; !bytes.Equal(id, make([]byte, hashSize)) {
				return hex.EncodeToString(id)
			}
		}
		extensions = body[size:]
	}
	return ""
}
