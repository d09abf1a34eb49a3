package gateway

import (
	"bytes"
	"os"
)

// inMemory is how much of a reply is kept in memory until it is recorded.
const inMemory = 64 << 10

// spool keeps a reply until it is recorded. A long one is kept in a file without a name, so that
// nothing is left behind, whatever happens to this process.
type spool struct {
	dir    string // for the file
	memory bytes.Buffer
	file   *os.File // what came after that; nil: nothing
	size   int64    // of what is in the file
	full   bool     // there is no room for a file
}

// Write adds to the reply.
func (s *spool) Write(p []byte) {
	if s.file == nil && !s.full && s.memory.Len()+len(p) > inMemory {
		s.file = createUnnamed(s.dir)
		s.full = s.file == nil
	}
	if s.file != nil {
		n, err := s.file.Write(p)
		if err == nil {
			s.size += int64(n)
			return
		}
		all := s.bytes()
		s.close()
		s.memory, s.full = *bytes.NewBuffer(all), true
	}
	s.memory.Write(p)
}

// length returns that of the reply.
func (s *spool) length() int64 { return int64(s.memory.Len()) + s.size }

// bytes returns the whole reply.
func (s *spool) bytes() []byte {
	if s.file == nil {
		return s.memory.Bytes()
	}
	all := make([]byte, s.length())
	n := copy(all, s.memory.Bytes())
	_, _ = s.file.ReadAt(all[n:], 0) // it was written a moment ago
	return all
}

// close gives the file back.
func (s *spool) close() {
	if s.file != nil {
		_ = s.file.Close() // nobody needs it any more
	}
	s.file, s.size = nil, 0
}

// createUnnamed opens a file without a name; nil where there is no place for one.
func createUnnamed(dir string) *os.File {
	file, err := os.CreateTemp(dir, "reply-")
	if err != nil {
		return nil
	}
	if os.Remove(file.Name()) != nil {
		_ = file.Close() // a file that stays is worse than memory
		return nil
	}
	return file
}
