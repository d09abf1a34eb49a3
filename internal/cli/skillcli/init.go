package skillcli

import (
	"bytes"
	"embed"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/skill"
)

// scaffold is a small skill with test cases, queries, and a script for the scripted model.
//
//go:embed all:scaffold
var scaffold embed.FS

func newInit(con *console.Console) *cobra.Command {
	return &cobra.Command{
		Use:   "init DIR",
		Short: "Create a small skill with test cases to start from; it passes lint",
		Long: `Create a small skill with test cases (evals/evals.json), trigger queries (evals/queries.json), and a script
for the scripted model (evals/model.json), so that its test runs without a key.`,
		Example: `  fit skill init my-skill
  fit skill lint my-skill`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error { return runInit(con, args[0]) },
	}
}

func runInit(con *console.Console, name string) error {
	dir, err := con.NewDirectory(name)
	if err != nil {
		return err
	}
	base := filepath.Base(dir)
	if !skill.ValidName(base) {
		return console.Usagef("%s: the directory of a skill has its name: a-z, 0-9 and single dashes inside, at most "+
			"64 characters", base)
	}
	err = fs.WalkDir(scaffold, "scaffold", func(at string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel("scaffold", at)
		if err != nil {
			return err
		}
		target := filepath.Join(dir, rel)
		if e.IsDir() {
			return os.MkdirAll(target, 0o755)
		}
		content, err := scaffold.ReadFile(at)
		if err != nil {
			return err
		}
		return os.WriteFile(target, bytes.ReplaceAll(content, []byte("NAME"), []byte(base)), 0o644)
	})
	if err != nil {
		return fmt.Errorf("make the skill %s: %w", name, err)
	}
	fmt.Fprintf(con.Stderr, `%[1]s is a skill with 13 test cases and 10 queries; now:
  fit model serve --script %[1]s/evals/model.json --addr 127.0.0.1:8095 &
  fit skill test %[1]s --agent builtin --model claude-sonnet-4-5 --model-url http://127.0.0.1:8095/c/{cell}
or, with your agent and its key:
  fit skill test %[1]s --agent AGENT
`, name)
	return nil
}
