package ledger

import (
	"crypto/ed25519"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/fit-eval/fit/internal/atomicfile"
)

// SigningKey signs the heads of ledgers. It belongs to a user and is kept outside all run
// directories, so that someone who changes a ledger and seals it again cannot sign it.
type SigningKey struct {
	private ed25519.PrivateKey
	heads   string // the directory beside the key's file with the last head it signed of each ledger
}

// LoadKey reads the key in a file.
func LoadKey(path string) (*SigningKey, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the key that signs ledgers: %w", err)
	}
	seed, err := hex.DecodeString(strings.TrimSpace(string(content)))
	if err != nil || len(seed) != ed25519.SeedSize {
		return nil, fmt.Errorf("%s is not a key that signs ledgers; move it away to get a new one", path)
	}
	return &SigningKey{private: ed25519.NewKeyFromSeed(seed), heads: path + ".heads"}, nil
}

// CreateKey reads the key in a file, and makes one on first use.
func CreateKey(path string) (*SigningKey, error) {
	key, err := LoadKey(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return key, err
	}
	_, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		return nil, fmt.Errorf("make a key that signs ledgers: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("make a key that signs ledgers: %w", err)
	}
	// If two processes make a key at the same time, one wins and both use its key.
	temporary := fmt.Sprintf("%s.%d", path, os.Getpid())
	if err := os.WriteFile(temporary, []byte(hex.EncodeToString(private.Seed())+"\n"), 0o600); err != nil {
		return nil, fmt.Errorf("make a key that signs ledgers: %w", err)
	}
	defer os.Remove(temporary)
	if err := os.Link(temporary, path); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("make a key that signs ledgers: %w", err)
	}
	return LoadKey(path)
}

// ID names the key: its public half.
func (k *SigningKey) ID() string {
	public, _ := k.private.Public().(ed25519.PublicKey)
	return hex.EncodeToString(public)
}

// remember keeps the last head of a ledger with the key, and which ledger is at the path. A run
// directory that is put back to an older state brings its older note along, with a valid signature,
// and one that was rewritten may bring none; the key knows better. If its directory cannot be
// written, nothing is remembered; results are still worth keeping.
func (k *SigningKey) remember(path, first, head string) {
	if os.MkdirAll(k.heads, 0o700) == nil {
		_ = atomicfile.Write(filepath.Join(k.heads, first), 0o600, []byte(head+"\n"))
		if at := placeOf(path); k.recall(at) != first {
			_ = atomicfile.Write(filepath.Join(k.heads, at), 0o600, []byte(first+"\n"))
		}
	}
}

// Number notes one more experiment on a family, and returns how many the key has seen with it; 0
// where nothing can be remembered. Who tries often enough finds something, so reports say it.
func (k *SigningKey) Number(family string) int {
	if os.MkdirAll(k.heads, 0o700) != nil {
		return 0
	}
	file, err := os.OpenFile(filepath.Join(k.heads, "family-"+digest([]byte(family))),
		os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return 0
	}
	defer file.Close()
	line := time.Now().UTC().Format(time.RFC3339) + "\n" // the same length in all years
	if _, err := file.WriteString(line); err != nil {
		return 0
	}
	info, err := file.Stat()
	if err != nil {
		return 0
	}
	return int(info.Size()) / len(line)
}

// placeOf returns the name under which a path is remembered, the same for all spellings of the
// path.
func placeOf(path string) string {
	dir, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		return ""
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	return "at-" + digest([]byte(filepath.Join(dir, filepath.Base(path))))
}

func (k *SigningKey) recall(name string) string {
	content, err := os.ReadFile(filepath.Join(k.heads, name))
	if err != nil || name == "" {
		return ""
	}
	return strings.TrimSpace(string(content))
}

// Older reports whether a ledger lacks the last record that the key has signed of it: the ledger
// was put back to an older state, or another copy of it was continued. A ledger is known by its
// first line, so one without a line is never older.
func (k *SigningKey) Older(c *Contents) bool {
	head := k.recall(c.first)
	return head != "" && c.hashes[head] == 0
}

