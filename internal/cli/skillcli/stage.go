package skillcli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
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
//
// A copy that results rest on is never replaced.
func stage(ctx context.Context, from, to string, results bool) (staged, error) {
	if _, err := os.Lstat(to); err == nil && results {
		return kept(ctx, from, to)
	}
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

// kept returns the copy that results rest on, if a skill is still the same.
func kept(ctx context.Context, from, to string) (staged, error) {
	room, err := scratch.Make("", "fit-skill-")
	if err != nil {
		return staged{}, err
	}
	now, err := stage(ctx, from, filepath.Join(room.Path, filepath.Base(to)), false)
	if err = errors.Join(err, room.Remove()); err != nil {
		return now, err
	}
	before, err := readStaged(to)
	if err == nil && before.Digest != now.Digest {
		err = console.Usagef("the skill changed since the results beside its copy %s: choose another --output, or "+
			"none, which makes a new iteration", to)
	}
	return before, err
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
func stageFormer(ctx context.Context, con *console.Console, dir, against, to string,
	results bool,
) (staged, error) {
	if _, err := os.Stat(filepath.Join(con.Path(against), skill.FileName)); err == nil {
		return stage(ctx, con.Path(against), to, results)
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
	of := sha + ":" // a tree: the archive of a commit begins with a comment
	if rel != "." {
		of += filepath.ToSlash(rel)
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
	unpack := tree.Unpack{MaxBytes: maxArchive, NoLinks: true}
	if err = unpack.Dir(&archive, room.Path); err == nil {
		if _, missing := os.Stat(filepath.Join(room.Path, skill.FileName)); missing != nil {
			err = console.Usagef("--against %s: there is no SKILL.md in that revision", against)
		}
	}
	if err != nil {
		return staged{}, errors.Join(err, room.Remove())
	}
	former, err := stage(ctx, room.Path, to, results)
	return former, errors.Join(err, room.Remove())
}

// maxArchive bounds a former version.
const maxArchive = 64 << 20
