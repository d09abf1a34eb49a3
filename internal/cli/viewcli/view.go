// Package viewcli is the command fit view: the local web app.
package viewcli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/cli/experimentcli"
	"github.com/fit-eval/fit/internal/experiment"
	"github.com/fit-eval/fit/internal/report/foreign"
	"github.com/fit-eval/fit/internal/report/results"
	"github.com/fit-eval/fit/internal/scratch"
	"github.com/fit-eval/fit/internal/view"
	"github.com/fit-eval/fit/ledger"
	"github.com/fit-eval/fit/redact"
	"github.com/fit-eval/fit/session"
)

type options struct {
	listen string
	noOpen bool
	from   experimentcli.From
}

// New returns the command.
func New(con *console.Console, dialects session.Dialects) *cobra.Command {
	opts := options{}
	command := &cobra.Command{
		Use:   "view [DIR|TRACE]...",
		Short: "View experiments, runs and traces in the browser, live",
		Long: `Look at experiments, runs and traces in the browser: every run directory below the given ones (default:
the current directory), and the given traces. Pages update during a run. Results of other harnesses are shown like run
directories, as they are now; their format is recognised by content. The app is part of this program: nothing is
loaded from the network.

The server listens on the loopback interface. The address that it prints carries a token, which the browser exchanges
for a cookie: without either, nothing is shown.`,
		Example: `  fit view                         every run directory below this one
  fit view results trace.ndjson    a run directory and a trace
  fit view logs/before.eval        a log of Inspect
  fit view --no-open runs          print the address only`,
		RunE: func(command *cobra.Command, args []string) error {
			return serve(command.Context(), con, dialects, args, &opts)
		},
	}
	flags := command.Flags()
	flags.StringVar(&opts.listen, "listen", defaultListen, "address to listen on; unless it is loopback, other "+
		"machines can reach it")
	flags.BoolVar(&opts.noOpen, "no-open", false, "print the address and do not open a browser")
	opts.from.Register(flags)
	return command
}

// defaultListen is a free port of the loopback interface.
const defaultListen = "127.0.0.1:0"

// Serve shows a run directory in the browser until the context ends.
func Serve(ctx context.Context, con *console.Console, dialects session.Dialects, dir string) error {
	return serve(ctx, con, dialects, []string{dir}, &options{listen: defaultListen})
}

func serve(ctx context.Context, con *console.Console, dialects session.Dialects, paths []string, opts *options) error {
	from := opts.from.Options()
	if len(paths) == 0 {
		paths, from = []string{"."}, nil
	}
	cfg, remove, err := Config(con, dialects, paths, from)
	if err != nil {
		return err
	}
	for _, path := range cfg.Paths {
		if err := mayBeTrace(path); err != nil {
			return errors.Join(err, remove())
		}
	}
	return errors.Join(listen(ctx, con, cfg, opts), remove())
}

// listen serves until the context ends.
func listen(ctx context.Context, con *console.Console, cfg view.Config, opts *options) error {
	server, err := view.New(cfg)
	if err != nil {
		return console.Exit(console.ExitUsage, plain(err))
	}
	listener, err := net.Listen("tcp", opts.listen)
	if err != nil {
		return console.Exit(console.ExitUsage, fmt.Errorf("--listen %s: %w", opts.listen, err))
	}
	address := server.URL(listener.Addr())
	fmt.Fprintln(con.Stdout, address)
	for _, one := range reachable(listener.Addr().(*net.TCPAddr)) {
		fmt.Fprintf(con.Stderr, "note: other machines reach it at %s, without encryption\n", server.URL(one))
	}
	if !opts.noOpen {
		OpenBrowser(ctx, con, address)
	}
	return server.Serve(ctx, listener)
}

// reachable are the addresses at which other machines reach a server: none on the loopback
// interface, those of this machine where it listens on all.
func reachable(at *net.TCPAddr) []net.Addr {
	switch {
	case at.IP.IsLoopback():
		return nil
	case !at.IP.IsUnspecified():
		return []net.Addr{at}
	}
	own, err := net.InterfaceAddrs()
	if err != nil {
		return nil
	}
	var found []net.Addr
	for _, one := range own {
		if network, ok := one.(*net.IPNet); ok && network.IP.IsGlobalUnicast() {
			found = append(found, &net.TCPAddr{IP: network.IP, Port: at.Port})
		}
	}
	return found
}

// Config says how paths are shown. With from, those of results of other harnesses are kept as run
// directories until they are removed.
func Config(con *console.Console, dialects session.Dialects, paths []string, from *foreign.Options,
) (cfg view.Config, remove func() error, err error) {
	redactor := redact.New(redact.Config{Environ: con.Environ})
	cfg = view.Config{
		Dialects: slices.Clone(dialects),
		Prices:   con.Prices(),
		Redactor: redactor,
		Key:      experimentcli.OwnKey(con),
		NewKey:   func() *ledger.SigningKey { return experimentcli.SigningKey(con) },
		Author:   cmp.Or(con.Getenv("USER"), con.Getenv("LOGNAME"), "user "+strconv.Itoa(os.Getuid())),
	}
	var kept *scratch.Dir
	remove = func() error {
		if kept == nil {
			return nil
		}
		return kept.Remove()
	}
	for i, path := range paths {
		shown := view.Path{Shown: path, Real: con.Path(path)}
		alone := results.IsLedger(shown.Real) && filepath.Base(shown.Real) != experiment.LedgerFile
		if alone || from != nil && isForeign(shown.Real, from) {
			if kept == nil {
				if kept, err = scratch.Make("", "fit-view-"); err != nil {
					return cfg, remove, err
				}
			}
			dir := filepath.Join(kept.Path, strconv.Itoa(i), filepath.Base(shown.Real))
			if alone { // a merged ledger
				err = copyLedger(shown.Real, dir)
			} else {
				_, err = experimentcli.Import(shown.Real, dir, from, redactor, cfg.Key)
			}
			if err != nil {
				return cfg, remove, errors.Join(console.Exit(console.ExitUsage, err), remove())
			}
			shown.Real = dir
		}
		cfg.Paths = append(cfg.Paths, shown)
	}
	return cfg, remove, nil
}

