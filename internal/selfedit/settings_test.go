package selfedit

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

func TestAnAllowedFileIsReplacedAndTheResultNamesTheRuleAndTheBranch(t *testing.T) {
	p := newProject(t)
	result := p.mustEdit(skill, "new\n")
	if result.Rule != "Edit(.claude/skills/**)" || result.Branch != "feature" || result.Bytes != 4 || !result.Written ||
		result.Path != skill {
		t.Errorf("got %+v", result)
	}
	if result.OldSHA256 != hashOf([]byte("old\n")) || result.NewSHA256 != hashOf([]byte("new\n")) {
		t.Errorf("wrong hashes in %+v", result)
	}
}

func TestRulesWithBracesClassesAndExtendedGlobs(t *testing.T) {
	for _, test := range []struct {
		rule    string
		allowed bool
	}{
		{"Edit(.claude/{skills,agents}/**)", true},
		{"Edit(.claude/{agents,rules}/**)", false},
		{"Edit(.claude/[r-t]kills/**)", true},
		{"Edit(.claude/[!s]kills/**)", false},
		{"Edit(.claude/skills/*/SKILL.?d)", true},
		{"Edit(.claude/skills/*)", false},
		{"Edit(.claude/@(skills|agents)/**)", false},
		{"Edit(.claude/+(skills)/**)", false},
		{"Edit(!README.md)", false},
		{"Edit(#**)", false},
		{"Edit(/**)", false},
		{"Edit(./**)", false},
		{"Edit(**)", true},
		{"Edit()", false},
		{"Edit", false},
		{"Write(**)", false},
		{"MultiEdit(**)", false},
		{" Edit(**)", false},
	} {
		t.Run(test.rule, func(t *testing.T) {
			p := newProject(t)
			p.allow(test.rule)
			if test.allowed {
				p.mustEdit(skill, "new\n")
			} else {
				p.mustRefuse(skill, settingsAllow)
			}
		})
	}
}

func TestAnUnsupportedRuleIsNamedAndOtherRulesCount(t *testing.T) {
	p := newProject(t)
	p.allow("Edit(.claude/@(skills|agents)/**)", "Edit(docs/**)")
	p.mustRefuse(skill, settingsAllow, "no Edit() rule in", "matches '"+skill+"'",
		"Edit(.claude/@(skills|agents)/**) (never matches, unsupported: an extended glob", "Edit(docs/**)")
	p.allow("Edit(.claude/@(skills|agents)/**)", "Edit(.claude/skills/**)")
	p.mustEdit(skill, "new\n")
}

func TestSettingsThatCannotGrantAnything(t *testing.T) {
	for name, test := range map[string]struct{ text, words string }{
		"no JSON":               {"{", "failed to parse"},
		"a comment":             {"// hello\n{}", "failed to parse"},
		"a doubled member":      {`{"permissions":{"allow":[]},"permissions":{"allow":["Edit(**)"]}}`, "failed to parse"},
		"no permissions":        {`{}`, "no permissions.allow"},
		"other letter case":     {`{"Permissions":{"allow":["Edit(**)"]}}`, "no permissions.allow"},
		"allow is not an array": {`{"permissions":{"allow":"Edit(**)"}}`, "no permissions.allow"},
		"no Edit rules":         {`{"permissions":{"allow":["Read(**)",7,null]}}`, "no Edit() rules"},
		"deny is not an array":  {`{"permissions":{"allow":["Edit(**)"],"deny":"Edit(x)"}}`, "permissions.deny"},
		"escape in the rule":    {`{"permissions":{"allow":["Edit(\u001b[31m)"]}}`, `\x1b`},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProject(t)
			p.put(".claude/settings.json", test.text)
			p.mustRefuse(skill, settingsAllow, test.words)
		})
	}
}

