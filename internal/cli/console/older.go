package console

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// olderNames are the names that flags had before the same idea got the same name on every command.
var olderNames = map[string]string{
	"agent-model":          "model",
	"budget-usd":           "max-cost-usd",
	"judge-budget-usd":     "judge-max-cost-usd",
	"judge-parallel":       "judge-concurrency",
	"language":             "runner",
	"out":                  "output",
	"parallel":             "concurrency",
	"sandbox":              "isolation",
	"session-max-cost-usd": "max-cost-usd",
	"session-max-tokens":   "max-tokens",
	"session-timeout":      "timeout",
}

// AcceptOlderNames lets the flags of a tree of commands be given by the names that they had. Help
// shows only the name of today.
func AcceptOlderNames(root *cobra.Command) {
	root.SetGlobalNormalizationFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if now, older := olderNames[name]; older {
			name = now
		}
		return pflag.NormalizedName(name)
	})
}
