package selfedit

import (
	"os"
	"path/filepath"
	"testing"
)

func TestProtectedBranches(t *testing.T) {
	for name, test := range map[string]struct {
		setup func(p *project)
		words []string
	}{
		"main": {
			func(p *project) { p.git("checkout", "-q", "-b", "main") },
			[]string{"branch 'main'"},
		},
		"master": {
			func(p *project) { p.git("checkout", "-q", "-b", "master") },
			[]string{"branch 'master'"},
		},
		"main in other letters": {
			func(p *project) { p.git("checkout", "-q", "-b", "Main") },
			[]string{"branch 'Main'"},
		},
		"detached": {func(p *project) { p.git("checkout", "-q", "--detach") }, []string{"detached"}},
		"detached at a packed ref": {func(p *project) {
			p.git("pack-refs", "--all")
			p.git("checkout", "-q", "--detach")
		}, []string{"detached"}},
		"unborn": {
			func(p *project) { p.git("checkout", "-q", "--orphan", "fresh") },
			[]string{"failed to read the current git branch", "fresh"},
		},
		"default branch of a remote": {func(p *project) {
			p.git("update-ref", "refs/remotes/origin/trunk", "HEAD")
			p.git("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/trunk")
			p.git("checkout", "-q", "-b", "trunk")
		}, []string{"branch 'trunk'", "default branch of a remote"}},
		"default branch of a second remote with a slash": {func(p *project) {
			p.git("remote", "add", "team/up", "https://example.invalid/up")
			p.git("symbolic-ref", "refs/remotes/team/up/HEAD", "refs/remotes/team/up/dev/next")
			p.git("checkout", "-q", "-b", "dev/next")
		}, []string{"branch 'dev/next'", "default branch of a remote"}},
		"alias of main": {func(p *project) {
			p.git("branch", "main")
			p.git("symbolic-ref", "refs/heads/alias", "refs/heads/main")
			p.git("symbolic-ref", "HEAD", "refs/heads/alias")
		}, []string{"branch 'main'"}},
		"main, which is an alias": {func(p *project) {
			p.git("symbolic-ref", "refs/heads/main", "refs/heads/feature")
			p.git("symbolic-ref", "HEAD", "refs/heads/main")
		}, []string{"branch 'main'"}},
		"a chain through main": {func(p *project) {
			p.git("symbolic-ref", "refs/heads/main", "refs/heads/feature")
			p.git("symbolic-ref", "refs/heads/other", "refs/heads/main")
			p.git("symbolic-ref", "HEAD", "refs/heads/other")
		}, []string{"branch 'main'"}},
		"configured": {
			func(p *project) { p.git("config", "fit.selfedit.protectedBranches", "release, feature") },
			[]string{"branch 'feature'", "protectedBranches"},
		},
		"configured twice": {func(p *project) {
			p.git("config", "--add", "fit.selfedit.protectedBranches", "feature")
			p.git("config", "--add", "fit.selfedit.protectedBranches", "other")
		}, []string{"branch 'feature'"}},
		"configured by pattern": {func(p *project) {
			p.git("config", "fit.selfedit.protectedBranches", "release/*")
			p.git("checkout", "-q", "-b", "release/1")
		}, []string{"branch 'release/1'"}},
		"configured by a pattern that is not understood": {func(p *project) {
			p.git("config", "fit.selfedit.protectedBranches", "@(a*|b)")
		}, []string{"protectedBranches", "extended glob"}},
		"configured in the home directory": {func(p *project) {
			must(p.t, os.WriteFile(filepath.Join(p.home, ".gitconfig"),
				[]byte("[fit \"selfedit\"]\n\tprotectedBranches = feature\n"), 0o644))
		}, []string{"branch 'feature'"}},
		"configured in an included file": {func(p *project) {
			p.put("../more", "[fit \"selfedit\"]\n\tprotectedBranches = feature\n")
			p.git("config", "include.path", "../../more")
		}, []string{"branch 'feature'"}},
		"configured in a file that is included on another branch": {func(p *project) {
			p.put("../more", "[fit \"selfedit\"]\n\tprotectedBranches = feature\n")
			p.git("config", "includeIf.onbranch:other.path", "../../more")
		}, []string{"branch 'feature'"}},
		"configured for one worktree": {func(p *project) {
			must(p.t, os.WriteFile(p.path(".git/config.worktree"),
				[]byte("[fit \"selfedit\"]\n\tprotectedBranches = feature\n"), 0o644))
		}, []string{"branch 'feature'"}},
		"broken configuration": {func(p *project) {
			must(p.t, os.WriteFile(filepath.Join(p.home, ".gitconfig"), []byte("[fit\n"), 0o644))
		}, []string{"git configuration", "line"}},
		"an endless chain of references": {func(p *project) {
			must(p.t, os.WriteFile(p.path(".git/refs/heads/a"), []byte("ref: refs/heads/b\n"), 0o644))
			must(p.t, os.WriteFile(p.path(".git/refs/heads/b"), []byte("ref: refs/heads/a\n"), 0o644))
			must(p.t, os.WriteFile(p.path(".git/HEAD"), []byte("ref: refs/heads/a\n"), 0o644))
		}, []string{"failed to read the current git branch"}},
		"HEAD leads out of the git directory": {func(p *project) {
			must(p.t, os.WriteFile(p.path(".git/HEAD"), []byte("ref: refs/heads/../../evil\n"), 0o644))
		}, []string{"failed to read the current git branch"}},
		"HEAD is a link": {func(p *project) {
			must(p.t, os.Rename(p.path(".git/HEAD"), p.path(".git/OTHER")))
			must(p.t, os.Symlink("OTHER", p.path(".git/HEAD")))
		}, []string{"failed to read the current git branch"}},
		"the branch is a link": {func(p *project) {
			p.git("branch", "main")
			must(p.t, os.Symlink("main", p.path(".git/refs/heads/linked")))
			must(p.t, os.WriteFile(p.path(".git/HEAD"), []byte("ref: refs/heads/linked\n"), 0o644))
		}, []string{"symbolic link"}},
		"the working tree is elsewhere": {
			func(p *project) { p.git("config", "core.worktree", "/") },
			[]string{"working tree"},
		},
		"no repository": {
			func(p *project) { must(p.t, os.RemoveAll(p.path(".git"))) },
			[]string{"in no git repository"},
		},
		"an empty .git": {func(p *project) {
			must(p.t, os.Mkdir(p.path(".claude/skills/.git"), 0o755))
		}, []string{"has a .git, but its working tree is"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProject(t)
			test.setup(p)
			p.mustRefuse(skill, branchScope, test.words...)
		})
	}
}

