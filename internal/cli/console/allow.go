package console

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// The exceptions that can be allowed.
const (
	AllowSame       = "same"       // arms that do not differ: a comparison of an agent with itself
	AllowDrift      = "drift"      // models or programs that changed during the experiment
	AllowHistorical = "historical" // arms that did not run side by side
	AllowUnsigned   = "unsigned"   // results whose signature is gone
)

// exceptions are all of them, in the order in which they are shown.
var exceptions = []string{AllowSame, AllowDrift, AllowHistorical, AllowUnsigned}

// allowMeans says what the exceptions mean.
var allowMeans = map[string]string{
	AllowSame:       "arms that do not differ (A/A)",
	AllowDrift:      "a model or a program that changed during the experiment",
	AllowHistorical: "arms that did not run side by side",
	AllowUnsigned:   "results whose signature is gone",
}

// Exceptions are what --allow takes.
func Exceptions() []string { return slices.Clone(exceptions) }

// Allow is the flag --allow: the set of exceptions that a person makes to what fit refuses or
// withholds. Giving it again adds to the set.
type Allow struct{ allowed []string }

// Register adds the flag to a command on which these exceptions have an effect.
func (a *Allow) Register(flags *pflag.FlagSet, effective ...string) {
	var shown []string
	for _, exception := range effective {
		shown = append(shown, exception+": "+allowMeans[exception])
	}
	flags.Var(a, "allow", "accept what fit would otherwise reject or withhold, separated by commas; "+
		strings.Join(shown, "; "))
}

// Has reports whether an exception is allowed.
func (a *Allow) Has(exception string) bool { return slices.Contains(a.allowed, exception) }

// List returns the exceptions that are allowed.
func (a *Allow) List() []string { return slices.Clone(a.allowed) }

// Set implements pflag.Value.
func (a *Allow) Set(text string) error {
	for _, exception := range List(text) {
		switch {
		case !slices.Contains(exceptions, exception):
			return fmt.Errorf("%q: must be some of %s", exception, strings.Join(exceptions, ", "))
		case !a.Has(exception):
			a.allowed = append(a.allowed, exception)
		}
	}
	return nil
}

func (a *Allow) String() string {
	if a == nil {
		return ""
	}
	return strings.Join(a.allowed, ",")
}

// Type implements pflag.Value.
func (a *Allow) Type() string { return "exceptions" }