func TestTheNearestSettingsCount(t *testing.T) {
	p := newProject(t)
	p.allow("Edit(**)")
	p.put("sub/x.md", "old\n")
	p.settings("sub/.claude/settings.json", []string{"Edit(y.md)"}, nil)
	p.mustRefuse("sub/x.md", settingsAllow, "'x.md'", "Edit(y.md)")
	p.settings("sub/.claude/settings.json", []string{"Edit(x.md)"}, nil)
	p.mustEdit("sub/x.md", "new\n")
}

func TestTraversalIsResolvedFirst(t *testing.T) {
	p := newProject(t)
	p.put("README.md", "old\n")
	p.mustRefuse(".claude/skills/../../README.md", settingsAllow, "matches 'README.md'")
	p.mustRefuse("../README.md", settingsAllow,
		"no .claude/settings.json found walking upward from "+filepath.Dir(p.root))
	_, err := p.edit("docs/../.claude/skills/review/SKILL.md", "new\n")
	must(t, err)
}

func TestDenyWinsOverEveryAllow(t *testing.T) {
	for rule, denied := range map[string]bool{
		"Edit(.claude/skills/**)":             true,
		"Edit(.claude/skills/review)":         true,
		"Edit(/.claude/skills/**)":            true,
		"Edit(./.claude/skills/**)":           true,
		"Edit(SKILL.md)":                      true,
		"Edit(**/skill.MD)":                   true,
		"Edit(.claude/skills/review/)":        true,
		"Edit":                                true,
		"Edit()":                              true,
		"Write(.claude/**)":                   true,
		"MultiEdit":                           true,
		"*":                                   true,
		"Edit(@(a|b))":                        true, // not understood, so it denies
		"Edit(!x)":                            true,
		"Edit(.claude/agents/**)":             false,
		"Edit(//etc/**)":                      false,
		"Edit(~/.ssh/**)":                     false,
		"Read(.claude/**)":                    false,
		"Bash(rm:*)":                          false,
		"Edit(skills/review/SKILL.md)":        false,
		"Edit(.claude/skills/**/*.txt)":       false,
		"Edit(.claude/skills/review/SKILL)":   false,
		"Edit(**/a/b/**/c/**)":                true, // three ** with different distances are not supported
		"Edit(.claude/skills/revie[!w]/*.md)": false,
	} {
		t.Run(rule, func(t *testing.T) {
			p := newProject(t)
			p.settings(".claude/settings.json", []string{"Edit(**)"}, []string{rule})
			if denied {
				p.mustRefuse(skill, settingsAllow, "deny rule "+rule)
			} else {
				p.mustEdit(skill, "new\n")
			}
		})
	}
}

func TestDenyRulesWithAbsoluteAndHomePaths(t *testing.T) {
	p := newProject(t)
	p.settings(".claude/settings.json", []string{"Edit(**)"}, []string{"Edit(/" + p.path(".claude/skills") + "/**)"})
	p.mustRefuse(skill, settingsAllow, "deny rule")
	p.settings(".claude/settings.json", []string{"Edit(**)"}, []string{"Edit(~/project/.claude/**)"})
	p.mustEdit(skill, "new\n")
	p.home = filepath.Dir(p.root)
	p.mustRefuse(skill, settingsAllow, "deny rule")
}

func TestDenyRulesCountUpToTheTopOfTheRepositoryAndNoFurther(t *testing.T) {
	p := newProject(t)
	p.put("sub/deep/x.md", "old\n")
	p.allow("Edit(sub/**)")
	p.settings("sub/deep/.claude/settings.json", []string{"Edit(**)"}, nil)
	p.settings("../.claude/settings.json", nil, []string{"Edit(**)"})
	p.mustEdit("sub/deep/x.md", "above the repository\n")

	for _, file := range []string{
		".claude/settings.json", "sub/.claude/settings.json",
		"sub/.claude/settings.local.json", "sub/deep/.claude/settings.local.json",
	} {
		before, err := os.ReadFile(p.path(file))
		p.settings(file, nil, []string{"Edit(x.md)"})
		p.mustRefuse("sub/deep/x.md", settingsAllow, "deny rule", file)
		must(t, os.Remove(p.path(file)))
		if err == nil {
			p.put(file, string(before))
		}
	}
	p.put("sub/.claude/settings.json", "{ broken")
	p.mustRefuse("sub/deep/x.md", settingsAllow, "failed to parse")
}