func TestBranchesThatMayBeEditedOn(t *testing.T) {
	for name, setup := range map[string]func(p *project){
		"packed":                     func(p *project) { p.git("pack-refs", "--all") },
		"with slashes":               func(p *project) { p.git("checkout", "-q", "-b", "fix/one/two") },
		"main as a part of the name": func(p *project) { p.git("checkout", "-q", "-b", "main-2") },
		"other branches protected": func(p *project) {
			p.git("config", "fit.selfedit.protectedBranches",
				"trunk feat*x")
		},
		"a remote with another default": func(p *project) {
			p.git("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main")
		},
		"SHA-256 objects": func(p *project) {
			must(p.t, os.RemoveAll(p.path(".git")))
			p.git("init", "-q", "-b", "feature", "--object-format=sha256")
			p.commit()
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProject(t)
			setup(p)
			p.mustEdit(skill, "new\n")
		})
	}
}

func TestTheAllowCheckComesBeforeTheBranchCheck(t *testing.T) {
	p := newProject(t)
	p.git("checkout", "-q", "-b", "main")
	p.mustRefuse("README.md", settingsAllow, "no Edit() rule")
	p.mustRefuse(".claude/skills/missing/SKILL.md", branchScope, "branch 'main'")
}

func TestTheRepositoryOfTheTargetCountsAndNotTheWorkingDirectory(t *testing.T) {
	here, there := newProject(t), newProject(t)
	there.git("checkout", "-q", "-b", "main")
	_, err := here.edit(there.path(skill), "new\n")
	wantRefusal(t, err, branchScope, "branch 'main'")
	here.git("checkout", "-q", "-b", "main")
	there.git("checkout", "-q", "feature")
	_, err = here.edit(there.path(skill), "new\n")
	must(t, err)
}

