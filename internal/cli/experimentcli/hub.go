package experimentcli

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"unsafe"

	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/experiment/fleet"
)

// fleetVariable names the environment variable that holds the URL of a fleet.
const fleetVariable = "FIT_FLEET"

// fromEnvironment names that variable where a command runs elsewhere only if it is told to.
const fromEnvironment = "env"

// Fleets says which hub a command connects to.
type Fleets struct {
	// URL is a file with the URL of a hub, - for standard input, or a URL without a token. A URL
	// with one is read as well, as in earlier versions.
	URL string
	// Insecure accepts a server that asks nobody who they are.
	Insecure bool
}

// The words of help.
const (
	HubUsage = "`FILE` that has the URL of the fleet, as fit fleet serve writes it, or - for standard input; " +
		"or nats://… of an existing cluster (also FIT_FLEET)"
	InsecureUsage = "accept an existing NATS server without authentication, or without TLS off the loopback interface"
)

// Dial connects to the hub.
func (f Fleets) Dial(ctx context.Context, con *console.Console, role string) (*fleet.Hub, error) {
	url, err := f.resolve(con)
	if err != nil {
		return nil, err
	}
	hub, err := fleet.Dial(ctx, fleet.Dialing{
		URL:      url,
		Name:     "fit " + role + " " + con.Version,
		Role:     role,
		Insecure: f.Insecure,
	})
	if err != nil {
		return nil, console.Exit(console.ExitIncomplete, err)
	}
	return hub, nil
}

// resolve returns the URL of the hub.
func (f Fleets) resolve(con *console.Console) (string, error) {
	given := strings.Clone(f.URL) // the command line is overwritten below
	if given == "" || given == fromEnvironment {
		given = con.Getenv(fleetVariable)
	}
	switch {
	case given == "":
		return "", console.Usagef("which fleet? name the file that fit fleet serve writes, or set %s", fleetVariable)
	case given == "-":
		return firstLine(con.Stdin)
	case !strings.Contains(given, "://"):
		file, err := os.Open(con.Path(given))
		if err != nil {
			return "", console.Exit(console.ExitUsage, fmt.Errorf("the fleet's URL: %w", err))
		}
		defer file.Close()
		url, err := firstLine(file)
		if err == nil && !strings.Contains(url, "://") {
			err = console.Usagef("%s holds no URL of a fleet: name a file that fit fleet serve or fit fleet key add "+
				"wrote", given)
		}
		return url, err
	case hideArgument(given):
		fmt.Fprintf(con.Stderr, "warning: other users of this machine could read the token on the command line; name "+
			"the file that fit fleet serve writes, or set %s\n", fleetVariable)
	}
	return given, nil
}

// firstLine reads a URL.
func firstLine(from io.Reader) (string, error) {
	line, err := bufio.NewReader(io.LimitReader(from, 4<<10)).ReadString('\n')
	if line = strings.TrimSpace(line); line == "" {
		return "", console.Usagef("the fleet's URL is empty: %v", err)
	}
	return line, nil
}

// hideArgument overwrites the token of a URL in the command line of this process, which other users
// can read. It reports whether there was one.
func hideArgument(given string) bool {
	secret, _, has := strings.Cut(given[strings.Index(given, "://")+3:], "@")
	if !has || secret == "" {
		return false
	}
	found := false
	for _, argument := range os.Args {
		at := strings.Index(argument, secret)
		if at < 0 {
			continue
		}
		found = true
		shown := unsafe.Slice(unsafe.StringData(argument), len(argument))
		copy(shown[at:], strings.Repeat("x", len(secret)))
	}
	return found
}
