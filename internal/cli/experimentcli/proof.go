package experimentcli

import (
	"github.com/spf13/pflag"

	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/report"
)

// Proof are the flags about what a claim rests on.
type Proof struct {
	Allow console.Allow
	// RequireDelivery refuses arms of which nobody can know whether their models are given what
	// they bring.
	RequireDelivery bool
}

// Register adds the flags to a command on which these exceptions have an effect.
func (p *Proof) Register(flags *pflag.FlagSet, exceptions ...string) {
	flags.BoolVar(&p.RequireDelivery, "require-delivery", false,
		"exit 2 unless delivery is proven: every run was given what its arm and the family bring")
	p.Allow.Register(flags, exceptions...)
}

// Check refuses results of which it is not proven that the models were given everything, where the
// user asks for proof. arm may be empty.
func (p *Proof) Check(arm string, treatment *report.Treatment) error {
	why := treatment.Undelivered()
	switch {
	case !p.RequireDelivery || why == "":
		return nil
	case arm != "":
		return console.Usagef("--require-delivery: %s: %s", arm, why)
	}
	return console.Usagef("--require-delivery: %s", why)
}
