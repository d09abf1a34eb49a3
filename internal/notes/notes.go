// Package notes keeps what people write about an experiment beside its results: notes and tags on
// its cells, and views of its page that they saved. Each has the name of its author and is signed
// with the author's key, as the heads of ledgers are. The file only grows: who removes a note adds
// a line that says so.
package notes

import (
	"bufio"
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/fit-eval/fit/ledger"
)

// File is the file of the notes in a run directory.
const File = "notes.jsonl"

// What a note may hold, and the file.
const (
	maxText = 10_000
	maxTags = 20
	maxTag  = 40
	maxView = 2000
	maxFile = 4 << 20
)

// Note is what somebody wrote about a cell, or a view that somebody saved.
type Note struct {
	ID   string `json:"id"`
	AtMs int64  `json:"atMs"`
	By   string `json:"by"`
	// Task, Arm and Run name the cell; of a saved view they are empty.
	Task string `json:"task,omitempty"`
	Arm  string `json:"arm,omitempty"`
	Run  int    `json:"run"`
	// Record is the hash of the result that the note is about; empty where there was none yet.
	Record string   `json:"record,omitempty"`
	Text   string   `json:"text,omitempty"` // of a saved view its name
	Tags   []string `json:"tags,omitempty"`
	// View is the query of a page's address.
	View string `json:"view,omitempty"`
	// Removes is the note that this one takes away.
	Removes   string `json:"removes,omitempty"`
	Key       string `json:"key,omitempty"`
	Signature string `json:"signature,omitempty"`
}

// Cell is the cell that a note is about.
func (n *Note) Cell() ledger.Cell { return ledger.Cell{TaskID: n.Task, Arm: n.Arm, RunIndex: n.Run} }

// Seal says whose a note is.
type Seal string

// The seals of a note.
const (
	Own      Seal = "own"      // signed with the reader's key
	Foreign  Seal = "foreign"  // signed with another key
	Unsigned Seal = "unsigned" // anybody may have written it
	Altered  Seal = "altered"  // not as it was signed
)

// SealOf checks the signature of a note. The key is the reader's; nil is none.
func SealOf(n *Note, key *ledger.SigningKey) Seal {
	switch {
	case n.Signature == "" && n.Key == "":
		return Unsigned
	case !n.isSigned():
		return Altered
	case key != nil && key.ID() == n.Key:
		return Own
	}
	return Foreign
}

func (n *Note) isSigned() bool {
	public, err := hex.DecodeString(n.Key)
	if err != nil || len(public) != ed25519.PublicKeySize {
		return false
	}
	signature, err := hex.DecodeString(n.Signature)
	return err == nil && ed25519.Verify(public, append([]byte("fit "+purpose+"\n"), n.content()...), signature)
}

// purpose is what a signature of a note says, so that it cannot stand for anything else.
const purpose = "note"

// content is what is signed: the note without its signature.
func (n *Note) content() []byte {
	unsigned := *n
	unsigned.Signature = ""
	content, _ := json.Marshal(unsigned) // texts and numbers always can be
	return content
}

// Check says what is wrong with a note that is to be added.
func (n *Note) Check() error {
	about := n.Task != "" && n.Arm != "" && n.Run >= 0
	switch {
	case n.Removes != "":
		return nil
	case utf8.RuneCountInString(n.Text) > maxText:
		return fmt.Errorf("the text has more than %d characters", maxText)
	case len(n.Tags) > maxTags:
		return fmt.Errorf("more than %d tags", maxTags)
	case n.View != "":
		if _, err := url.ParseQuery(n.View); err != nil || len(n.View) > maxView || about || n.Text == "" {
			return errors.New("a saved view has a name and the query of a page's address")
		}
		return nil
	case !about:
		return errors.New("name the cell: task, arm and run")
	case strings.TrimSpace(n.Text) == "" && len(n.Tags) == 0:
		return errors.New("write a text or a tag")
	}
	for _, tag := range n.Tags {
		if !isTag(tag) {
			return fmt.Errorf("tag %q: use letters, digits, dots, dashes, colons and underscores, at most %d", tag,
				maxTag)
		}
	}
	return nil
}

func isTag(tag string) bool {
	allowed := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("-_.:", r) }
	return tag != "" && utf8.RuneCountInString(tag) <= maxTag &&
		!strings.ContainsFunc(tag, func(r rune) bool { return !allowed(r) })
}

// Add signs a note, unless there is no key, and adds it to those of a run directory.
func Add(dir string, n Note, key *ledger.SigningKey) (Note, error) {
	if err := n.Check(); err != nil {
		return n, err
	}
	id := make([]byte, 8)
	_, _ = rand.Read(id) // it never fails
	n.ID, n.AtMs = hex.EncodeToString(id), time.Now().UnixMilli()
	slices.Sort(n.Tags)
	n.Tags = slices.Compact(n.Tags)
	n.Key, n.Signature = "", ""
	if key != nil {
		n.Key = key.ID()
		n.Signature = key.Sign(purpose, n.content())
	}
	line, err := json.Marshal(n)
	if err != nil {
		return n, err
	}
	file, size, err := open(dir, os.O_RDWR|os.O_APPEND|os.O_CREATE)
	if err != nil {
		return n, err
	}
	if size+int64(len(line)) > maxFile {
		return n, errors.Join(fmt.Errorf("%s is full: move it away to begin another one", File), file.Close())
	}
	if last := make([]byte, 1); size > 0 {
		if _, err := file.ReadAt(last, size-1); err == nil && last[0] != '\n' { // a line that was cut stays alone
			line = append([]byte{'\n'}, line...)
		}
	}
	_, err = file.Write(append(line, '\n')) // one call: others may add theirs
	return n, errors.Join(err, file.Close())
}

// Read returns the notes of a run directory in the order they were written, without those that were
// removed. Lines that are no notes are left out.
func Read(dir string) ([]Note, error) {
	file, _, err := open(dir, os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var found []Note
	removed := map[string]bool{}
	lines := bufio.NewScanner(io.LimitReader(file, maxFile))
	lines.Buffer(nil, maxFile)
	for lines.Scan() {
		var n Note
		if json.Unmarshal(bytes.TrimSpace(lines.Bytes()), &n) != nil || n.ID == "" {
			continue
		}
		switch {
		case n.Removes == "":
			found = append(found, n)
		case SealOf(&n, nil) != Altered:
			removed[n.Removes] = true
		}
	}
	return slices.DeleteFunc(found, func(n Note) bool { return removed[n.ID] }), lines.Err()
}

// open opens the notes of a run directory. A directory from a stranger may have a link or a pipe
// under that name, which is neither read nor written.
func open(dir string, flags int) (*os.File, int64, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, 0, err
	}
	defer root.Close()
	if info, err := root.Lstat(File); err == nil && !info.Mode().IsRegular() {
		return nil, 0, fmt.Errorf("%s is not a regular file", File)
	}
	file, err := root.OpenFile(File, flags|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, 0, err
	}
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return nil, 0, errors.Join(err, fmt.Errorf("%s is not a regular file", File), file.Close())
	}
	return file, info.Size(), nil
}
