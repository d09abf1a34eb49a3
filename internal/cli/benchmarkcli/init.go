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
	"github.com/fit-eval/fit/report"
)

// scaffolds are small families that pass lint, one for each language's own runner. Files of the one
// in Go carry the suffix .txt here, so that they are not part of our own module.
//
//go:embed all:scaffold all:scaffold-go all:scaffold-node all:scaffold-python
var scaffolds embed.FS

func newInit(con *console.Console) *cobra.Command {
	runner := console.Choice{Value: "shell", Choices: []string{"shell", "node", "python", "go"}}
	command := &cobra.Command{
		Use:   "init DIR",
		Short: "Create a small family to start from; it passes lint",
		Example: `  fit-benchmark init my-family && fit-benchmark lint --family my-family
  fit-benchmark init --runner python my-python-family`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			scaffold := "scaffold"
			if runner.Value != "shell" {
				scaffold += "-" + runner.Value
			}
			return runInit(con, args[0], scaffold)
		},
	}
	command.Flags().Var(&runner, "runner", "what runs its checks: shell hooks, node --test, unittest or go test")
	command.Flags().Var(&runner, "language", "older name of --runner")
	command.Flags().Lookup("language").Hidden = true
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
	tasks, err := fs.ReadDir(scaffolds, scaffold+"/tasks")
	if err != nil {
		return err
	}
	fmt.Fprintf(con.Stderr, "%s is a family with %s; README.md in it says what is what\nnext: fit-benchmark lint "+
		"--family %s\n", name, report.Count(len(tasks), "task"), name)
	return nil
}
