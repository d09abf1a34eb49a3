package gateway

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/fit-eval/fit/internal/document"
)

// Faults are deliberate failures of model calls. What happens to a call depends on the plan, its
// seed, the key (task and run, never the arm) and the number of the call, so every arm meets the
// same faults. Nil Faults are none.
type Faults struct {
	plan   faultPlan
	digest string
}

// Digest identifies the plan: experiments with different plans are different. It is empty if there
// is none.
func (f *Faults) Digest() string {
	if f == nil {
		return ""
	}
	return f.digest
}

// The kinds of faults.
const (
	faultRateLimit     = "rate-limit"     // 429 instead of an answer
	faultServerError   = "server-error"   // 5xx instead of an answer
	faultCutStream     = "cut-stream"     // the connection breaks in the middle of the answer
	faultSlowTokens    = "slow-tokens"    // every event of the answer comes late
	faultTruncatedJSON = "truncated-json" // a JSON text of the answer is cut off
	faultWrongUsage    = "wrong-usage"    // the answer reports more or fewer tokens than were used
)

// faultPlan is plan.yaml.
type faultPlan struct {
	Seed   uint64      `yaml:"seed" doc:"what the draws start from; another seed is other trouble"`
	Faults []faultRule `yaml:"faults" doc:"what goes wrong; of several that meet one call, the first happens" required:"true"`
}

// faultRule is one kind of fault and how often it happens.
type faultRule struct {
	Kind       string  `yaml:"kind" doc:"what goes wrong" enum:"rate-limit,server-error,cut-stream,slow-tokens,truncated-json,wrong-usage" required:"true"`
	Chance     float64 `yaml:"chance" doc:"share of the calls that it begins with, from 0 to 1" min:"0" max:"1" required:"true"`
	Burst      int     `yaml:"burst" doc:"calls in a row that fail; rate-limit and server-error only" min:"1" max:"100"`
	RetryAfter int     `yaml:"retryAfterSeconds" doc:"what the answer asks to wait; rate-limit and server-error only" min:"0" max:"600"`
	Status     int     `yaml:"status" doc:"HTTP status; server-error only, default 500" min:"500" max:"599"`
	After      int     `yaml:"afterEvents" doc:"events that pass before it happens; cut-stream and truncated-json only, default 2" min:"0"`
	DelayMs    int     `yaml:"delayMs" doc:"how late every event comes; slow-tokens only, default 100" min:"1" max:"60000"`
	Factor     float64 `yaml:"factor" doc:"what reported tokens are multiplied by; wrong-usage only, default 10" min:"0" max:"1000000"`
}

// Fault is the fault of one call. The zero Fault is nothing.
type Fault struct {
	Kind       string
	Status     int           // of the answer that replaces the provider's
	RetryAfter time.Duration // that this answer asks for
	After      int           // events that pass before it happens
	Delay      time.Duration
	Factor     float64
}

// LoadFaults reads a plan. Mistakes are reported with file, line and column.
func LoadFaults(path string) (*Faults, error) {
	var plan faultPlan
	doc, err := document.Load("fault plan", path, &plan)
	if err != nil {
		return nil, err
	}
	for i, rule := range plan.Faults {
		if field, kinds := rule.misplaced(); field != "" {
			return nil, doc.ErrorAt([]string{"faults", strconv.Itoa(i), field},
				"%s does not apply to %s; it is for %s", field, rule.Kind, kinds)
		}
	}
	if len(plan.Faults) == 0 {
		return nil, doc.ErrorAt([]string{"faults"}, "the plan has no faults; leave out --faults instead")
	}
	return &Faults{plan, plan.digest()}, nil
}

func (p faultPlan) digest() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%+v", p))
	return hex.EncodeToString(sum[:8])
}

// MarshalJSON writes the plan, for a gateway on another machine.
func (f *Faults) MarshalJSON() ([]byte, error) { return json.Marshal(f.plan) }

// UnmarshalJSON reads what MarshalJSON wrote.
func (f *Faults) UnmarshalJSON(data []byte) error {
	f.plan = faultPlan{}
	err := json.Unmarshal(data, &f.plan)
	f.digest = f.plan.digest()
	return err
}

// misplaced returns a field of a rule that does not apply to its kind, and the kinds that it is
// for.
func (r faultRule) misplaced() (field, kinds string) {
	answered := r.Kind == faultRateLimit || r.Kind == faultServerError
	broken := r.Kind == faultCutStream || r.Kind == faultTruncatedJSON
	for _, option := range []struct {
		field   string
		set, ok bool
		kinds   string
	}{
		{"burst", r.Burst > 0, answered, faultRateLimit + " and " + faultServerError},
		{"retryAfterSeconds", r.RetryAfter > 0, answered, faultRateLimit + " and " + faultServerError},
		{"status", r.Status > 0, r.Kind == faultServerError, faultServerError},
		{"afterEvents", r.After > 0, broken, faultCutStream + " and " + faultTruncatedJSON},
		{"delayMs", r.DelayMs > 0, r.Kind == faultSlowTokens, faultSlowTokens},
		{"factor", r.Factor > 0, r.Kind == faultWrongUsage, faultWrongUsage},
	} {
		if option.set && !option.ok {
			return option.field, option.kinds
		}
	}
	return "", ""
}

// defaults of a rule.
const (
	defaultFaultEvents = 2
	defaultFaultDelay  = 100
	defaultFaultFactor = 10
)

// Draw returns what happens to the n-th call of a task and run, counted from 0. It always gives the
// same answer.
func (f *Faults) Draw(key string, n int) Fault {
	if f == nil {
		return Fault{}
	}
	for i, rule := range f.plan.Faults {
		for back := range max(1, rule.Burst) {
			if n >= back && f.chance(i, key, n-back) < rule.Chance {
				return rule.fault()
			}
		}
	}
	return Fault{}
}

// chance returns a number from 0 to less than 1 for a rule and a call.
func (f *Faults) chance(rule int, key string, n int) float64 {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d\x00%d\x00%s\x00%d", f.plan.Seed, rule, key, n))
	return float64(binary.BigEndian.Uint64(sum[:])>>11) / (1 << 53)
}

func (r faultRule) fault() Fault {
	f := Fault{Kind: r.Kind, RetryAfter: time.Duration(r.RetryAfter) * time.Second}
	switch r.Kind {
	case faultRateLimit:
		f.Status = http.StatusTooManyRequests
	case faultServerError:
		f.Status = cmp.Or(r.Status, http.StatusInternalServerError)
	case faultCutStream, faultTruncatedJSON:
		f.After = cmp.Or(r.After, defaultFaultEvents)
	case faultSlowTokens:
		f.Delay = time.Duration(cmp.Or(r.DelayMs, defaultFaultDelay)) * time.Millisecond
	case faultWrongUsage:
		f.Factor = cmp.Or(r.Factor, defaultFaultFactor)
	}
	return f
}
