// Package viewcli is the command fit view: the local web app.
package viewcli

import (
	"bytes"
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
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/cli/experimentcli"
	"github.com/fit-eval/fit/internal/view"
	"github.com/fit-eval/fit/redact"
	"github.com/fit-eval/fit/session"
)

type options struct {
	listen string
	noOpen bool
}

// New returns the command.
func New(con *console.Console, dialects session.Dialects) *cobra.Command {
	opts := options{}
	command := &cobra.Command{
		Use:   "view [DIR|TRACE]...",
		Short: "View experiments, runs and traces in the browser, live",
		Long: `Look at experiments, runs and traces in the browser: every run directory below the given ones (default:
the current directory), and the given traces. Pages update during a run. The app is part of this program: nothing is
loaded from the network.

The server listens on the loopback interface. The address that it prints carries a token, which the browser exchanges
for a cookie: without either, nothing is shown.`,
		Example: `  fit view                         every run directory below this one
  fit view results trace.ndjson    a run directory and a trace
  fit view --no-open runs          print the address only`,
		RunE: func(command *cobra.Command, args []string) error {
			return Serve(command.Context(), con, dialects, args, opts.listen, !opts.noOpen)
		},
	}
	flags := command.Flags()
	flags.StringVar(&opts.listen, "listen", DefaultListen, "address to listen on; unless it is loopback, other "+
		"machines can reach it")
	flags.BoolVar(&opts.noOpen, "no-open", false, "print the address and do not open a browser")
	return command
}

// DefaultListen is a free port of the loopback interface.
const DefaultListen = "127.0.0.1:0"

// Serve shows paths in the browser until the context ends.
func Serve(ctx context.Context, con *console.Console, dialects session.Dialects, paths []string, listen string,
	open bool,
) error {
	if len(paths) == 0 {
		paths = []string{"."}
	}
	for _, path := range paths {
		if err := mayBeTrace(con, path); err != nil {
			return err
		}
	}
	server, err := view.New(Config(con, dialects, paths))
	if err != nil {
		return console.Exit(console.ExitUsage, plain(err))
	}
	listener, err := net.Listen("tcp", listen)
	if err != nil {
		return console.Exit(console.ExitUsage, fmt.Errorf("--listen %s: %w", listen, err))
	}
	address := server.URL(listener.Addr())
	fmt.Fprintln(con.Stdout, address)
	for _, one := range reachable(listener.Addr().(*net.TCPAddr)) {
		fmt.Fprintf(con.Stderr, "note: other machines reach it at %s, without encryption\n", server.URL(one))
	}
	if open {
		openBrowser(ctx, con, address)
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

// Config says how paths are shown.
func Config(con *console.Console, dialects session.Dialects, paths []string) view.Config {
	given := make([]view.Path, len(paths))
	for i, path := range paths {
		given[i] = view.Path{Shown: path, Real: con.Path(path)}
	}
	return view.Config{
		Paths:    given,
		Dialects: slices.Clone(dialects),
		Prices:   con.Prices(),
		Redactor: redact.New(redact.Config{Environ: con.Environ}),
		Key:      experimentcli.OwnKey(con),
	}
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
		return fmt.Errorf("%s: no such file or directory", filepath.Clean(path.Path))
	}
	return err
}

// mayBeTrace refuses a file that begins like no trace and like nothing compressed.
func mayBeTrace(con *console.Console, path string) error {
	file, err := os.Open(con.Path(path))
	if err != nil {
		return nil // the server says what is wrong with it
	}
	defer file.Close()
	first := make([]byte, 512)
	n, err := file.Read(first)
	first = bytes.TrimSpace(first[:max(n, 0)])
	if err != nil || len(first) == 0 || first[0] == '{' || first[0] == '[' || !utf8.Valid(first[:1]) ||
		bytes.HasPrefix(first, []byte("\x1f\x8b")) || bytes.HasPrefix(first, []byte("\x28\xb5")) {
		return nil
	}
	return console.Usagef("%s is neither a run directory nor a trace", path)
}

// openBrowser shows an address to the user; without a browser the printed line is all there is.
func openBrowser(ctx context.Context, con *console.Console, address string) {
	program := "xdg-open"
	if runtime.GOOS == "darwin" {
		program = "open"
	}
	command := exec.CommandContext(ctx, program, address)
	command.Env = con.Environ
	if err := command.Start(); err != nil {
		fmt.Fprintln(con.Stderr, "open this address in a browser")
		return
	}
	go func() { _ = command.Wait() }() // it ends by itself, or with the context
}
