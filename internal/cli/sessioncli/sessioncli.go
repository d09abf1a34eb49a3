// Package sessioncli is the command fit session: it reads what an agent did, whichever agent it was
// and wherever it left its record.
package sessioncli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/internal/jsonenc"
	"github.com/fit-eval/fit/internal/scratch"
	"github.com/fit-eval/fit/redact"
	"github.com/fit-eval/fit/session"
)

// New returns the command tree. The function secrets finds credentials of agents in an environment.
func New(
	con *console.Console, dialects session.Dialects, secrets func(environ []string) map[string]string,
) *cobra.Command {
	out := &output{con: con, dialects: dialects, secrets: secrets}
	command := &cobra.Command{
		Use:   "session",
		Short: "Show what an agent did, from a trace, a stream, or the files agents keep on disk",
		Example: `  fit session show trace.ndjson
  fit session import rollout.jsonl > session.json
  fit session export trace.ndjson --to atif`,
	}
	command.PersistentFlags().BoolVar(&out.plain, "no-redact", false, "print secrets unredacted")
	command.AddCommand(newImport(out), newShow(out), newExport(out), newPrompts(out))
	return command
}

// output reads sessions, and prints without the secrets that fit knows of: what agents leave on
// disk was not redacted when it was written.
type output struct {
	con      *console.Console
	dialects session.Dialects
	secrets  func(environ []string) map[string]string
	plain    bool
}

// clean takes the secrets out of a text, or out of JSON, which stays valid.
func (o *output) clean(text []byte) []byte {
	if o.plain {
		return text
	}
	redactor := redact.New(redact.Config{
		Environ: o.con.Environ,
		Extra:   o.secrets(o.con.Environ),
		Warn:    o.con.Stderr,
	})
	return redactor.JSON(text)
}

// cleaned returns a session without secrets. A page shows only the beginning of a text, and a
// secret that is cut is no longer recognised.
func (o *output) cleaned(s *session.EnrichedSession) (*session.EnrichedSession, error) {
	if o.plain {
		return s, nil
	}
	encoded, err := jsonenc.Marshal(s)
	if err != nil {
		return nil, err
	}
	clean := new(session.EnrichedSession)
	if err := json.Unmarshal(o.clean(encoded), clean); err != nil {
		return nil, fmt.Errorf("the session cannot be redacted (use --no-redact to see it with its secrets): %w",
			err)
	}
	return clean, nil
}

// print writes what was rendered, with nothing in it that a terminal would obey.
func (o *output) print(to io.Writer, render func(w io.Writer) error) error {
	var page bytes.Buffer
	if err := render(&page); err != nil {
		return err
	}
	_, err := to.Write(display.JSON(o.clean(page.Bytes())))
	return err
}

func newImport(out *output) *cobra.Command {
	return &cobra.Command{
		Use:   "import PATH",
		Short: "Print the canonical session in a file as JSON, an array if there are several",
		Long: "Print the canonical session in a file as JSON, an array if there are several.\n\n" +
			"The content decides what kind of file it is: a trace, an agent's event stream, a session file that an " +
			"agent keeps on disk, or an ATIF document.\n" +
			"PATH may be - for standard input.",
		Example: "  fit session import trace.ndjson > session.json",
		Args:    onePath,
		RunE: func(_ *cobra.Command, args []string) error {
			sessions, err := out.load(args[0])
			if err != nil {
				return err
			}
			return out.print(out.con.Stdout, func(w io.Writer) error { return writeJSON(w, sessions) })
		},
	}
}

func newShow(out *output) *cobra.Command {
	var format console.Format
	command := &cobra.Command{
		Use:   "show PATH",
		Short: "Show a session on one page: outcome, cost, milestones, tools, errors, messages",
		Example: `  fit session show trace.ndjson
  fit session show --format json trace.ndjson`,
		Args: onePath,
		RunE: func(_ *cobra.Command, args []string) error { return runShow(out, args[0], format.JSON()) },
	}
	format.Register(command.Flags(), "output format")
	return command
}

func runShow(out *output, path string, asJSON bool) error {
	sessions, err := out.load(path)
	if err != nil {
		return err
	}
	if asJSON {
		return out.print(out.con.Stdout, func(w io.Writer) error { return writeJSON(w, sessions) })
	}
	return out.con.Folded(func(to io.Writer) error { return out.print(to, showing(out, sessions)) })
}

