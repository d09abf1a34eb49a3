package gateway

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// The values of Policy.Gateway.
const (
	On  = "on"
	Off = "off"
)

// Policy is what a person decides about model calls: whether they go through a gateway, what it
// does to them, what is kept of them, and what answers them. It is plain data that is handed on
// whole, from the flags of a command to the gateway. The zero value is the default.
type Policy struct {
	// Gateway says whether the calls of agents go through a gateway. Empty is On, for all agents
	// that can be pointed at it.
	Gateway string
	// DenyServerTools removes tools that run at the vendor, such as a search of the web, from every
	// request.
	DenyServerTools bool
	// Faults are deliberate failures; nil is none.
	Faults *Faults
	// Record is calls.RecordBodies, calls.RecordMeta or calls.RecordOff; empty is bodies.
	Record string
	// Replay is a record, or a run with records, that answers the calls; empty: the upstreams do.
	Replay     string
	ReplayMode string // empty is ReplayNearest
}

// OptionError reports an option of a policy that cannot be kept.
type OptionError struct {
	Option string // the name of the field
	Reason string
}

func (e *OptionError) Error() string { return e.Option + " " + e.Reason }

// Check refuses a policy that contradicts itself with an OptionError.
func (p Policy) Check() error {
	switch p.Gateway {
	case "", On:
		return nil
	case Off:
	default:
		return &OptionError{"Gateway", fmt.Sprintf("is %q; it must be on or off", p.Gateway)}
	}
	for _, needs := range []struct {
		option string
		asked  bool
	}{
		{"Faults", p.Faults != nil},
		{"DenyServerTools", p.DenyServerTools},
		{"Replay", p.Replay != ""},
	} {
		if needs.asked {
			return &OptionError{needs.option, "needs the gateway, and it is off"}
		}
	}
	return nil
}

// Offline reports whether no upstream is asked.
func (p Policy) Offline() bool { return p.Replay != "" && p.ReplayMode != ReplayLive }

// Text says what the policy does to calls, for people; empty if calls pass as they are.
func (p Policy) Text() string {
	var parts []string
	if p.Gateway == Off {
		parts = append(parts, "they do not go through it")
	}
	if p.DenyServerTools {
		parts = append(parts, "tools of the vendor are removed")
	}
	if p.Faults != nil {
		parts = append(parts, "faults are injected")
	}
	return strings.Join(parts, ", ")
}

// Digest identifies what the policy does to calls: runs under different policies cannot be
// compared. It is empty if calls pass as they are.
func (p Policy) Digest() string {
	switch {
	case p.Gateway == Off: // with nothing else, which Check sees to
		return Off
	case !p.DenyServerTools && p.Faults == nil:
		return ""
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "deny server tools: %v\nfaults: %s\n", p.DenyServerTools, p.Faults.Digest()))
	return hex.EncodeToString(sum[:8])
}