func TestSettingsAboveTheRepositoryMayGrantAndThenMayDeny(t *testing.T) {
	p := newProject(t)
	must(t, os.Remove(p.path(".claude/settings.json")))
	p.settings("../.claude/settings.json", []string{"Edit(project/.claude/skills/**)"}, nil)
	p.mustEdit(skill, "new\n")
	p.settings("../.claude/settings.json", []string{"Edit(project/.claude/skills/**)"}, []string{"Edit(project/**)"})
	p.mustRefuse(skill, settingsAllow, "deny rule")
}

func TestSettingsHooksAndGitAreNeverWritable(t *testing.T) {
	p := newProject(t)
	p.allow("Edit(**)")
	for _, path := range []string{
		".claude/settings.json", ".claude/settings.local.json", ".claude/Settings.JSON", ".CLAUDE/settings.json",
		"sub/.claude/settings.json",
		".claude/settings\u200b.json", ".cl\u200daude/settings.json", ".claude/setting\u017f.json", ".claude.json",
		".claude",
		".claude/hooks/guard.sh", ".claude/HOOKS/guard.sh", "sub/.claude/hooks/deep/x.py",
		".git/config", ".git/HEAD", ".GIT/config", "sub/.git", ".husky/pre-commit",
	} {
		t.Run(path, func(t *testing.T) {
			request := p.request(path, "new\n")
			request.Mkdir = true
			before := snapshot(t, p.root)
			_, err := (&Editor{}).Edit(t.Context(), request)
			wantRefusal(t, err, settingsAllow, "no rule can make")
			wantSame(t, before, snapshot(t, p.root))
		})
	}
}

func TestScriptsThatHooksRunAreNeverWritable(t *testing.T) {
	for command, refused := range map[string]bool{
		`\"$CLAUDE_PROJECT_DIR\"/scripts/guard.sh --strict`: true,
		"${CLAUDE_PROJECT_DIR}/scripts/guard.sh":            true,
		"bash ./scripts/guard.sh":                           true,
		"cd scripts && ./guard.sh":                          true,
		"bash -c 'scripts/../scripts/Guard.SH'":             true,
		"FOO=bar;scripts/guard.sh|tee log":                  true,
		"scripts/guard.sh.bak":                              false,
		"other/guard.sh":                                    false,
		"echo hello":                                        false,
	} {
		t.Run(command, func(t *testing.T) {
			p := newProject(t)
			p.put("scripts/guard.sh", "old\n")
			p.put(
				".claude/settings.json",
				`{"permissions":{"allow":["Edit(**)"]},"hooks":{"PreToolUse":[{"matcher":"Edit|Write","hooks":[{"type":"command","command":"`+command+`"}]}]}}`,
			)
			if refused {
				p.mustRefuse("scripts/guard.sh", settingsAllow, "hook script")
			} else {
				p.mustEdit("scripts/guard.sh", "new\n")
			}
		})
	}
}

