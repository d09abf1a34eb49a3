package ledger

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// maxLine bounds one line of a ledger. Fields that agents fill are cut far below it.
const maxLine = 64 << 20

// The kinds of problems.
const (
	Changed  = "changed"  // the line's content does not fit its hash
	Removed  = "removed"  // lines are missing before this one, or at the end
	Inserted = "inserted" // the line does not belong between its neighbours
	Garbage  = "garbage"  // not a record, and no recovery vouches for it
	Invalid  = "invalid"  // sealed, but not what a record must be
	Torn     = "torn"     // the last line was being written when its writer died; the next writer recovers it
)

// Problem is something that is wrong with a ledger, and where.
type Problem struct {
	Line    int    `json:"line"`
	Kind    string `json:"kind"`
	Message string `json:"message"`
}

func (p Problem) String() string { return fmt.Sprintf("line %d: %s: %s", p.Line, p.Kind, p.Message) }

// Contents is what a ledger holds. Records are those that passed every check.
type Contents struct {
	Records   []Record
	Problems  []Problem
	Recovered int // torn ends that later writers have vouched for
	// Head is the hash of the last sealed line, Lines the number of lines.
	Head  string
	Lines int
	// SignedBy is the id of the key that signed all records; empty where none did.
	SignedBy string

	first  string         // the hash of the first sealed line, which names the ledger
	hashes map[string]int // line of each sealed hash: distinguishes an insertion from a removal

	noted        *note
	headAtNote   string // the head where the note says that the ledger ended
	records      int
	recordsNoted int // the records that the note knows of
	bytes        int64
}

// Damage is the error of a ledger that failed verification.
type Damage struct {
	Path     string
	Problems []Problem
}

func (d *Damage) Error() string {
	texts := make([]string, 0, 4)
	for i, p := range d.Problems {
		if i == 3 {
			texts = append(texts, fmt.Sprintf("and %d more", len(d.Problems)-i))
			break
		}
		texts = append(texts, p.String())
	}
	return fmt.Sprintf("ledger %s does not verify: %s", d.Path, strings.Join(texts, "; "))
}

// Damage returns the problems that put the content in doubt, as an error; nil if there are none. A
// torn end is not damage: its writer died, and nothing was altered.
func (c *Contents) Damage(path string) error {
	doubts := slices.DeleteFunc(slices.Clone(c.Problems), func(p Problem) bool { return p.Kind == Torn })
	if len(doubts) == 0 {
		return nil
	}
	return &Damage{Path: path, Problems: doubts}
}

// ReadFile reads and verifies a ledger, and the note of its head if there is one beside it. The
// error is for files that cannot be read; what is wrong with the content is in Problems.
func ReadFile(path string) (*Contents, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read ledger: %w", err)
	}
	defer file.Close()
	contents := &Contents{noted: readNote(path)}
	err = contents.scan(file, func(r *Record) error {
		contents.Records = append(contents.Records, *r)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read ledger %s: %w", path, err)
	}
	contents.checkNote()
	return contents, nil
}

// Scan reads and verifies a ledger and passes each valid record to visit without keeping it; the
// record is valid only during the call.
func Scan(r io.Reader, visit func(*Record) error) (*Contents, error) {
	contents := &Contents{}
	err := contents.scan(r, visit)
	return contents, err
}

// scanner follows the chain of a ledger.
type scanner struct {
	*Contents
	garbage    []byte // since the last sealed line, line breaks included
	garbageAt  int
	experiment string
	seen       map[Key]int
}

func (c *Contents) scan(r io.Reader, visit func(*Record) error) error {
	c.hashes = map[string]int{}
	s := &scanner{Contents: c, seen: map[Key]int{}}
	reader := bufio.NewReaderSize(r, 256<<10)
	for {
		line, whole, err := readLine(reader)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if len(line) > 0 || whole {
			c.Lines++
			c.bytes += int64(len(line))
			if whole {
				c.bytes++
			}
			if err := s.line(line, whole, visit); err != nil {
				return err
			}
			c.follow()
		}
		if err != nil {
			break
		}
	}
	s.flushGarbage()
	return nil
}

