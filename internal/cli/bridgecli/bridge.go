// Package bridgecli is the command tree of fit bridge: threads in which people follow discussions
// of agents.
package bridgecli

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fit-eval/fit/internal/atomicfile"
	"github.com/fit-eval/fit/internal/bridge/server"
	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/session"
)

// New returns the command fit bridge.
func New(con *console.Console, dialects session.Dialects) *cobra.Command {
	command := &cobra.Command{
		Use:   "bridge",
		Short: "Serve threads in which people follow discussions of agents",
		Args:  cobra.NoArgs,
	}
	command.AddCommand(newServe(con, dialects), newInvite(con), newPost(con), newRead(con))
	return command
}

// ownerFile holds the address with which the owner of a bridge reaches it.
const ownerFile = "owner.url"

const dirUsage = "directory of the threads (default: fit/bridge in the user's state directory)"

// directory is where a bridge keeps its threads.
func directory(con *console.Console, dir string) (string, error) {
	if dir != "" {
		return filepath.Abs(con.Path(dir))
	}
	if state := con.Getenv("XDG_STATE_HOME"); state != "" {
		return filepath.Join(state, "fit", "bridge"), nil
	}
	home := con.Getenv("HOME")
	if home == "" {
		return "", console.Usagef("no directory for the threads: set --dir")
	}
	return filepath.Join(home, ".local", "state", "fit", "bridge"), nil
}

// personURL is the address with which a person reaches a bridge. It holds the person's token.
func personURL(address, token string) string { return address + "/?token=" + url.QueryEscape(token) }

// readURL reads the address of a person, from a file or as it is.
func readURL(con *console.Console, at string) (address, token string, err error) {
	text := at
	if !strings.Contains(at, "://") {
		data, err := os.ReadFile(con.Path(at))
		if err != nil {
			return "", "", console.Usagef("no bridge: start fit bridge serve, or name one with --at: %w", err)
		}
		text = string(data)
	}
	parsed, err := url.Parse(strings.TrimSpace(text))
	if err != nil || parsed.Host == "" || parsed.Scheme != "http" && parsed.Scheme != "https" ||
		parsed.Query().Get("token") == "" {
		return "", "", console.Usagef("--at must be an address that fit bridge serve or invite printed, or a file " +
			"that has it")
	}
	return parsed.Scheme + "://" + parsed.Host, parsed.Query().Get("token"), nil
}

// owner returns the token of the owner, who is invited when the bridge is served the first time,
// and writes the address down.
func owner(con *console.Console, dir, address string) (string, error) {
	file := filepath.Join(dir, ownerFile)
	_, token, err := readURL(con, file)
	if err != nil {
		name := con.Getenv("USER")
		if name == "" {
			name = "owner"
		}
		if token, err = server.Invite(dir, defaultTenant, name); err != nil {
			return "", err
		}
	}
	return token, atomicfile.WriteSynced(file, 0o600, []byte(personURL(address, token)+"\n"))
}

const defaultTenant = "default"

// notTaken refuses the names under which others are shown.
func notTaken(name string) error {
	switch lower := strings.ToLower(name); {
	case strings.HasPrefix(name, "@"):
		return console.Usagef("names that begin with @ are those of GitHub")
	case strings.HasPrefix(name, "-"), lower == "lead", lower == "bridge":
		return console.Usagef("agents and the bridge write under that name")
	}
	return nil
}

func newInvite(con *console.Console) *cobra.Command {
	var dir, tenant string
	command := &cobra.Command{
		Use:   "invite NAME",
		Short: "Print an address with which a person reaches a bridge",
		Long: `Print an address with which a person reads and posts in the threads of a bridge on this machine, under
the given name. It holds a token, which is printed once and kept nowhere. A tenant has threads of its own, which people
of others do not see.`,
		Example: `  fit bridge invite Eve
  fit bridge invite Bob --tenant docs-team`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			name := strings.TrimSpace(args[0])
			if name == "" || len(name) > 100 || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' }) {
				return console.Usagef("the name must have 1 to 100 characters on one line")
			}
			if err := notTaken(name); err != nil {
				return err
			}
			at, err := directory(con, dir)
			if err != nil {
				return err
			}
			address, _, err := readURL(con, filepath.Join(at, ownerFile))
			if err != nil {
				return err
			}
			token, err := server.Invite(at, tenant, name)
			if err != nil {
				return console.Exit(console.ExitUsage, err)
			}
			fmt.Fprintln(con.Stdout, personURL(address, token))
			return nil
		},
	}
	command.Flags().StringVar(&dir, "dir", "", dirUsage)
	command.Flags().StringVar(&tenant, "tenant", defaultTenant, "whose threads the person sees")
	return command
}
