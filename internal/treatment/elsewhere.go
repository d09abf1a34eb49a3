package treatment

import (
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/fit-eval/fit/internal/skill"
)

// The bounds of the search for lines that other files have too.
const (
	maxOtherFiles = 20_000
	maxOtherFile  = 256 << 10
	maxOtherBytes = 32 << 20
)

// Elsewhere returns the lines of the pieces that are loaded on demand which other files of the
// working directory have too, as a text: to read them there is not to open the piece. A very large
// directory is searched in part.
func Elsewhere(dir string, pieces []Piece) (string, error) {
	bodies, own := map[string]bool{}, map[string]bool{}
	for i := range pieces {
		if pieces[i].Body != "" {
			own[path.Base(path.Dir(pieces[i].Path))] = true // wherever it has copies
			for line := range foldedLines(pieces[i].Body) {
				bodies[string(line)] = true
			}
		}
	}
	if len(bodies) == 0 {
		return "", nil
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", err
	}
	defer root.Close()
	var found strings.Builder
	files, left := maxOtherFiles, int64(maxOtherBytes)
	err = fs.WalkDir(root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		switch files--; {
		case files == 0 || left <= 0:
			return fs.SkipAll
		case err != nil || !entry.IsDir() && !entry.Type().IsRegular():
			return nil // what cannot be read says nothing
		case entry.IsDir():
			_, isSkill := root.Stat(path.Join(name, skill.FileName))
			if own[entry.Name()] && isSkill == nil || entry.Name() == ".git" || entry.Name() == "node_modules" {
				return fs.SkipDir
			}
			return nil
		}
		info, err := entry.Info()
		if err != nil || info.Size() > maxOtherFile {
			return nil //nolint:nilerr // it is gone, or no text that somebody reads
		}
		left -= info.Size()
		text, err := skill.ReadFile(root, name)
		if err != nil {
			return nil //nolint:nilerr // what cannot be read says nothing
		}
		for line := range foldedLines(string(text)) {
			if bodies[string(line)] {
				found.Write(line)
				found.WriteByte('\n')
			}
		}
		return nil
	})
	return found.String(), err
}