// What a hook names it may run, whatever the file is called and however it gets there.
func TestFilesThatHooksMayRunAreNeverWritable(t *testing.T) {
	for _, test := range []struct {
		command, file string
		refused       bool
	}{
		{"sh run.txt", "run.txt", true},
		{". ./x.md", "x.md", true},
		{"source x.txt", "x.txt", true},
		{"bash ./run.md", "run.md", true},
		{"cat x.txt | sh", "x.txt", true},
		{"sh < run.txt", "run.txt", true},
		{"sh <<< \"$(cat notes/run.txt)\"", "notes/run.txt", true},
		{"sh <<END\n. run.txt\nEND", "run.txt", true},
		{"bash -c 'sh run.txt'", "run.txt", true},
		{"echo 'sh run.txt' | sh", "run.txt", true},
		{"sh $(echo run.txt)", "run.txt", true},
		{"env X=1 timeout 5 sh run.txt", "run.txt", true},
		{"for f in scripts/*; do sh $f; done", "scripts/any", true},
		{"python3 tools/*.py", "tools/check.py", true},
		{"sh ./{a,b}.txt", "a.txt", true},
		{"run-parts scripts", "scripts/10-first", true},
		{"sh \"$SCRIPT\"", "anything.txt", true},
		{"jq -r .file | xargs sh", "anything.txt", true},
		{"find . -exec sh {} +", "anything.txt", true},
		{"make check", "Makefile", true},
		{"cd sub && make -s", "sub/rules.mk", true},
		{"make check", "from-make.txt", true},
		{"npm test", "package.json", true},
		{"npx lint", "from-package.txt", true},
		{"go test ./...", "main_test.go", true},
		{"pytest -q", "tests/conftest.py", true},
		{"sh 'run.txt", "run.txt", true}, // which no shell can read
		{"echo see README.md", "README.md", false},
		{"echo \"read run.txt first\"", "run.txt", false},
		{"make -C sub check", "sub/from-sub.txt", true},
		{"cd sub && npm test", "sub/from-sub.cjs", true},
		{"npm --prefix=sub test", "sub/from-sub.cjs", true},
		{"make check && npm --prefix sub test", "sub/from-sub.cjs", true},
		{"node app", "app.js", true},
		{"python3 -m tools.check", "tools/check.py", true},
		{"python3 -m tools", "tools/__main__.py", true},
		{"node app", "app/data.md", true}, // the files of a directory that runs
		{"node app", "other.js", true},    // the app may load it
		{"node .", "index.js", true},
		{"node ./", "package.json", true},
		{"cd lib && python3 .", "lib/__main__.py", true},
		{"python3 -c 'import tools.check'", "tools/check.py", true},
		{"node -e \"require('./tools/check')\"", "tools/check.js", true},
		{"node .", "notes.md", false},
		{"python3 -c 'import tools.check'", "json.py", true}, // in place of the language's own
		{"python3 -m tools.check", "tools/__init__.py", true},
		{"node --test", "lib/a.test.mjs", true},
		{"node .", "lib/first.js", true}, // the main of package.json
		{"git -c core.hooksPath=tools/hooks commit -m x", "tools/hooks/pre-commit.txt", true},
		{"git --exec-path=tools status", "tools/git-status", true},
		{"mypy .", "mypy.ini", true},
		{"CI=1 timeout 5 mypy .", "mypy.ini", true},
		{"vendor/bin/phpunit", "phpunit.xml", true},
		{"./mvnw verify", ".mvn/extensions.xml", true},
		{"pip check", "requirements.txt", true},
		{"make check", "rules/a.inc", true},
		{"mypy . && python3 -m tools", "notes.md", false},
		{"git status && jq . x.json | grep y", "a.py", false},
		{"cd lib && ls", "lib/a.py", false},
		{"bash -c 'prettier --check docs'", "docs/a.md", false},
		{"make check", "sub/from-sub.txt", false},
		{"make check", "notes.txt", false},
		{"sh run.txt", "other.txt", false},
		{"sh \"$CLAUDE_PROJECT_DIR\"/run.sh", "other.txt", false},
		{"prettier --check docs", "docs/a.md", false},
		{"jq -r .file | xargs prettier --write", "docs/a.md", false},
	} {
		t.Run(test.command+" "+test.file, func(t *testing.T) {
			p := newProject(t)
			p.put(test.file, "old\n")
			if test.file != "Makefile" {
				p.put("Makefile", "check: deps\n\tsh from-make.txt\n")
			}
			if test.file != "package.json" {
				p.put("package.json", `{"scripts": {"test": "sh from-package.txt"}}`)
			}
			p.put("sub/Makefile", "check:\n\tsh from-sub.txt\n")
			p.put("sub/package.json", `{"scripts": {"test": "node from-sub.cjs"}}`)
			command, err := json.Marshal(test.command)
			must(t, err)
			p.put(".claude/settings.json", `{"permissions":{"allow":["Edit(**)"]},`+
				`"hooks":{"Stop":[{"matcher":"*","hooks":[{"type":"command","command":`+string(command)+`}]}]}}`)
			if test.refused {
				p.mustRefuse(test.file, settingsAllow, "hook script")
			} else {
				p.mustEdit(test.file, "new\n")
			}
		})
	}
}

