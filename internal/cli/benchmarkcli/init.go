package benchmarkcli

import (
	"embed"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/report"
)

// scaffolds are small families that pass lint, one for each language's own runner. Files of the one
// in Go carry the suffix .txt here, so that they are not part of our own module.
//
//go:embed all:scaffold all:scaffold-go all:scaffold-node all:scaffold-python all:scaffold-dataset
var scaffolds embed.FS

func newInit(con *console.Console) *cobra.Command {
	runner := console.Choice{Value: "shell", Choices: []string{"shell", "node", "python", "go"}}
	dataset := false
	command := &cobra.Command{
		Use:   "init DIR",
		Short: "Create a small family to start from; it passes lint",
		Example: `  fit-benchmark init my-family && fit-benchmark lint --family my-family
  fit-benchmark init --runner python my-python-family
  fit-benchmark init --dataset my-questions`,
		Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			scaffold := "scaffold"
			switch {
			case dataset && command.Flags().Changed("runner"):
				return console.Usagef("--dataset starts from a file of samples, which needs no runner: leave out " +
					"--runner")
			case dataset:
				scaffold += "-dataset"
			case runner.Value != "shell":
				scaffold += "-" + runner.Value
			}
			return runInit(con, args[0], scaffold)
		},
	}
	command.Flags().Var(&runner, "runner", "test runner: shell hooks, node --test, unittest or go test")
	command.Flags().BoolVar(&dataset, "dataset", false, "start from a file of samples (CSV) in place of directories")
	return command
}

func runInit(con *console.Console, name, scaffold string) error {
	dir, err := con.NewDirectory(name)
	if err != nil {
		return err
	}
	err = fs.WalkDir(scaffolds, scaffold, func(path string, entry fs.DirEntry, err error) error {
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
	what := "a family of samples"
	if tasks, err := fs.ReadDir(scaffolds, scaffold+"/tasks"); err == nil {
		what = "a family with " + report.Count(len(tasks), "task")
	}
	fmt.Fprintf(con.Stderr, "%s is %s; its README.md explains the files\nnext: fit-benchmark lint --family %s\n", name,
		what, name)
	return nil
}
