package sessioncli

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/evidence"
	"github.com/fit-eval/fit/internal/jsonenc"
	"github.com/fit-eval/fit/session"
)

func newPrompts(out *output) *cobra.Command {
	var lane string
	var format console.Format
	command := &cobra.Command{
		Use:   "prompts A [B]",
		Short: "Show the system prompts and tool definitions of a session, or how those of two sessions differ",
		Long: "Show the model's input besides the conversation: system prompts and tool definitions, and how they " +
			"change over the turns.\nWith two files, show the difference by label and line.\n\nPrompts come from " +
			"the trace, and from the record of model calls (.calls) beside it.",
		Example: `  fit session prompts results/runs/fix/before/0/agent.ndjson.zst
  fit session prompts before.ndjson after.ndjson`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 1 || len(args) > 2 {
				return console.Usagef("name one file, or two to compare")
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error { return runPrompts(out, args, lane, format.JSON()) },
	}
	command.Flags().StringVar(&lane, "lane", "", "participant to show, if the trace has several (default: the first)")
	format.Register(command.Flags(), "output format")
	return command
}

func runPrompts(out *output, paths []string, lane string, asJSON bool) error {
	var all [][]session.SystemPromptInjection
	for _, path := range paths {
		found, err := out.promptsOf(path, lane)
		if err != nil {
			return err
		}
		all = append(all, found)
	}
	return out.print(out.con.Stdout, func(w io.Writer) error {
		switch {
		case len(all) == 1 && asJSON:
			return jsonenc.WriteIndented(w, all[0])
		case len(all) == 1:
			return showPrompts(w, all[0])
		}
		compared := evidence.ComparePrompts(evidence.Prompts(all[0]), evidence.Prompts(all[1]))
		if asJSON {
			return jsonenc.WriteIndented(w, compared)
		}
		return showDifference(w, &compared)
	})
}

// promptsOf reads the prompts of one participant.
func (o *output) promptsOf(path, lane string) ([]session.SystemPromptInjection, error) {
	sessions, err := o.load(path)
	if err != nil {
		return nil, err
	}
	at := 0
	if lane != "" {
		at = slices.IndexFunc(sessions, func(s *session.EnrichedSession) bool { return s.Lane == lane })
	}
	if at < 0 {
		return nil, console.Usagef("%s has no participant %q", path, lane)
	}
	clean, err := o.cleaned(sessions[at])
	if err != nil {
		return nil, err
	}
	if len(clean.SystemPrompts) == 0 {
		return nil, console.Exitf(console.ExitNegative,
			"%s holds no prompts; run the agent through the gateway with --record bodies", path)
	}
	return clean.SystemPrompts, nil
}

func showPrompts(w io.Writer, prompts []session.SystemPromptInjection) error {
	for i, p := range prompts {
		between := "\n"
		if i == 0 {
			between = ""
		}
		what := fmt.Sprintf("%d characters", utf8.RuneCountInString(p.Content))
		if p.Content == "" && slices.ContainsFunc(prompts[:i], func(o session.SystemPromptInjection) bool {
			return o.Label == p.Label
		}) {
			what = "left out from here on"
		}
		_, err := fmt.Fprintf(w, "%sturn %d  %s  %s  %s\n", between, p.TurnIndex, p.Source, p.Label, what)
		if err != nil {
			return err
		}
		for line := range strings.Lines(p.Content) {
			if _, err := fmt.Fprintf(w, "    %s\n", strings.TrimRight(line, "\r\n")); err != nil {
				return err
			}
		}
	}
	return nil
}

func showDifference(w io.Writer, compared *evidence.PromptComparison) error {
	for _, d := range compared.Labels {
		_, err := fmt.Fprintf(w, "%s  %s", d.Label, d.Status)
		if err == nil && d.Added+d.Removed > 0 {
			_, err = fmt.Fprintf(w, "  +%d -%d lines", d.Added, d.Removed)
		}
		if err == nil {
			_, err = fmt.Fprintln(w)
		}
		for _, line := range d.Lines {
			if err == nil {
				_, err = fmt.Fprintf(w, "    %s\n", line)
			}
		}
		if more := d.Added + d.Removed - len(d.Lines); err == nil && more > 0 {
			_, err = fmt.Fprintf(w, "    … and %d lines more\n", more)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
