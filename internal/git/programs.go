package git

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fit-eval/fit/internal/lazyregexp"
)

// programKeys are the settings of a repository by which git runs programs: when it compares files,
// shows or signs commits, fetches what is missing, or calls hooks.
var programKeys = lazyregexp.New(`^(core\.(fsmonitor|hookspath|sshcommand|gitproxy|editor|pager|askpass|` +
	`alternaterefscommand)|sequence\.editor|credential\.(.*\.)?helper|diff\.(external|.*\.(command|textconv))|` +
	`filter\..*\.(clean|smudge|process)|merge\..*\.driver|gpg\.(.*\.)?(program|defaultkeycommand)|hook\..*\.command|` +
	`interactive\.difffilter|pager\..*|remote\..*\.(uploadpack|receivepack|vcs)|submodule\..*\.update|` +
	`trailer\..*\.(cmd|command)|uploadpack\.packobjectshook|includeif\.onbranch:.*\.path)$`)

// plainValues of such a setting name no program of the repository.
var plainValues = lazyregexp.New(`^(|true|false|yes|no|on|off|0|1|cat|checkout|rebase|merge|none|git-lfs [a-z- %]+)$`)

// maxRepositories bounds the search in submodules of submodules.
const maxRepositories = 200

// Programs lists the files by which the repository of a directory makes git run programs: settings,
// those that they include, hooks, and those of submodules, in which git status looks too. The
// repository may be above the directory, or elsewhere. Git itself reads them, and runs nothing.
// Paths are relative to the directory where they are below it. What git cannot read makes it run
// nothing either, unless the context ends first: then the repository itself is listed.
func Programs(ctx context.Context, dir string) []string {
	var found []string
	pending := []string{dir}
	for count := 0; len(pending) > 0; count++ {
		at := pending[0]
		pending = pending[1:]
		found = append(found, programSettings(ctx, at)...)
		if common, err := Output(ctx, at, "rev-parse", "--git-common-dir"); err == nil {
			found = append(found, hooks(resolve(at, common))...)
		}
		if count == maxRepositories || ctx.Err() != nil {
			found = append(found, filepath.Join(at, ".git"))
			break
		}
		pending = append(pending, submodules(ctx, at)...)
	}
	for i, name := range found {
		if short, err := filepath.Rel(dir, name); err == nil && filepath.IsLocal(short) {
			found[i] = filepath.ToSlash(short)
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// programSettings returns the files with settings that name programs.
func programSettings(ctx context.Context, dir string) []string {
	var found []string
	up, _ := Output(ctx, dir, "rev-parse", "--show-cdup") // git says what it reads from there
	fields := list(ctx, dir, "config", "--list", "--null", "--show-origin")
	for i := 0; i+1 < len(fields); i += 2 { // the origin, then the key, a line end and the value
		file, ours := strings.CutPrefix(fields[i], "file:")
		key, value, _ := strings.Cut(fields[i+1], "\n")
		if ours && programKeys.Get().MatchString(key) && !plainValues.Get().MatchString(strings.ToLower(value)) {
			found = append(found, resolve(resolve(dir, up), file))
		}
	}
	return found
}

// hooks returns the hooks of a repository that git would run.
func hooks(common string) []string {
	var found []string
	entries, _ := os.ReadDir(filepath.Join(common, "hooks")) // what we cannot read, git cannot run
	for _, entry := range entries {
		name := filepath.Join(common, "hooks", entry.Name())
		info, err := os.Stat(name)
		if err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 && filepath.Ext(name) != ".sample" {
			found = append(found, name)
		}
	}
	return found
}

// submodules returns the directories of a repository that have a repository of their own.
func submodules(ctx context.Context, dir string) []string {
	var found []string
	for _, entry := range list(ctx, dir, "ls-files", "--stage", "-z", "--", ":/") {
		if !strings.HasPrefix(entry, "160000 ") {
			continue
		}
		_, name, _ := strings.Cut(entry, "\t")
		if _, err := os.Lstat(filepath.Join(resolve(dir, name), ".git")); err == nil {
			found = append(found, resolve(dir, name))
		}
	}
	return found
}

// list returns the fields that git prints, each of which ends with a zero byte; none if it fails.
func list(ctx context.Context, dir string, args ...string) []string {
	var out bytes.Buffer
	if err := Run(ctx, Command{Dir: dir, Args: args, Stdout: &out}); err != nil {
		return nil
	}
	return strings.Split(strings.TrimSuffix(out.String(), "\x00"), "\x00")
}

func resolve(dir, name string) string {
	if filepath.IsAbs(name) {
		return filepath.Clean(name)
	}
	return filepath.Join(dir, name)
}
