package grade

import (
	"crypto/sha256"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fit-eval/fit/internal/display"
)

// maxMounted bounds the protected files that are mounted read-only; more are only compared.
const maxMounted = 500

// protection is the protected files of a copy while a command runs on it. The code under test could
// rewrite the test that runs it.
type protection struct {
	s    *suiteRun
	sums map[string][sha256.Size]byte
	// files are their paths, and dirs those of the directories that they are in: what is mounted
	// can be neither moved nor removed.
	files, dirs []string
}

// protect notes what the files that were put back are. Git writes to its own.
func (s *suiteRun) protect() protection {
	p := protection{s: s, sums: map[string][sha256.Size]byte{}}
	for _, name := range s.copied.Restored {
		if slices.Contains(strings.Split(name, "/"), ".git") {
			continue
		}
		sum, ok := p.sum(name)
		if _, known := p.sums[name]; !ok || known {
			continue
		}
		p.sums[name] = sum
		p.files = append(p.files, s.inCopy(name))
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			if mounted := s.inCopy(dir); !slices.Contains(p.dirs, mounted) {
				p.dirs = append(p.dirs, mounted)
			}
		}
	}
	if len(p.files) > maxMounted {
		p.files, p.dirs = nil, nil
	}
	return p
}

func (s *suiteRun) inCopy(name string) string {
	return filepath.Join(s.copied.Dir, filepath.FromSlash(name))
}

// sum returns the digest of a regular file.
func (p protection) sum(name string) ([sha256.Size]byte, bool) {
	info, err := p.s.root.Lstat(name)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxStaged {
		return [sha256.Size]byte{}, false
	}
	content, err := p.s.root.ReadFile(name)
	return sha256.Sum256(content), err == nil
}

// broken returns the first protected file that is not what it was; empty if all are.
func (p protection) broken() string {
	var changed []string
	for name, before := range p.sums {
		if after, ok := p.sum(name); !ok || after != before {
			changed = append(changed, name)
		}
	}
	if len(changed) == 0 {
		return ""
	}
	slices.Sort(changed)
	return "the protected file " + display.Name(changed[0]) + " was changed while it ran"
}