// Git waits for a writer where one of its files is a pipe.
func TestAPipeInPlaceOfAFileOfGitDoesNotHang(t *testing.T) {
	for _, name := range []string{"HEAD", "config", "index", "packed-refs", "commondir"} {
		t.Run(name, func(t *testing.T) {
			p := newProject(t)
			file := p.path(".git/" + name)
			_ = os.Remove(file)
			must(t, unix.Mkfifo(file, 0o600))
			p.mustRefuse(skill, branchScope, name+" is not a regular file")
		})
	}
}

func TestGitHooksInAConfiguredDirectoryAreNeverWritable(t *testing.T) {
	p := newProject(t)
	p.allow("Edit(**)")
	p.put("tools/hooks/pre-commit", "old\n")
	p.mustEdit("tools/hooks/pre-commit", "before\n")
	p.git("config", "core.hooksPath", "tools/hooks")
	p.mustRefuse("tools/hooks/pre-commit", settingsAllow, "hook of git")
}

func TestLetterCaseAndNormalisationDoNotWidenARule(t *testing.T) {
	p := newProject(t)
	p.allow("Edit(caf\u00e9/**)", "Edit(docs/A.md)")
	p.put("cafe\u0301/x.md", "old\n")
	p.put("docs/a.md", "old\n")
	p.put("caf\u00e9/x.md", "old\n")
	p.mustRefuse("cafe\u0301/x.md", settingsAllow, "no Edit() rule")
	p.mustRefuse("docs/a.md", settingsAllow, "no Edit() rule")
	p.mustEdit("caf\u00e9/x.md", "new\n")
	p.settings(".claude/settings.json", []string{"Edit(**)"}, []string{"Edit(cafe\u0301/**)", "Edit(DOCS/**)"})
	p.mustRefuse("caf\u00e9/x.md", settingsAllow, "deny rule")
	p.mustRefuse("docs/a.md", settingsAllow, "deny rule")
}

func TestPathsThatAreNoTextAreRefused(t *testing.T) {
	p := newProject(t)
	for _, path := range []string{".claude/skills/\xff.md", ".claude/skills/a\nb.md", ".claude/skills/\x1b[31m.md"} {
		_, err := p.edit(path, "new\n")
		wantRefusal(t, err, settingsAllow, "not valid text")
		if strings.ContainsAny(err.Error(), "\x1b\n") || !utf8.ValidString(err.Error()) {
			t.Errorf("the message %q is not fit for a terminal", err)
		}
	}
}

func TestHooksOfEveryConfigurationAreProtected(t *testing.T) {
	const hooks = "[core]\n\thooksPath = .githooks\n"
	for name, configure := range map[string]func(p *project){
		"the user's": func(p *project) {
			must(p.t, os.WriteFile(filepath.Join(p.home, ".gitconfig"), []byte(hooks), 0o644))
		},
		"included": func(p *project) { p.put("../more", hooks); p.git("config", "include.path", "../../more") },
		"on a branch": func(p *project) {
			p.put("../more", hooks)
			p.git("config", "includeIf.onbranch:main.path", "../../more")
		},
		"the worktree's": func(p *project) { p.put(".git/config.worktree", hooks) },
		"included by the user's": func(p *project) {
			include := "~/more"
			if _, err := os.Stat(filepath.Join(accountHome(), "more")); errors.Is(err, fs.ErrPermission) {
				include = filepath.Join(p.home, "more") // git stops at a home that the account may not enter
			}
			config := []byte("[include]\n\tpath = " + include + "\n")
			must(p.t, os.WriteFile(filepath.Join(p.home, ".gitconfig"), config, 0o644))
			must(p.t, os.WriteFile(filepath.Join(p.home, "more"), []byte(hooks), 0o644))
		},
		"the caller's": func(p *project) {
			p.configs = []string{filepath.Join(p.home, "elsewhere")}
			must(p.t, os.WriteFile(p.configs[0], []byte(hooks), 0o644))
		},
		"a program": func(p *project) { p.git("config", "core.fsmonitor", ".githooks/pre-commit") },
	} {
		t.Run(name, func(t *testing.T) {
			p := newProject(t)
			p.allow("Edit(**)")
			p.put(".githooks/pre-commit", "#!/bin/sh\n")
			p.mustEdit(".githooks/pre-commit", "no hook yet\n")
			configure(p)
			p.mustRefuse(".githooks/pre-commit", settingsAllow, "no rule can make")
		})
	}
}

