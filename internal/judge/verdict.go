package judge

import "slices"

// JudgeVerdict is one member's verdict on one dimension of one run.
type JudgeVerdict struct {
	// Result is Pass or Fail; nil when the member abstained.
	Result     *string `json:"result"`
	Confidence float64 `json:"confidence"`
	Critique   string  `json:"critique"`
	// Evidence lists the items whose citations are valid.
	Evidence []string `json:"evidence"`
	// Cited are the lines of the diff among them.
	Cited         []Citation `json:"cited,omitempty"`
	Dimension     string     `json:"dimension"`
	Model         string     `json:"model"`
	PromptHash    string     `json:"promptHash"`
	Abstained     bool       `json:"abstained"`
	DroppedClaims int        `json:"droppedClaims"`
	Member        string     `json:"member"`
	// Reason says why the member abstained.
	Reason string `json:"reason,omitempty"`
}

// Citation is a line of a diff that a judge quotes. A negative line was removed.
type Citation struct {
	File string `json:"file"`
	Line int    `json:"line"`
	Text string `json:"text"`
}

// cited returns the lines of the diff that evidence items name.
func cited(items []string) []Citation {
	var found []Citation
	for _, item := range items {
		address, quote, _ := parseItem(item)
		at, isPlace := linesOf(address)
		switch {
		case !isPlace:
		case at.removed:
			found = append(found, Citation{File: at.path, Line: -at.from, Text: quote})
		default:
			found = append(found, Citation{File: at.path, Line: at.from, Text: quote})
		}
	}
	return found
}

// checkedReply is a reply after its citations were checked.
type checkedReply struct {
	opinion
	held      []string
	dropped   int
	abstained bool
	reason    string
}

// noCitation is the reason of a vote that proves nothing.
const noCitation = "no citation holds"

func abstain(reason string) checkedReply { return checkedReply{abstained: true, reason: reason} }

// The kinds of claims that a check of the harness refutes.
var testClaims = []string{"tests_fail", "build_broken"}

// ground checks the citations of an opinion. isRefuted reports whether a claim about failing tests
// that rests on an item is refuted by the harness's own check.
func ground(o opinion, s shown, isRefuted func(item string) bool) checkedReply {
	a := checkedReply{opinion: o, held: []string{}}
	var refuted []string
	for _, c := range o.claims {
		if slices.Contains(testClaims, c.kind) && isRefuted(c.cite) {
			refuted = append(refuted, collapse(c.cite))
			a.dropped++
		}
	}
	for _, item := range o.evidence {
		switch {
		case slices.Contains(refuted, collapse(item)): // counted as a claim
		case s.holds(item):
			a.held = append(a.held, item)
		default:
			a.dropped++
		}
	}
	if len(a.held) == 0 {
		a.abstained, a.reason = true, noCitation
	}
	return a
}