// Signed reports whether the key has signed all records of a ledger, though the signature may be
// gone: it remembers the last of them, and the chain holds the others.
func (k *SigningKey) Signed(c *Contents) bool {
	return c.SignedBy == k.ID() || c.Head != "" && k.recall(c.first) == c.Head
}

// replaced reports whether another ledger lay at the path when the key last signed one there.
func (k *SigningKey) replaced(path string, c *Contents) bool {
	first := k.recall(placeOf(path))
	return first != "" && c.first != "" && first != c.first
}

// Signer says who signed a ledger, and why it may not be the user's.
type Signer struct {
	Own bool
	// Note says what a reader must know; empty if there is nothing. Doubt is set where the user's
	// key knows that something was put back, removed or replaced.
	Note  string
	Doubt bool
	// Signed of all Records have a valid signature, by the key By.
	Records, Signed int
	By              string
}

// SignerOf looks at the signature of a ledger that was read from a path, and at what the user's key
// remembers about it. The key is nil where the user has none, and so has signed nothing.
func SignerOf(key *SigningKey, path string, c *Contents) Signer {
	found := signerOf(key, path, c)
	if !found.Own && key != nil && key.recall(c.first) != "" || found.Signed != 0 && found.Signed < found.Records {
		// A run in progress may have added records since, also after the note was read.
		if again, err := ReadFile(path); err == nil {
			return signerOf(key, path, again)
		}
	}
	return found
}

func signerOf(key *SigningKey, path string, c *Contents) Signer {
	found := judgedSigner(key, path, c)
	found.Records = c.records
	if n := c.noted; n != nil && c.headAtNote == n.Head && n.signed() {
		found.Signed, found.By = c.recordsNoted, n.Key
	}
	return found
}

func judgedSigner(key *SigningKey, path string, c *Contents) Signer {
	switch {
	case c.Head == "": // nothing was recorded yet
		return Signer{Own: true}
	case key != nil && key.Older(c):
		return Signer{Doubt: true, Note: path + " is older than the last state that your key signed: it was put " +
			"back, or another copy of it was continued"}
	case key != nil && c.SignedBy == key.ID():
		return Signer{Own: true}
	case c.SignedBy != "":
		return Signer{Note: fmt.Sprintf("%s is signed by key %s, which is not yours", path, c.SignedBy)}
	case key != nil && key.Signed(c):
		return Signer{Doubt: true, Note: path + " is not signed: its signature was removed; the records are still " +
			"those that your key signed"}
	case key != nil && key.replaced(path, c):
		return Signer{Doubt: true, Note: path + " is not signed, and your key signed other results in this " +
			"directory: they were replaced"}
	}
	return Signer{Note: path + " is unsigned: a rewrite of the whole ledger would go undetected"}
}

// sign adds the key and a signature to a note.
func (n *note) sign(key *SigningKey) {
	if key != nil {
		n.Key, n.Signature = key.ID(), key.Sign(headPurpose, n.message())
	}
}

// headPurpose is what the signature of a note is for.
const headPurpose = "ledger head"

func (n *note) message() []byte {
	message := fmt.Appendf(nil, "%s\n%d", n.Head, n.Bytes)
	if n.Next != "" || n.NextBytes != 0 {
		message = fmt.Appendf(message, "\n%s\n%d", n.Next, n.NextBytes)
	}
	if n.Plan != "" {
		message = fmt.Appendf(message, "\nplan %s", n.Plan)
	}
	return message
}

// signed reports whether the signature is that of the key which the note names.
func (n *note) signed() bool {
	public, err := hex.DecodeString(n.Key)
	if err != nil || len(public) != ed25519.PublicKeySize {
		return false
	}
	signature, err := hex.DecodeString(n.Signature)
	return err == nil && ed25519.Verify(public, signedMessage(headPurpose, n.message()), signature)
}

// Sign returns the signature of a content by the key with this ID: Ed25519 over "fit", the purpose,
// a line feed, and the content. With the purpose in it, it stands for nothing else.
func (k *SigningKey) Sign(purpose string, content []byte) string {
	return hex.EncodeToString(ed25519.Sign(k.private, signedMessage(purpose, content)))
}

func signedMessage(purpose string, content []byte) []byte {
	return append([]byte("fit "+purpose+"\n"), content...)
}