// showing renders sessions for people.
func showing(out *output, sessions []*session.EnrichedSession) func(io.Writer) error {
	return func(w io.Writer) error {
		for i, s := range sessions {
			if i > 0 {
				if _, err := io.WriteString(w, "\n"); err != nil {
					return err
				}
			}
			clean, err := out.cleaned(s)
			if err == nil {
				err = session.Show(w, clean)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
}

func newExport(out *output) *cobra.Command {
	var to, file string
	command := &cobra.Command{
		Use:     "export PATH --to atif",
		Short:   "Export a session as ATIF, the Agent Trajectory Interchange Format",
		Example: "  fit session export trace.ndjson --to atif --output trajectory.json",
		Args:    onePath,
		RunE:    func(_ *cobra.Command, args []string) error { return runExport(out, args[0], to, file) },
	}
	command.Flags().StringVar(&to, "to", "", "the format: atif")
	command.Flags().StringVarP(&file, "output", "o", "", "write to this file instead of standard output")
	return command
}

func runExport(out *output, path, to, file string) error {
	if to != "atif" {
		return console.Usagef("unknown format %q; use --to atif", to)
	}
	sessions, err := out.load(path)
	if err != nil {
		return err
	}
	document, err := documents(sessions)
	if err != nil {
		return console.Exitf(console.ExitIncomplete, "export %s: %w", path, err)
	}
	document = out.clean(document)
	if file == "" {
		_, err = out.con.Stdout.Write(display.JSON(document))
		return err
	}
	if err := os.WriteFile(out.con.Path(file), document, 0o600); err != nil {
		return console.Exitf(console.ExitIncomplete, "export: %w", err)
	}
	return nil
}

// documents is one trajectory, or an array of them.
func documents(sessions []*session.EnrichedSession) ([]byte, error) {
	var all []json.RawMessage
	for _, s := range sessions {
		document, err := session.ExportATIF(s)
		if err != nil {
			return nil, err
		}
		all = append(all, document)
	}
	if len(all) == 1 {
		return all[0], nil
	}
	var buf bytes.Buffer
	err := jsonenc.WriteIndented(&buf, all)
	return buf.Bytes(), err
}

func onePath(_ *cobra.Command, args []string) error {
	if len(args) != 1 {
		return console.Usagef("name one file, or - for standard input")
	}
	return nil
}

// load reads the sessions of a file. Costs that an agent does not report are computed from the
// built-in prices.
func (o *output) load(path string) ([]*session.EnrichedSession, error) {
	if path == "-" {
		return o.loadStdin()
	}
	sessions, err := session.Load(o.con.Path(path), o.dialects, session.Options{Prices: o.con.Prices()})
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, console.Usagef("there is no file %s", path)
	case errors.Is(err, session.ErrUnrecognised):
		return nil, console.Usagef("%s holds no events of an agent that fit knows; use a trace, an agent's stream "+
			"or session file, or an ATIF document", path)
	case err != nil:
		return nil, console.Exit(console.ExitUsage, err)
	}
	return sessions, nil
}

// loadStdin keeps standard input in a file, because telling kinds of files apart may need to read
// them twice.
func (o *output) loadStdin() ([]*session.EnrichedSession, error) {
	dir, err := scratch.Make("", "fit-session-")
	if err != nil {
		return nil, console.Exit(console.ExitIncomplete, err)
	}
	defer func() { _ = dir.Remove() }()
	path := filepath.Join(dir.Path, "stdin")
	file, err := os.Create(path)
	if err != nil {
		return nil, console.Exit(console.ExitIncomplete, err)
	}
	_, err = io.Copy(file, o.con.Stdin)
	if err = errors.Join(err, file.Close()); err != nil {
		return nil, console.Exitf(console.ExitIncomplete, "read standard input: %w", err)
	}
	sessions, err := session.Load(path, o.dialects, session.Options{Prices: o.con.Prices()})
	if errors.Is(err, session.ErrUnrecognised) {
		return nil, console.Usagef("standard input holds no events of an agent that fit knows")
	}
	if err != nil {
		return nil, console.Exit(console.ExitUsage, err)
	}
	return sessions, nil
}

func writeJSON(w io.Writer, sessions []*session.EnrichedSession) error {
	if len(sessions) == 1 {
		return jsonenc.WriteIndented(w, sessions[0])
	}
	return jsonenc.WriteIndented(w, sessions)
}
