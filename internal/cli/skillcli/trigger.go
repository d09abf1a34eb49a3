package skillcli

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/report/skilltest"
	"github.com/fit-eval/fit/internal/skill"
	"github.com/fit-eval/fit/internal/task"
)

// triggerTurns are the turns of a run: in the first the agent opens the skill or does something
// else, with the second it says what it opened.
const triggerTurns = "2"

func newTrigger(con *console.Console, registry *agent.Registry) *cobra.Command {
	opts := testOptions{}
	command := &cobra.Command{
		Use:   "trigger DIR",
		Short: "Measure whether agents open a skill when they should, and only then",
		Long: `Measure whether agents open a skill when they should, and only then. Each query of evals/queries.json, a list of
{"query": "…", "should_trigger": true}, is put to the agent several times, with the skill and those of --with in its
directory. A run ends as soon as it is decided: the agent opens the skill first, or begins without it; that costs one
or two model calls.

The queries are split by a hash of their text: change the description by the train part, choose by the validation part.
--against compares two versions of the description query by query.`,
		Example: fmt.Sprintf(`  fit skill trigger my-skill --agent %s
  fit skill trigger my-skill --with ../other-skill --against HEAD~1`, registry.Examples(1)...),
		Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			return runTrigger(command.Context(), con, registry, &opts, args[0], command.Flags())
		},
	}
	flags := command.Flags()
	opts.register(flags, "trigger")
	_ = flags.MarkHidden("max-turns")
	flags.StringVar(&opts.queries, "queries", "", "file of queries (default: evals/queries.json of the skill, or "+
		"another usual name)")
	return command
}

func runTrigger(ctx context.Context, con *console.Console, registry *agent.Registry, opts *testOptions, name string,
	flags *pflag.FlagSet,
) error {
	failOn, err := opts.checked(flags, name)
	if err != nil {
		return err
	}
	if !flags.Changed("max-turns") {
		if err := flags.Set("max-turns", triggerTurns); err != nil {
			return err
		}
	}
	test, err := openTest(con, registry, opts, name)
	if err != nil {
		return err
	}
	defer test.tidy()
	about, err := test.openQueries(ctx)
	if err != nil {
		return err
	}
	return test.each(func(id string) error {
		output, stopped := test.run(ctx, id)
		if output == "" {
			return stopped
		}
		if err := about.Write(output); err != nil {
			return err
		}
		answer, err := skilltest.ReadTriggered(context.WithoutCancel(ctx), output, test.reading())
		if err != nil {
			return cmp.Or(stopped, console.Exit(console.ExitIncomplete, err))
		}
		if err := test.print(answer, answer.Text, output); err != nil {
			return err
		}
		return cmp.Or(stopped, gate(answer.Skill, answer.Comparison, failOn))
	})
}

// openQueries reads the queries and makes the run directory.
func (t *skillTest) openQueries(ctx context.Context) (*skilltest.Trigger, error) {
	shown, text, err := t.queryFile()
	if err != nil {
		return nil, err
	}
	if t.queries, err = skill.ParseQueries(shown, text); err != nil {
		return nil, console.Exit(console.ExitUsage, err)
	}
	about := &skilltest.Trigger{Version: 1, Against: t.opts.against}
	if about.Digest, err = t.digest(); err != nil {
		return nil, err
	}
	sum := sha256.Sum256(append([]byte(about.Digest+"\x00"), text...))
	about.Digest = hex.EncodeToString(sum[:])
	err = t.place(func(dir string) bool {
		before, err := skilltest.ReadTrigger(dir)
		return err == nil && before.Same(about)
	})
	if err != nil {
		return nil, err
	}
	if err := t.stage(ctx); err != nil {
		return nil, err
	}
	about.Skill = t.skill.Name
	if t.family, err = task.QueryFamily(t.dir, t.skill.Name, t.queries); err != nil {
		return nil, err
	}
	for i, q := range t.queries {
		about.Queries = append(about.Queries, skilltest.Query{ID: t.family.Tasks[i].ID, Text: q.Text, Should: q.Should})
	}
	t.write = about.Write
	return about, nil
}

// queryFile reads the file of queries; shown is its name as the user knows it.
func (t *skillTest) queryFile() (shown string, text []byte, err error) {
	if t.opts.queries != "" {
		text, err = os.ReadFile(t.con.Path(t.opts.queries))
		if err != nil {
			err = console.Exit(console.ExitUsage, fmt.Errorf("--queries: %w", err))
		}
		return t.opts.queries, text, err
	}
	for _, name := range skill.QueryFiles {
		text, err = os.ReadFile(filepath.Join(t.dir, filepath.FromSlash(name)))
		if !errors.Is(err, fs.ErrNotExist) {
			return name, text, err
		}
	}
	return "", nil, console.Usagef(`%s has no queries: write %s, [{"query": "…", "should_trigger": true}, …], about `+
		"twenty, half of them near misses; or name a file with --queries", filepath.Base(t.dir), skill.QueryFiles[0])
}
