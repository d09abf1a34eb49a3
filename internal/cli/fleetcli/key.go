package fleetcli

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/experiment/fleet"
)

// newKey makes, lists and revokes keys, in the directory of a hub.
func newKey(con *console.Console) *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "key",
		Short: "Make, list and revoke the keys of a fleet",
		Long: `Make, list and revoke the keys of a fleet, in the directory of its hub. A running hub notices within a second: it
writes the URL of a new key into a file beside the others, and closes the connections of a revoked one.`,
		Args: cobra.NoArgs,
	}
	cmd.PersistentFlags().StringVar(&dir, "dir", "", dirUsage)
	cmd.AddCommand(&cobra.Command{
		Use:     "add NAME ROLE",
		Short:   "Make a key: coordinator, worker or observer",
		Example: "  fit fleet key add build-7 worker",
		Args:    cobra.ExactArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			file, err := fleet.AddKey(hubDir(con, dir), args[0], args[1])
			if err != nil {
				return console.Exit(console.ExitUsage, err)
			}
			fmt.Fprintln(con.Stdout, file)
			return nil
		},
	}, &cobra.Command{
		Use:     "revoke NAME",
		Short:   "Remove a key, by its name or its public half",
		Example: "  fit fleet key revoke build-7",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := fleet.RevokeKey(hubDir(con, dir), args[0]); err != nil {
				return console.Exit(console.ExitUsage, err)
			}
			return nil
		},
	}, &cobra.Command{
		Use:     "list",
		Short:   "List the keys by their public halves",
		Example: "  fit fleet key list",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			members, err := fleet.Keys(hubDir(con, dir))
			if err != nil {
				return err
			}
			out := con.Table()
			for _, m := range members {
				key, err := m.Key()
				if err != nil {
					return err
				}
				fmt.Fprintf(out, "%s\t%s\t%s\n", m.Name, m.Role, key)
			}
			return out.Flush()
		},
	})
	return cmd
}

// newPermissions prints the roles for a server that fit does not start.
func newPermissions(con *console.Console) *cobra.Command {
	var dir, form string
	cmd := &cobra.Command{
		Use:   "permissions ADDRESS",
		Short: "Print the roles of a fleet for an existing NATS server",
		Long: `Print what coordinators, workers and observers may do on an existing NATS server: as a part of its configuration
file (conf), or as commands of its tool nsc. The keys are made in --dir as for a hub of fit, and their URLs, with the
ADDRESS of the server as host:port, are written there.`,
		Example: "  fit fleet permissions nats.example.com:4222 --for conf >>/etc/nats-server.conf",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if !slices.Contains([]string{"conf", "nsc"}, form) {
				return console.Usagef("--for %q: must be conf or nsc", form)
			}
			text, err := fleet.Permissions(hubDir(con, dir), args[0], form)
			if err != nil {
				return console.Exit(console.ExitUsage, err)
			}
			fmt.Fprint(con.Stdout, text)
			return nil
		},
	}
	cmd.Flags().StringVar(&form, "for", "conf", "`FORM`: conf or nsc")
	cmd.Flags().StringVar(&dir, "dir", "", dirUsage)
	return cmd
}