// Git runs programs for more than its hooks.
func TestProgramsThatGitRunsAreNeverWritable(t *testing.T) {
	p := newProject(t)
	p.allow("Edit(**)")
	p.put("tools/run", "#!/bin/sh\n")
	for _, variable := range []string{
		"core.alternateRefsCommand", "core.sshCommand", "diff.x.textconv", "gc.recentObjectsHook",
		"gpg.ssh.defaultKeyCommand", "imap.tunnel", "init.templateDir", "sendemail.toCmd", "submodule.x.update",
		"tar.x.command", "trailer.x.cmd", "browser.x.cmd",
	} {
		p.mustEdit("tools/run", variable+" comes next\n")
		value := "!tools/run"
		if variable == "init.templateDir" {
			value = "tools"
		}
		p.git("config", variable, value)
		p.mustRefuse("tools/run", settingsAllow, "no rule can make")
		p.git("config", "--unset", variable)
	}
}

// Whoever calls chooses the environment, and with it where git looks for a home.
func TestTheHomeOfTheAccountCountsWhateverTheEnvironmentSays(t *testing.T) {
	said, err := exec.Command("getent", "passwd", strconv.Itoa(os.Getuid())).Output()
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Split(string(said), ":")[5]
	t.Setenv("HOME", t.TempDir())
	if got := homesOf(Request{Home: os.Getenv("HOME")}); !slices.Contains(got.dirs, want) {
		t.Errorf("git's configuration is looked for in %q, not in %s", got.dirs, want)
	}
}

// A file that git's configuration includes configures git, even one that does not exist yet.
func TestIncludedConfigurationIsNeverWritable(t *testing.T) {
	p := newProject(t)
	p.allow("Edit(**)")
	p.put("more.md", "")
	p.mustEdit("more.md", "# not included yet\n")
	for _, include := range []string{"include.path", "includeIf.onbranch:other.path"} {
		p.git("config", include, "../more.md")
		p.mustRefuse("more.md", settingsAllow, "part of git's configuration")
		p.git("config", include, "../missing")
		p.mustRefuse("missing", settingsAllow, "part of git's configuration")
		p.git("config", "--unset", include)
	}
}

func TestNestedSettingsOnlyNarrow(t *testing.T) {
	p := newProject(t)
	p.put("sub/x.md", "old\n")
	p.settings("sub/.claude/settings.json", []string{"Edit(**)"}, nil)
	p.mustRefuse("sub/x.md", settingsAllow, "no Edit() rule in "+p.path(".claude/settings.json"), "'sub/x.md'")
	p.put(".claude/settings.json", "{}")
	p.mustRefuse("sub/x.md", settingsAllow, "no permissions.allow array in "+p.path(".claude/settings.json"))
	p.allow("Edit(**)")
	p.mustEdit("sub/x.md", "allowed by both\n")
	p.settings("sub/.claude/settings.json", []string{"Edit(y.md)"}, nil)
	p.mustRefuse("sub/x.md", settingsAllow, "no Edit() rule in "+p.path("sub/.claude/settings.json"))
}
