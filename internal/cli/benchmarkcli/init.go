package benchmarkcli

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fit-eval/fit/internal/cli/console"
)

// scaffold is a family with one task that passes lint. Its task is written in shell, so that it needs nothing but what every system has.
//
//go:embed all:scaffold
var scaffold embed.FS

func newInit(con *console.Console) *cobra.Command {
	return &cobra.Command{
		Use:     "init DIR",
		Short:   "Make a small family to start from; it passes lint",
		Example: `  fit-benchmark init my-family && fit-benchmark lint --family my-family`,
		Args:    cobra.ExactArgs(1),
		RunE:    func(_ *cobra.Command, args []string) error { return runInit(con, args[0]) },
	}
}

func runInit(con *console.Console, name string) error {
	dir := con.Path(name)
	if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
		return console.Usagef("%s is not empty; name a new directory", name)
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return console.Exit(console.ExitUsage, err)
	}
	err := fs.WalkDir(scaffold, "scaffold", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		target := filepath.Join(dir, filepath.FromSlash(strings.TrimPrefix(strings.TrimPrefix(path, "scaffold"), "/")))
		if entry.IsDir() {
			return os.MkdirAll(target, 0o755)
		}
		content, err := scaffold.ReadFile(path)
		if err != nil {
			return err
		}
		mode := os.FileMode(0o644)
		if strings.HasSuffix(path, ".sh") {
			mode = 0o755
		}
		return os.WriteFile(target, content, mode)
	})
	if err != nil {
		return fmt.Errorf("make family %s: %w", name, err)
	}
	fmt.Fprintf(con.Stderr, "%s is a family with one task; README.md in it says what is what\nnext: fit-benchmark lint --family %s\n", name, name)
	return nil
}
