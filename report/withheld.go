package report

import (
	"fmt"
	"slices"
	"strings"
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
)

// reasons is the one list of what withholds a claim. find looks at the groups that a claim is
// about, one for a gate and two for a comparison, and says what is wrong with them.
var reasons = []struct {
	key, allow string
	find       func(groups []*Group) []string
}{
	{key: reasonDrift, allow: reasonDrift, find: drift},
	{key: reasonNotDelivered, find: undelivered},
}

// Withheld returns the reasons for which nothing is claimed about groups, and those that were found
// and are allowed.
func Withheld(allow []string, groups ...*Group) (withheld, allowed []Reason) {
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

// Sentence says why, and the way out.
func (r Reason) Sentence() string {
	if r.Allow == "" {
		return r.Text
	}
	return fmt.Sprintf("%s; --allow %s accepts it", r.Text, r.Allow)
}

// Sentences returns those of reasons.
func Sentences(reasons []Reason) []string {
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