func TestALinkedWorktreeHasItsOwnBranchAndLog(t *testing.T) {
	p := newProject(t)
	p.git("worktree", "add", "-q", "-b", "side", "trees/side")
	p.git("checkout", "-q", "-b", "main")
	p.mustRefuse(skill, branchScope, "branch 'main'")
	inside := "trees/side/" + skill
	if result := p.mustEdit(inside, "new\n"); result.Branch != "side" {
		t.Errorf("the branch is %q", result.Branch)
	}
	if _, err := os.Stat(p.path(".git/worktrees/side/fit/selfedit.ndjson")); err != nil {
		t.Error(err)
	}
	gitIn(t, p.path("trees/side"), "symbolic-ref", "HEAD", "refs/heads/master")
	gitIn(t, p.path("trees/side"), "update-ref", "refs/heads/master", "side")
	p.mustRefuse(inside, branchScope, "branch 'master'")
}

func TestAGitFileCannotBorrowTheBranchOfAnotherWorktree(t *testing.T) {
	p := newProject(t)
	p.git("worktree", "add", "-q", "-b", "side", "../side")
	p.git("checkout", "-q", "-b", "main")
	p.put(".claude/skills/.git", "gitdir: "+p.path(".git/worktrees/side")+"\n")
	p.mustRefuse(skill, branchScope, "belongs to another directory")
}

func TestASubmoduleHasItsOwnBranch(t *testing.T) {
	library := newProject(t)
	p := newProject(t)
	p.git("submodule", "--quiet", "add", library.root, "lib")
	p.commit()
	p.git("checkout", "-q", "-b", "main")
	gitIn(t, p.path("lib"), "checkout", "-q", "-b", "work")
	inside := "lib/" + skill
	p.mustEdit(inside, "new\n")
	gitIn(t, p.path("lib"), "checkout", "-q", "-f", "-b", "master")
	p.mustRefuse(inside, branchScope, "branch 'master'")
	gitIn(t, p.path("lib"), "checkout", "-q", "work")
	must(t, os.Remove(p.path("lib/.claude/settings.json")))
	p.allow("Edit(lib/.claude/**)")
	p.mustEdit(inside, "granted by the outer project\n")
}

func TestARepositoryPlantedInTrackedFilesIsRefused(t *testing.T) {
	for name, prepare := range map[string]func(p *project){
		"index version 2": func(*project) {},
		"index version 4": func(p *project) { p.git("update-index", "--index-version", "4") },
		"split index":     func(p *project) { p.git("update-index", "--split-index") },
	} {
		t.Run(name, func(t *testing.T) {
			p := newProject(t)
			p.put("sub/.claude/skills/x.md", "old\n")
			p.settings("sub/.claude/settings.json", []string{"Edit(**)"}, nil)
			p.put("another/file", "")
			p.commit()
			prepare(p)
			p.git("checkout", "-q", "-b", "main")
			gitIn(t, p.path("sub"), "init", "-q", "-b", "free")
			gitIn(t, p.path("sub"), "commit", "-q", "--allow-empty", "-m", "planted")
			p.mustRefuse("sub/.claude/skills/x.md", branchScope, "belong to the repository "+p.root)
		})
	}
}

func TestACloneInAnUntrackedDirectoryIsARepositoryOfItsOwn(t *testing.T) {
	p := newProject(t)
	p.git("clone", "-q", p.root, "sub")
	gitIn(t, p.path("sub"), "checkout", "-q", "-b", "work")
	p.git("checkout", "-q", "-b", "main")
	p.mustEdit("sub/"+skill, "new\n")
}

func TestGitVariablesAreIgnored(t *testing.T) {
	p, decoy := newProject(t), newProject(t)
	p.git("checkout", "-q", "-b", "main")
	for _, name := range []string{"GIT_DIR", "GIT_COMMON_DIR"} {
		t.Setenv(name, decoy.path(".git"))
	}
	t.Setenv("GIT_WORK_TREE", p.root)
	t.Setenv("GIT_CEILING_DIRECTORIES", p.root)
	t.Setenv("GIT_CONFIG_GLOBAL", "/dev/null")
	p.mustRefuse(skill, branchScope, "branch 'main'")
}
