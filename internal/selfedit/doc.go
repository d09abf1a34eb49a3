// Package selfedit is a narrow, audited write: it replaces one file with the content of a reader,
// if the project's own settings allow it and the repository is on a branch where that can do no
// harm. It is what fit-selfedit runs.
//
// The steps of one edit:
//
//  1. settings-allow: the nearest .claude/settings.json upward from the target must allow the write
//     by an Edit(<glob>) rule, and so must every further one up to the top of the repository; no
//     deny rule in between may match; the target must not be a settings file, a hook or other
//     program that git or the settings run, or part of a git directory; and no symbolic link may
//     lie between the settings' grandparent directory and the target
//  2. branch-scope: the repository that holds the target must be on a branch that is not main,
//     master, a remote's default branch or listed in the git configuration
//     fit.selfedit.protectedBranches
//  3. the content is read, up to a size limit, and the first two steps are taken again under the
//     lock of the audit log
//  4. the content goes to a temporary file in the target's directory and to the disk
//  5. a line that says so is appended to <git dir>/fit/selfedit.ndjson, and the file goes into
//     place in one step
//  6. the branch and the directory are looked at again; if either moved, the old file is put back
//  7. a second line records the outcome; if that fails, the old file is put back
//
// A step that says no returns a *Refusal, whose text starts with the name of the safeguard; any
// other error is a read or write that failed. In either case the target is what it was before.
//
// # Rules
//
// Allow rules are globs as package internal/glob describes them; a rule with unsupported syntax
// never matches and is named in the refusal. Deny rules are read generously, because a mistake must
// fall on the safe side: Edit, Write, MultiEdit and NotebookEdit count, with or without a pattern;
// letter case and Unicode normalisation are ignored; a pattern that names a directory covers what
// is in it; a pattern without slash matches at any depth; /x and ./x start at the settings'
// grandparent directory, //x at the root of the file system, ~/x at home; and a deny rule that
// cannot be understood denies everything. Deny rules are taken from settings.json and
// settings.local.json, and also from the file that holds the allow rule when that lies above the
// repository.
//
// # Git
//
// Git itself is asked where the repository is, which branch it is on and how it is configured, with
// an environment in which no GIT_ variable counts and the system's git, whatever PATH says. The
// configuration of the repository, the system and every directory that may be home counts, with all
// files they include. What is unusual is refused: a .git that git passes over, links in the place
// of .git or of the branch, a worktree that does not point back, an unborn branch, and a nested
// repository in whose directory an outer repository tracks files.
package selfedit
