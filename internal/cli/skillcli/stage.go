package skillcli

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/git"
	"github.com/fit-eval/fit/internal/scratch"
	"github.com/fit-eval/fit/internal/skill"
	"github.com/fit-eval/fit/internal/tree"
)

// testFiles are the parts of a skill that no agent may see: the answers are in them.
func testFiles(name string) bool { return name == "evals" || name == ".git" }

// staged is a copy of a skill without its test cases.
type staged struct {
	skill.Skill
	Path, Digest string
}

// stage copies a skill to a directory, as an agent gets it. An earlier copy is replaced.
func stage(ctx context.Context, from, to string) (staged, error) {
	if err := scratch.RemoveAll(to); err != nil {
		return staged{}, err
	}
	if err := os.MkdirAll(to, 0o700); err != nil {
		return staged{}, err
	}
	copying := tree.Copy{
		Walk:   tree.Walk{Skip: testFiles},
		Accept: func(e *tree.Entry) (bool, error) { return !e.IsSpecial(), nil },
	}
	if err := copying.Dir(ctx, from, to); err != nil {
		return staged{}, fmt.Errorf("copy the skill %s: %w", from, err)
	}
	return readStaged(to)
}

func readStaged(dir string) (staged, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return staged{}, err
	}
	defer root.Close()
	s := staged{Path: dir}
	if s.Skill, err = skill.Read(root, "."); err != nil {
		return s, err
	}
	s.Digest, err = skill.Digest(root, ".")
	return s, err
}

// stageFormer copies the version that a test compares with: a directory, or a git revision of the
// skill's own repository.
func stageFormer(ctx context.Context, con *console.Console, dir, against, to string) (staged, error) {
	if _, err := os.Stat(filepath.Join(con.Path(against), skill.FileName)); err == nil {
		return stage(ctx, con.Path(against), to)
	}
	top, err := git.Output(ctx, dir, "rev-parse", "--show-toplevel")
	if err != nil {
		return staged{}, console.Usagef("--against %s: neither a directory with a SKILL.md nor a revision: %s is not "+
			"in a git repository", against, dir)
	}
	sha, err := git.Resolve(ctx, top, against)
	if err != nil {
		return staged{}, console.Usagef("--against %s: neither a directory with a SKILL.md nor a revision of %s",
			against, top)
	}
	rel, err := filepath.Rel(top, dir)
	if err != nil {
		return staged{}, err
	}
	of := sha
	if rel != "." {
		of += ":" + filepath.ToSlash(rel)
	}
	var archive bytes.Buffer
	err = git.Run(ctx, git.Command{Dir: top, Args: []string{"archive", "--format=tar", of}, Stdout: &archive})
	if err != nil {
		return staged{}, console.Usagef("--against %s: the skill %s is not in that revision", against, rel)
	}
	room, err := scratch.Make("", "fit-skill-")
	if err != nil {
		return staged{}, err
	}
	if err = unpackTar(&archive, room.Path); err == nil {
		if _, missing := os.Stat(filepath.Join(room.Path, skill.FileName)); missing != nil {
			err = console.Usagef("--against %s: there is no SKILL.md in that revision", against)
		}
	}
	if err != nil {
		return staged{}, errors.Join(err, room.Remove())
	}
	former, err := stage(ctx, room.Path, to)
	return former, errors.Join(err, room.Remove())
}

// maxArchive bounds a former version.
const maxArchive = 64 << 20

// unpackTar writes the regular files of an archive. Links are left out.
func unpackTar(archive io.Reader, dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	reader := tar.NewReader(io.LimitReader(archive, maxArchive))
	for {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		name := path.Clean(header.Name)
		if header.Typeflag != tar.TypeReg || !filepath.IsLocal(filepath.FromSlash(name)) {
			continue
		}
		if err := root.MkdirAll(filepath.FromSlash(path.Dir(name)), 0o755); err != nil {
			return err
		}
		content, err := io.ReadAll(reader)
		if err == nil {
			err = root.WriteFile(filepath.FromSlash(name), content, fs.FileMode(header.Mode)&0o755|0o600)
		}
		if err != nil {
			return err
		}
	}
}
