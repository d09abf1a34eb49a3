package workspace

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/git"
)

// testRepository has the commits past, base, installed (made from base) and future (made from base,
// with a tag), and returns their hashes.
func testRepository(t *testing.T, dir string) map[string]string {
	t.Helper()
	commits := map[string]string{}
	run := func(args ...string) {
		t.Helper()
		if err := git.Run(t.Context(), git.Command{Dir: dir, Args: args}); err != nil {
			t.Fatal(err)
		}
	}
	commit := func(name string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(name+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		run("add", "--all")
		run("commit", "--quiet", "--message="+name)
		sha, err := git.Resolve(t.Context(), dir, "HEAD")
		if err != nil {
			t.Fatal(err)
		}
		commits[name] = sha
	}
	run("init", "--quiet", "--initial-branch=main")
	commit("past")
	commit("base")
	run("checkout", "--quiet", "-b", "later")
	commit("future")
	run("tag", "v2")
	run("checkout", "--quiet", "main")
	commit("installed")
	return commits
}

func TestASealedRepositoryHasThePastAndNothingElse(t *testing.T) {
	for _, shallow := range []bool{false, true} {
		source := t.TempDir()
		commits := testRepository(t, source)
		want := 2
		if shallow {
			clone := filepath.Join(t.TempDir(), "clone")
			err := git.Run(t.Context(), git.Command{
				Args: []string{"clone", "--quiet", "--no-single-branch", "--depth=2", "file://" + source, clone},
			})
			if err != nil {
				t.Fatal(err)
			}
			source, want = clone, 1
		}
		tree := filepath.Join(t.TempDir(), "tree")
		if err := os.Mkdir(tree, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := sealHistory(t.Context(), source, commits["base"], tree); err != nil {
			t.Fatal(err)
		}
		all, err := git.Output(t.Context(), tree, "cat-file", "--batch-all-objects", "--batch-check")
		if err != nil {
			t.Fatal(err)
		}
		if strings.Count(all, " commit ") != want || strings.Contains(all, commits["future"]) {
			t.Errorf("shallow %v: the objects are\n%s", shallow, all)
		}
		refs, err := git.Output(t.Context(), tree, "for-each-ref", "--format=%(refname) %(objectname)")
		if err != nil || refs != "refs/heads/main "+commits["base"] {
			t.Errorf("the references are %q, %v", refs, err)
		}
		if err := git.Run(t.Context(), git.Command{Dir: tree, Args: []string{"fsck", "--strict"}}); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(filepath.Join(tree, ".git", "logs")); err == nil {
			t.Error("there is a reflog")
		}
	}
}

func TestTheRepositoryOfAnImageIsAtItsBase(t *testing.T) {
	dir := t.TempDir()
	commits := testRepository(t, dir)
	for at, ok := range map[string]bool{"base": true, "installed": true, "past": false} {
		t.Run(at, func(t *testing.T) {
			checkout := git.Command{Dir: dir, Args: []string{"checkout", "--quiet", commits[at]}}
			if err := git.Run(t.Context(), checkout); err != nil {
				t.Fatal(err)
			}
			head, err := imageHead(t.Context(), dir, commits["base"], true)
			refused := err != nil && strings.Contains(err.Error(), "neither")
			if ok && (err != nil || head != commits[at]) || !ok && !refused {
				t.Errorf("%s %v", head, err)
			}
		})
	}
}
