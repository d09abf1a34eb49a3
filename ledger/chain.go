package ledger

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/fit-eval/fit/internal/jsonenc"
	"github.com/fit-eval/fit/redact"
)

// Every line ends with its two links. They are set last, so that a line can be checked by its bytes
// alone: a reader need not know all its fields.
const (
	emptyLinks = `"prev":"","hash":""}`
	linksSize  = len(emptyLinks) + 2*hashSize
	hashSize   = sha256.Size * 2
)

// genesis returns the hash that the first line of an experiment's ledger names as the line before
// it.
func genesis(experiment string) string { return digest([]byte("fit ledger\n" + experiment)) }

func digest(parts ...[]byte) string {
	h := sha256.New()
	for _, part := range parts {
		h.Write(part)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// seal makes the line of a value whose JSON ends with empty links: redacted, linked to the line
// before, without a line break.
func seal(value any, prev string, redactor *redact.Redactor) (line []byte, hash string, err error) {
	if line, err = jsonenc.Marshal(value); err != nil {
		return nil, "", err
	}
	body, ok := bytes.CutSuffix(redactor.JSON(line), []byte(emptyLinks))
	if !ok {
		return nil, "", errors.New("a line of the ledger must end with its links")
	}
	linked := append(bytes.Clone(body), `"prev":"`+prev+`","hash":"`...)
	hash = digest(linked, []byte(`"}`))
	return append(linked, hash+`"}`...), hash, nil
}

// links are the last two fields of a line.
type links struct{ prev, hash string }

// unseal reads the links of a line and reports whether its hash is right.
func unseal(line []byte) (links, bool, error) {
	if len(line) < linksSize {
		return links{}, false, errors.New("the line is too short for a record")
	}
	tail := line[len(line)-linksSize:]
	prev, hash := tail[len(`"prev":"`):][:hashSize], tail[len(tail)-2-hashSize:][:hashSize]
	if want := fmt.Sprintf(`"prev":"%s","hash":"%s"}`, prev, hash); string(tail) != want {
		return links{}, false, errors.New("the line does not end with its links")
	}
	found := links{prev: string(prev), hash: string(hash)}
	return found, digest(line[:len(line)-2-hashSize], []byte(`"}`)) == found.hash, nil
}

// recovery is the line that a writer adds when it found the end of the ledger torn. Nothing is cut
// off: the torn bytes stay, and this line vouches for them.
type recovery struct {
	Recovered tornBytes `json:"recovered"`
	Prev      string    `json:"prev"`
	Hash      string    `json:"hash"`
}

type tornBytes struct {
	Bytes  int    `json:"bytes"`
	SHA256 string `json:"sha256"`
	AtMs   int64  `json:"atMs"`
}

var recoveryPrefix = []byte(`{"recovered":`)
