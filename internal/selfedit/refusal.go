package selfedit

import "fmt"

// The names of the safeguards, as refusals start with them.
const (
	settingsAllow = "settings-allow"
	branchScope   = "branch-scope"
)

// Refusal says that a safeguard refused an edit. Nothing was changed, or everything was put back.
type Refusal struct {
	Safeguard string
	Reason    string
}

func (r *Refusal) Error() string { return r.Safeguard + ": " + r.Reason }

func notAllowed(format string, args ...any) error {
	return &Refusal{Safeguard: settingsAllow, Reason: fmt.Sprintf(format, args...)}
}

func outOfScope(format string, args ...any) error {
	return &Refusal{Safeguard: branchScope, Reason: fmt.Sprintf(format, args...)}
}