// readLine returns the next line without its line break, and whether it had one. The bytes are the
// caller's.
func readLine(r *bufio.Reader) (line []byte, whole bool, err error) {
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		if len(line) > maxLine {
			return nil, false, fmt.Errorf("a line is longer than %d bytes", maxLine)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		rest, whole := bytes.CutSuffix(line, []byte("\n"))
		return rest, whole, err
	}
}

// line processes one line. A line that is not a sealed record is garbage until a recovery vouches
// for it.
func (s *scanner) line(line []byte, whole bool, visit func(*Record) error) error {
	found, intact, err := unseal(line)
	switch {
	case err != nil && len(bytes.TrimSpace(line)) == 0 && len(s.garbage) == 0 && whole:
		s.problem(Garbage, "an empty line")
		return nil
	case err != nil && !whole:
		s.flushGarbage()
		s.problem(Torn, fmt.Sprintf("%d bytes of a line that was being written", len(line)))
		return nil
	case err != nil:
		if len(s.garbage) == 0 {
			s.garbageAt = s.Lines
		}
		s.garbage = append(append(s.garbage, line...), '\n')
		return nil
	}
	if bytes.HasPrefix(line, recoveryPrefix) {
		s.recovered(line, found, intact)
		return nil
	}
	s.flushGarbage()
	var record Record
	decodeErr := json.Unmarshal(line, &record)
	sound := s.link(found, intact, record.Experiment)
	switch {
	case !sound:
		return nil
	case decodeErr != nil:
		s.problem(Invalid, decodeErr.Error())
		return nil
	}
	if err := record.Validate(); err != nil {
		s.problem(Invalid, err.Error())
		return nil
	}
	if first, double := s.seen[record.Key()]; double {
		s.problem(Invalid, fmt.Sprintf("attempt %s was already recorded on line %d", record.Key(), first))
		return nil
	}
	s.seen[record.Key()] = s.Lines
	s.records++
	return visit(&record)
}

// link checks a line's place in the chain and makes it the new end.
func (s *scanner) link(found links, intact bool, experiment string) bool {
	want := s.Head
	if want == "" {
		want = genesis(experiment)
		s.experiment = experiment
	}
	defer s.end(found.hash)
	if !intact {
		s.problem(Changed, "the content does not match the hash")
		return false
	}
	if found.prev != want {
		s.broken(found.prev)
		return s.Head != "" // the line itself is as it was written; its neighbours are not, and are reported
	}
	return true
}

// end makes a sealed line the end of the chain.
func (s *scanner) end(hash string) {
	s.Head, s.hashes[hash] = hash, s.Lines
	s.first = cmp.Or(s.first, hash)
}

// broken reports why a line does not follow the one before it.
func (s *scanner) broken(prev string) {
	if after, known := s.hashes[prev]; known {
		for line := after + 1; line < s.Lines; line++ {
			s.Problems = append(s.Problems,
				Problem{Line: line, Kind: Inserted, Message: fmt.Sprintf("line %d follows line %d", s.Lines, after)})
		}
		return
	}
	s.problem(Removed, "the line before this one is missing")
}

// recovered checks that a recovery vouches for exactly the garbage before it.
func (s *scanner) recovered(line []byte, found links, intact bool) {
	var note recovery
	garbage := s.garbage
	s.garbage = nil
	if json.Unmarshal(line, &note) != nil || digest(garbage) != note.Recovered.SHA256 ||
		len(garbage) != note.Recovered.Bytes {
		s.garbage = garbage
		s.flushGarbage()
		s.problem(Changed, "the torn bytes before this line are not the ones that it records")
	} else {
		s.Recovered++
	}
	if s.Head == "" && intact { // the very first line was torn: the recovery begins the chain
		s.end(found.hash)
		return
	}
	s.link(found, intact, s.experiment)
}

func (s *scanner) flushGarbage() {
	if len(s.garbage) > 0 {
		s.Problems = append(s.Problems,
			Problem{Line: s.garbageAt, Kind: Garbage, Message: "no record, and no later line records it as torn"})
		s.garbage = nil
	}
}

func (s *scanner) problem(kind, message string) {
	s.Problems = append(s.Problems, Problem{Line: s.Lines, Kind: kind, Message: message})
}
