package fleetcli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/cli/experimentcli"
	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/internal/experiment/fleet"
	"github.com/fit-eval/fit/internal/jsonenc"
)

// onHub does something with the hub that a flag or the environment names.
func onHub(ctx context.Context, con *console.Console, at experimentcli.Fleets, role string,
	do func(context.Context, *fleet.Hub) error,
) error {
	hub, err := at.Dial(ctx, con, role)
	if err != nil {
		return err
	}
	defer hub.Close()
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	return do(ctx, hub)
}

func asCoordinator(ctx context.Context, con *console.Console, at experimentcli.Fleets,
	do func(context.Context, *fleet.Hub) error,
) error {
	return onHub(ctx, con, at, fleet.RoleCoordinator, do)
}

// hubFlags adds the flags that name a hub.
func hubFlags(cmd *cobra.Command, at *experimentcli.Fleets) {
	cmd.Flags().StringVar(&at.URL, "fleet", "", experimentcli.HubUsage)
	cmd.Flags().BoolVar(&at.Insecure, "insecure", false, experimentcli.InsecureUsage)
}

func newStatus(con *console.Console) *cobra.Command {
	var format console.Format
	var at experimentcli.Fleets
	cmd := &cobra.Command{
		Use:     "status [FILE]",
		Short:   "Show workers, experiments and caps of a fleet",
		Example: "  fit fleet status hub/observer.url",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			at.URL = cmp.Or(append(args, at.URL)...)
			return onHub(cmd.Context(), con, at, fleet.RoleObserver, func(ctx context.Context, hub *fleet.Hub) error {
				status, err := hub.Status(ctx)
				if err != nil {
					return err
				}
				if format.JSON() {
					return jsonenc.WriteIndented(con.Stdout, status)
				}
				return showStatus(con, status)
			})
		},
	}
	hubFlags(cmd, &at)
	format.Register(cmd.Flags(), "output format")
	return cmd
}

// showStatus prints the status for people. Names come from other machines.
func showStatus(con *console.Console, status *fleet.Status) error {
	out := con.Table()
	fmt.Fprintln(out, "WORKER\tBUSY\tFIT\tISOLATION\tLABELS\tAGENTS\tKEY\tSTATE")
	for _, w := range status.Workers {
		var agents []string
		for _, id := range slices.Sorted(maps.Keys(w.Agents)) {
			agents = append(agents, strings.TrimSpace(id+" "+w.Agents[id]))
		}
		state := "ready"
		switch {
		case w.Protocol != fleet.Protocol:
			state = fmt.Sprintf("protocol %d, not %d", w.Protocol, fleet.Protocol)
		case w.Draining:
			state = "draining"
		case w.Trouble != "":
			state = w.Trouble
		}
		writeRow(out, w.Name, fmt.Sprintf("%d/%d", w.Busy, w.Slots), w.Fit,
			strings.Join(slices.Concat(w.Isolation, w.Engines), ","), cmp.Or(strings.Join(w.Labels, ","), "-"),
			cmp.Or(strings.Join(agents, ", "), "-"), w.Key, state)
	}
	fmt.Fprintln(out, "\nEXPERIMENT\tARMS\tPROVIDER\tCAP\tRUNNING\tWAITING\tDIRECTORY\tSTATE")
	for _, p := range status.Pools {
		limit := "-"
		if n, bounded := status.Caps[p.Provider]; bounded {
			limit = strconv.Itoa(n)
		}
		state := "ready"
		if p.Left {
			state = "no coordinator: rerun its command to continue"
		}
		writeRow(out, p.Title, strings.Join(p.Arms, ","), p.Provider, limit, strconv.Itoa(p.Running),
			strconv.Itoa(p.Waiting), p.Dir, state)
	}
	return out.Flush()
}

func writeRow(out io.Writer, fields ...string) {
	for i := range fields {
		fields[i] = display.CutRunes(display.Line(fields[i]), 80)
	}
	fmt.Fprintln(out, strings.Join(fields, "\t"))
}

func newDrain(con *console.Console) *cobra.Command {
	var at experimentcli.Fleets
	cmd := &cobra.Command{
		Use:     "drain WORKER",
		Short:   "Drain a worker: let it finish its cells and leave",
		Example: "  fit fleet drain build-7",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return asCoordinator(cmd.Context(), con, at, func(ctx context.Context, hub *fleet.Hub) error {
				if err := hub.Drain(ctx, args[0]); err != nil {
					return console.Exit(console.ExitUsage, err)
				}
				fmt.Fprintf(con.Stderr, "%s takes no more cells and leaves when those it has are done\n", args[0])
				return nil
			})
		},
	}
	hubFlags(cmd, &at)
	return cmd
}

func newCap(con *console.Console) *cobra.Command {
	var at experimentcli.Fleets
	cmd := &cobra.Command{
		Use:   "cap PROVIDER N",
		Short: "Limit the cells of a provider that run concurrently, over the whole fleet",
		Long: `Limit the cells of a provider that run concurrently, over the whole fleet; off removes the limit. A change
takes effect within 2 seconds, for running experiments too; running cells finish. fit fleet status lists the
providers.`,
		Example: "  fit fleet cap anthropic 40\n  fit fleet cap anthropic off",
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			n, err := strconv.Atoi(args[1])
			switch {
			case strings.TrimSpace(args[0]) == "":
				return console.Usagef("cap: which provider? fit fleet status lists them")
			case args[1] == "off":
				n = -1
			case err != nil || n < 1:
				return console.Usagef("cap %q: must be a whole number of at least 1, or off", args[1])
			}
			return asCoordinator(cmd.Context(), con, at, func(ctx context.Context, hub *fleet.Hub) error {
				return hub.SetCap(ctx, args[0], n)
			})
		},
	}
	hubFlags(cmd, &at)
	return cmd
}
