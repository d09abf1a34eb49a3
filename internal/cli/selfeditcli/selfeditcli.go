// Package selfeditcli is the command fit selfedit, also called fit-selfedit: standard input
// replaces a file, if the project's settings and the branch allow it.
//
// All messages go to standard error. Standard output stays empty unless --diff or --format json
// asks for data.
package selfeditcli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/internal/jsonenc"
	"github.com/fit-eval/fit/internal/lazyregexp"
	"github.com/fit-eval/fit/internal/selfedit"
)

const long = `Write standard input to a file that the project's own settings allow to be edited.

The whole file is replaced atomically. Two safeguards come first, in this order;
the one that refuses is named at the start of the message:

settings-allow: the nearest .claude/settings.json upward from the file must have a rule Edit(<glob>)
in permissions.allow that matches the file's path, taken relative to the directory that holds
.claude. So must every other .claude/settings.json between the file and the top of its repository:
settings in a subdirectory can only narrow what those above them allow. A deny rule in any of them
wins. Symbolic links below that directory are refused, and so are settings files, hooks, every file
that a hook's command names or may run, and anything that belongs to git; no rule allows those.

branch-scope: the repository that holds the file must be on a branch that is not main, not master,
not the default branch of a remote, and not listed in the git configuration
fit.selfedit.protectedBranches. A detached HEAD is refused. The branch is checked again after the
write; if it moved, the old file is put back.

Every write is recorded in <git dir>/fit/selfedit.ndjson, which fit-trace reads.

Globs: * and ? within a name, ** for any directories, [a-z] and [!a-z], {a,b}; names with a leading
dot match too. A rule with other syntax never matches.

Exit codes: 0 written (or, with --check, would be) · 1 a read or write failed · 2 refused by a
safeguard, or called wrongly.`

const example = `  # replace a skill
  echo "$content" | fit-selfedit .claude/skills/review/SKILL.md

  # would it be allowed? (changes nothing)
  fit-selfedit --check .claude/skills/review/SKILL.md < new.md

  # only if nobody changed the file since it was read
  fit-selfedit --expect-sha256 "$(sha256sum < old.md | cut -d' ' -f1)" .claude/agents/critic.md < new.md

  # a new file in a new directory, with a summary of the change
  fit-selfedit --mkdir --diff --expect-sha256 none .claude/skills/triage/SKILL.md < new.md

  # protect release branches as well
  git config --add fit.selfedit.protectedBranches 'release/*'`

// editOptions are the arguments of one call.
type editOptions struct {
	Path         string
	Check        bool
	Diff         bool
	Mkdir        bool
	ExpectSHA256 string
	MaxBytes     int64
	Format       console.Format
}

// New returns the command.
func New(con *console.Console) *cobra.Command {
	var options editOptions
	command := &cobra.Command{
		Use: "selfedit <path>",
		Short: "Write standard input to a file, if the project's allowlist permits it and the branch is not " +
			"protected",
		Long:    long,
		Example: example,
		Version: con.Version,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return console.Usagef("the path of the file to write is missing; usage: echo content | fit-selfedit " +
					"<path>")
			}
			if len(args) > 1 {
				return console.Usagef("expected one path, got %d", len(args))
			}
			return nil
		},
		RunE: func(command *cobra.Command, args []string) error {
			options.Path = args[0]
			return run(command.Context(), con, options)
		},
	}
	flags := command.Flags()
	flags.BoolVar(&options.Check, "check", false, "dry run: run all checks and change nothing")
	flags.BoolVar(&options.Diff, "diff", false, "print how many lines change to standard output")
	flags.BoolVar(&options.Mkdir, "mkdir", false, "create missing directories of the path")
	flags.StringVar(&options.ExpectSHA256, "expect-sha256", "",
		"write only if the current content has this hash; \"none\" means that the file must not exist")
	flags.Int64Var(&options.MaxBytes, "max-bytes", selfedit.MaxBytes,
		"refuse more content than this; the limit can only be lowered")
	options.Format.Register(flags, "how to report; json is on standard output")
	command.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return console.Usagef("%w", err) })
	return command
}

