package versuscli

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/report/versus"
)

// beyond are the types of a head to head that package versus does not know.
var beyond = map[string]reflect.Type{"RawAgentOutput": reflect.TypeFor[agent.RawAgentOutput]()}

func newSchema(con *console.Console, registry *agent.Registry) *cobra.Command {
	names := versus.SchemaNames(beyond)
	return &cobra.Command{
		Use:   "schema TYPE",
		Short: "Print the JSON Schema of a type of the reports",
		Long: "Print the JSON Schema of a type, made from the Go struct that writes it. The types are\n" +
			strings.Join(names, ", ") + ".",
		Example:   "  fit versus schema EvalReport",
		Args:      cobra.ExactArgs(1),
		ValidArgs: names,
		RunE: func(_ *cobra.Command, args []string) error {
			schema, err := versus.Schema(args[0], beyond, registry.IDs()...)
			if err != nil {
				return console.Exit(console.ExitUsage, err)
			}
			_, err = fmt.Fprintf(con.Stdout, "%s\n", schema)
			return err
		},
	}
}
