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

// scaffolds are families with one task that pass lint: one in shell, which needs nothing but what
// every system has, and one in Go tests, which needs nothing but Go. Files of the latter carry the
// suffix .txt here, so that they are no part of our own module.
//
//go:embed all:scaffold all:scaffold-go
var scaffolds embed.FS

func newInit(con *console.Console) *cobra.Command {
	language := console.Choice{Value: "shell", Choices: []string{"shell", "go"}}
	command := &cobra.Command{
		Use:   "init DIR",
		Short: "Make a small family to start from; it passes lint",
		Example: `  fit-benchmark init my-family && fit-benchmark lint --family my-family
  fit-benchmark init --language go my-go-family`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			return runInit(con, args[0], map[string]string{"shell": "scaffold", "go": "scaffold-go"}[language.Value])
		},
	}
	command.Flags().Var(&language, "language", "what its task and checks are written in")
	return command
}

func runInit(con *console.Console, name, scaffold string) error {
	dir := con.Path(name)
	if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
		return console.Usagef("%s is not empty; name a new directory", name)
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return console.Exit(console.ExitUsage, err)
	}
	err := fs.WalkDir(scaffolds, scaffold, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		inside := strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(path, scaffold), "/"), ".txt")
		target := filepath.Join(dir, filepath.FromSlash(inside))
		if entry.IsDir() {
			return os.MkdirAll(target, 0o755)
		}
		content, err := scaffolds.ReadFile(path)
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
	fmt.Fprintf(con.Stderr, "%s is a family with one task; README.md in it says what is what\nnext: fit-benchmark "+
		"lint --family %s\n", name, name)
	return nil
}
