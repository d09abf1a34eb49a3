package benchmarkcli

import (
	"fmt"
	"strings"
	"time"

	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/cli/experimentcli"
	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/internal/jsonenc"
	"github.com/fit-eval/fit/internal/notes"
)

// listNotes prints what people wrote about the cells of a run directory.
func listNotes(con *console.Console, dir string, asJSON bool) error {
	found, err := notes.Read(con.Path(dir))
	if err != nil {
		return console.Exit(console.ExitUsage, fmt.Errorf("the notes of %s: %w", dir, err))
	}
	if asJSON {
		return jsonenc.WriteIndented(con.Stdout, append([]notes.Note{}, found...))
	}
	key := experimentcli.OwnKey(con)
	for i := range found {
		n := &found[i]
		about := fmt.Sprintf("%s/%s/%d", n.Task, n.Arm, n.Run)
		if n.View != "" {
			about = "view ?" + n.View
		}
		tags := ""
		for _, tag := range n.Tags {
			tags += " #" + tag
		}
		fmt.Fprintf(con.Stdout, "%s · %s · %s (%s)%s\n", display.Name(about), display.Name(n.By),
			time.UnixMilli(n.AtMs).UTC().Format(time.DateTime), seals[notes.SealOf(n, key)], display.Name(tags))
		for line := range strings.Lines(display.Text(n.Text)) {
			fmt.Fprintf(con.Stdout, "  %s\n", strings.TrimRight(line, "\n"))
		}
	}
	return nil
}

// seals say whose a note is.
var seals = map[notes.Seal]string{
	notes.Own:      "signed by you",
	notes.Foreign:  "signed by another key",
	notes.Unsigned: "not signed",
	notes.Altered:  "changed after it was signed",
}