func run(ctx context.Context, con *console.Console, options editOptions) error {
	if err := options.validate(); err != nil {
		return err
	}
	content, err := contentOf(con, options.Check)
	if err != nil {
		return err
	}
	editor := selfedit.Editor{}
	result, err := editor.Edit(ctx, selfedit.Request{
		Path:          options.Path,
		Dir:           con.Dir,
		Content:       content,
		MaxBytes:      options.MaxBytes,
		ExpectSHA256:  strings.ToLower(options.ExpectSHA256),
		Mkdir:         options.Mkdir,
		Check:         options.Check,
		Diff:          options.Diff,
		Home:          con.Getenv("HOME"),
		XDGConfigHome: con.Getenv("XDG_CONFIG_HOME"),
		GitConfigs:    []string{con.Getenv("GIT_CONFIG_GLOBAL"), con.Getenv("GIT_CONFIG_SYSTEM")},
	})
	if err != nil {
		return withExitCode(err)
	}
	return report(con, options, result, content != nil)
}

var sha256Hex = lazyregexp.New(`^[0-9a-fA-F]{64}$`)

func (o editOptions) validate() error {
	switch {
	case o.Path == "":
		return console.Usagef("the path of the file to write is empty")
	case o.ExpectSHA256 != "" && o.ExpectSHA256 != selfedit.ExpectAbsent && !sha256Hex.MatchString(o.ExpectSHA256):
		return console.Usagef("--expect-sha256 takes 64 hexadecimal digits or %q, got %q", selfedit.ExpectAbsent,
			o.ExpectSHA256)
	case o.MaxBytes < 1 || o.MaxBytes > selfedit.MaxBytes:
		return console.Usagef("--max-bytes takes a number from 1 to %d, got %d", selfedit.MaxBytes, o.MaxBytes)
	}
	return nil
}

// contentOf returns standard input, or nil where a check can do without.
func contentOf(con *console.Console, check bool) (io.Reader, error) {
	file, isFile := con.Stdin.(*os.File)
	switch {
	case con.Stdin == nil, isFile && wasClosed(file):
		if check {
			return nil, nil
		}
		return nil, console.Exitf(console.ExitNegative,
			"standard input is closed; pipe the content in, or use < /dev/null to write an empty file")
	case isFile && term.IsTerminal(int(file.Fd())):
		if check {
			return nil, nil
		}
		return nil, console.Usagef("standard input is a terminal; pipe the content in: echo content | fit-selfedit " +
			"<path>")
	}
	return con.Stdin, nil
}

// wasClosed recognises a standard input that was closed before the program started. The Go runtime
// then opens the null device in its place, for reading and writing; taking that for empty content
// would empty the file. A shell's < /dev/null is open for reading only and means what it says.
func wasClosed(file *os.File) bool {
	info, err := file.Stat()
	if err != nil {
		return true
	}
	null, err := os.Stat(os.DevNull)
	if err != nil || !os.SameFile(info, null) {
		return false
	}
	flags, err := unix.FcntlInt(file.Fd(), unix.F_GETFL, 0)
	return err != nil || flags&unix.O_ACCMODE != unix.O_RDONLY
}

// withExitCode gives refusals and failures the exit codes people rely on.
func withExitCode(err error) error {
	switch {
	case errors.As(err, new(*selfedit.Refusal)):
		return console.Exit(console.ExitUsage, err)
	case errors.Is(err, context.Canceled):
		return console.Exit(console.ExitInterrupted, err)
	}
	return console.Exit(console.ExitNegative, err)
}

func report(con *console.Console, options editOptions, result selfedit.Result, hasContent bool) error {
	verb := "wrote"
	if options.Check {
		verb = "would write"
	}
	bytes := fmt.Sprintf("%d bytes", result.Bytes)
	switch {
	case !hasContent:
		bytes = "standard input"
	case result.Bytes == 1:
		bytes = "1 byte"
	}
	fmt.Fprintf(con.Stderr, "fit-selfedit: %s %s to %s (matched %s, branch %s)\n", verb, bytes,
		display.Name(result.Path), display.Name(result.Rule), display.Name(result.Branch))
	if result.OtherNames > 0 {
		fmt.Fprintf(con.Stderr, "fit-selfedit: the file has other names (hard links: %d), which keep the old content\n",
			result.OtherNames)
	}
	var err error
	switch {
	case options.Format.JSON():
		err = jsonenc.Write(con.Stdout, result)
	case result.Diff != nil:
		_, err = fmt.Fprintf(con.Stdout, "%s: %d added, %d removed\n", display.Name(result.Path), result.Diff.Added,
			result.Diff.Removed)
	}
	if err != nil {
		return console.Exitf(console.ExitNegative, "the file was handled, but printing the result failed: %w", err)
	}
	return nil
}
