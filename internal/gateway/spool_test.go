package gateway

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// A long reply is kept whole, and no file has a name that a killed process would leave.
func TestALongReplyIsKeptOutsideOfMemory(t *testing.T) {
	for name, dir := range map[string]string{
		"a file": t.TempDir(), "no place for one": filepath.Join(t.TempDir(), "missing"),
	} {
		t.Run(name, func(t *testing.T) {
			s := spool{dir: dir}
			var want []byte
			for i := range 3000 {
				piece := bytes.Repeat([]byte{byte(i)}, 1+i%200)
				want = append(want, piece...)
				s.Write(piece)
				if left, _ := os.ReadDir(dir); len(left) > 0 {
					t.Fatalf("%v has a name", left)
				}
			}
			if held := s.memory.Len(); s.full == (held <= inMemory) {
				t.Errorf("%d bytes of %d are in memory", held, len(want))
			}
			if !bytes.Equal(s.bytes(), want) || s.length() != int64(len(want)) {
				t.Errorf("%d bytes instead of %d", len(s.bytes()), len(want))
			}
			s.close()
		})
	}
}

// A disk that is full costs memory, and nothing of the reply.
func TestAReplyOnAFullDiskIsKeptInMemory(t *testing.T) {
	s := spool{dir: t.TempDir()}
	s.Write(make([]byte, inMemory))
	s.Write([]byte("in the file"))
	_ = s.file.Close() // as good as full
	s.Write([]byte(", and after it"))
	if !s.full || s.length() < inMemory+int64(len(", and after it")) {
		t.Errorf("%d bytes, %v", s.length(), s.full)
	}
}