// copyLedger makes a run directory of a ledger alone.
func copyLedger(path, dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	in, err := os.Open(path)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(filepath.Join(dir, experiment.LedgerFile), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// isForeign reports whether a path is that of results of another harness, and of no trace.
func isForeign(path string, from *foreign.Options) bool {
	if from.Format != "" {
		return true
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		if found, err := results.Find(path); err != nil || len(found) > 0 {
			return false
		}
	}
	format := foreign.Format(path)
	if format == foreign.FormatTable && beginsAsJSON(path) { // a trace has lines of JSON too
		_, err := foreign.Read(path, *from)
		return err == nil
	}
	line, _, _ := bytes.Cut(beginningOf(path), []byte("\n"))
	if format == foreign.FormatTable && !bytes.ContainsAny(line, ",;\t") {
		return false // words: a table has two columns or more
	}
	return format != ""
}

// ExportCell writes one cell of a run directory as one page that opens from disk.
func ExportCell(ctx context.Context, w io.Writer, cfg view.Config, of ledger.Cell, command string) error {
	server, err := view.New(cfg)
	if err != nil {
		return console.Exit(console.ExitUsage, plain(err))
	}
	err = server.ExportCell(ctx, w, of, view.ExportConfig{Command: command, NowMs: time.Now().UnixMilli()})
	return errors.Join(err, server.Close())
}

// Export writes paths as one page that opens from disk.
func Export(ctx context.Context, w io.Writer, cfg view.Config, maxBytes int, command string) error {
	server, err := view.New(cfg)
	if err != nil {
		return console.Exit(console.ExitUsage, plain(err))
	}
	err = server.Export(ctx, w, view.ExportConfig{
		Command:  command,
		NowMs:    time.Now().UnixMilli(),
		MaxBytes: maxBytes,
	})
	return errors.Join(err, server.Close())
}

// MaxBytesUsage describes the flag that bounds a page in one file.
const MaxBytesUsage = "with --format html: largest size of the file in bytes; transcripts are left out to stay " +
	"below it"

func plain(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) && errors.Is(err, fs.ErrNotExist) {
		name, hint := filepath.Clean(path.Path), ""
		if at := strings.LastIndex(name, ":"); at > 0 {
			if _, err := os.Stat(name[:at]); err == nil {
				hint = fmt.Sprintf("; the pages show every arm: use %s", name[:at])
			}
		}
		return fmt.Errorf("%s: no such file or directory%s", name, hint)
	}
	return err
}

// mayBeTrace refuses a file that begins like no trace and like nothing compressed.
func mayBeTrace(path view.Path) error {
	first := beginningOf(path.Real)
	if len(first) == 0 || first[0] == '{' || first[0] == '[' || !utf8.Valid(first[:1]) ||
		bytes.HasPrefix(first, []byte("\x1f\x8b")) || bytes.HasPrefix(first, []byte("\x28\xb5")) {
		return nil
	}
	return console.Usagef("%s is neither a run directory nor a trace", path.Shown)
}

func beginsAsJSON(path string) bool { return bytes.HasPrefix(beginningOf(path), []byte("{")) }

// beginningOf returns how a file begins; nothing where it cannot be read, which the server reports.
func beginningOf(path string) []byte {
	file, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer file.Close()
	first := make([]byte, 512)
	n, _ := file.Read(first) // a directory has none
	return bytes.TrimSpace(first[:max(n, 0)])
}

// browserProgram opens an address in the user's browser.
func browserProgram() string {
	if runtime.GOOS == "darwin" {
		return "open"
	}
	return "xdg-open"
}

// HasBrowser reports whether somebody is at a terminal of a machine that can show a browser.
func HasBrowser(con *console.Console) bool {
	_, err := exec.LookPath(browserProgram())
	display := runtime.GOOS == "darwin" || con.Getenv("DISPLAY") != "" || con.Getenv("WAYLAND_DISPLAY") != ""
	return err == nil && display && con.StdoutIsTerminal()
}

// OpenBrowser shows an address to the user; without a browser the printed line is all there is.
func OpenBrowser(ctx context.Context, con *console.Console, address string) {
	command := exec.CommandContext(ctx, browserProgram(), address)
	command.Env = con.Environ
	if err := command.Start(); err != nil {
		fmt.Fprintln(con.Stderr, "open this address in a browser")
		return
	}
	go func() { _ = command.Wait() }() // it ends by itself, or with the context
}
