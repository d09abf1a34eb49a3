package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fit-eval/fit/ledger"
)

// Reason is why a claim, or a gate, is withheld whatever the numbers say.
type Reason struct {
	Key  string `json:"key"`
	Text string `json:"text"`
	// Allow is the value of --allow that accepts it; empty: nothing does.
	Allow string `json:"allow,omitempty"`
}

// The keys of reasons.
const (
	reasonDrift        = "drift"
	reasonNotDelivered = "not_delivered"
	reasonContaminated = "contaminated"
	reasonReplayed     = "replayed"
	reasonUnplanned    = "unplanned"
)

// reasons is the one list of what withholds a claim. find looks at the groups that a claim is
// about, one for a gate and two for a comparison, and says what is wrong with them.
var reasons = []struct {
	key, allow string
	find       func(groups []*Group) []string
}{
	{key: reasonDrift, allow: reasonDrift, find: drift},
	{key: reasonNotDelivered, find: undelivered},
	{key: reasonContaminated, find: contaminated},
	{key: reasonReplayed, find: replayed},
	{key: reasonUnplanned, find: unplanned},
}

// withhold returns the reasons for which nothing is claimed about groups, and those that were found
// and are allowed.
func withhold(allow []string, groups ...*Group) (withheld, allowed []Reason) {
	for _, r := range reasons {
		texts := r.find(groups)
		if len(texts) == 0 {
			continue
		}
		found := Reason{Key: r.key, Text: strings.Join(texts, "; "), Allow: r.allow}
		if r.allow != "" && slices.Contains(allow, r.allow) {
			allowed = append(allowed, found)
		} else {
			withheld = append(withheld, found)
		}
	}
	return withheld, allowed
}

// replayed counts the runs that no model answered: they say nothing about what was changed since
// their answers were recorded.
func replayed(groups []*Group) []string {
	answered, runs := 0, 0
	for _, g := range groups {
		for i := range g.records {
			switch r := &g.records[i]; {
			case r.Verdict == ledger.Error:
				continue
			case r.Replay != "":
				answered++
			}
			runs++
		}
	}
	if answered == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%d of %s were answered from the records of another experiment", answered,
		Count(runs, "run"))}
}

// unplanned says why nobody knows which runs are missing.
func unplanned(groups []*Group) []string {
	var found []string
	for _, g := range groups {
		if g.unplanned != "" && !slices.Contains(found, g.unplanned) {
			found = append(found, g.unplanned)
		}
	}
	return found
}

// Sentence says why, and the way out.
func (r Reason) Sentence() string {
	if r.Allow == "" {
		return r.Text
	}
	return fmt.Sprintf("%s; --allow %s accepts it", r.Text, r.Allow)
}

// sentences returns those of reasons.
func sentences(reasons []Reason) []string {
	var list []string
	for _, r := range reasons {
		list = append(list, r.Sentence())
	}
	return list
}

// allowedText is the warning about a reason that was allowed.
func (r Reason) allowedText() string {
	return fmt.Sprintf("allowed by --allow %s: %s", r.Allow, r.Text)
}

// warnOfPairs says what withholds a claim about an arm and the first one, the baseline, and which
// arms are the same. What the groups say of themselves is not repeated.
func (r *Report) warnOfPairs(allow []string) {
	for i := 1; i < len(r.Groups); i++ {
		a, b := &r.Groups[0], &r.Groups[i]
		if a.partOf(b) {
			continue
		}
		add := func(text string) {
			r.Warnings = append(r.Warnings, fmt.Sprintf("%s against %s: %s", b.Name, a.Name, text))
		}
		withheld, allowed := withhold(allow, a, b)
		for _, reason := range withheld {
			if !slices.Contains(slices.Concat(a.Withheld, b.Withheld), reason) {
				add("no claim because: " + reason.Sentence())
			}
		}
		for _, reason := range allowed {
			if text := reason.allowedText(); !slices.Contains(slices.Concat(a.Warnings, b.Warnings), text) {
				add(text)
			}
		}
		if sameArm(a, b) {
			add(sameText(a, b, len(withheld)+len(allowed) == 0))
		}
	}
}
