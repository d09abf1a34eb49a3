package judge

import (
	"cmp"
	"slices"

	"github.com/fit-eval/fit/internal/evidence"
	"github.com/fit-eval/fit/ledger"
	"github.com/fit-eval/fit/price"
)

// Selection names the members that judge a dimension. A dimension that is not in it is judged by
// all.
type Selection map[string][]string

// PanelVerdict is a panel's verdict on one dimension of one run.
type PanelVerdict struct {
	Dimension string `json:"dimension"`
	// Result is Pass or Fail; nil where there is no majority among enough votes.
	Result *string `json:"result"`
	// Share is the share of the votes that agree with the result; nil without one.
	Share *float64 `json:"share"`
	Pass  int      `json:"pass"`
	Fail  int      `json:"fail"`
	// Abstained counts members without a verdict, Missing those without a reply.
	Abstained  int            `json:"abstained"`
	Missing    int            `json:"missing,omitempty"`
	PromptHash string         `json:"promptHash"`
	Votes      []JudgeVerdict `json:"votes"`
}

// Score returns the fraction of Pass among the votes; nil where there is no result.
func (v PanelVerdict) Score() *float64 {
	if v.Result == nil {
		return nil
	}
	return new(float64(v.Pass) / float64(v.Pass+v.Fail))
}

// CellVerdicts are the verdicts on one run, by dimension. A dimension that was not asked about is
// missing.
type CellVerdicts struct {
	ledger.Cell
	Dimensions map[string]PanelVerdict
}

// MemberReport describes the performance of a member of the panel.
type MemberReport struct {
	Name     string `json:"name"`
	Model    string `json:"model"`
	Protocol string `json:"protocol"`
	Family   string `json:"family"`
	// LeftOut says why the member does not judge; empty if it does.
	LeftOut  string    `json:"leftOut,omitempty"`
	SelfTest *SelfTest `json:"selfTest,omitempty"`
	// Verdicts counts its answers to single questions, Abstained those without a result,
	// DroppedClaims the claims whose citation does not hold.
	Verdicts      int `json:"verdicts"`
	Abstained     int `json:"abstained"`
	DroppedClaims int `json:"droppedClaims"`
	// Swaps says how much the order of presentation mattered to it; nil where it compared nothing.
	Swaps *Swaps `json:"swaps,omitempty"`
	Cost  Cost   `json:"cost"`
}

// Result is everything that the replies say.
type Result struct {
	// Cells are as the subjects.
	Cells   []CellVerdicts
	Pairs   []PairwiseVerdict
	Members []MemberReport
	// Cost is that of every reply, including those that the current settings do not use.
	Cost Cost
	// PerDimension is the cost by dimension; that of the self-test has its own name.
	PerDimension map[string]Cost
	// Missing counts the questions that have no reply yet.
	Missing int
	// PanelIDs identify by dimension what a calibration is about: prompt, members, aggregation.
	PanelIDs map[string]string
}

// Derive derives verdicts from replies. It makes no requests and reads no clock. The subjects must
// be those that Ask was given.
func Derive(replies *Replies, settings Settings, subjects []Subject, selection Selection) *Result {
	d := newDeriver(settings, subjects, replies.find)
	d.selection = selection
	d.selfTest()
	result := &Result{Cells: make([]CellVerdicts, len(subjects))}
	for i := range subjects {
		result.Cells[i] = d.cell(i)
	}
	result.Pairs = d.comparePairs(result.Cells)
	for i := range d.members {
		result.Members = append(result.Members, d.members[i].MemberReport)
	}
	result.Missing = d.missing
	result.PanelIDs = map[string]string{}
	for _, dimension := range d.settings.Dimensions {
		result.PanelIDs[dimension] = d.panelID(dimension)
	}
	result.addCosts(replies)
	return result
}

// deriver holds what the steps of a derivation share.
type deriver struct {
	settings  Settings
	frames    *frames
	subjects  []Subject
	find      func(key string) (*storedReply, bool)
	selection Selection
	members   []seat
	missing   int
}

// seat is a member with its results.
type seat struct {
	member Member
	MemberReport
}

func (s *seat) isActive() bool { return s.LeftOut == "" }

func newDeriver(settings Settings, subjects []Subject, find func(key string) (*storedReply, bool)) *deriver {
	d := &deriver{
		settings: settings.withDefaults(),
		frames:   newFrames(settings.Prompts),
		subjects: subjects,
		find:     find,
	}
	for _, m := range settings.Panel.Members {
		d.members = append(d.members, seat{member: m, MemberReport: MemberReport{
			Name:     m.Name,
			Model:    m.Model,
			Protocol: m.Protocol,
			Family:   m.Family,
		}})
	}
	return d
}

// withDefaults fills what is not set, so that equal settings are stored equally.
func (s Settings) withDefaults() Settings {
	if len(s.Dimensions) == 0 {
		s.Dimensions = evidence.Dimensions()
	}
	s.Mode, s.Pairwise = cmp.Or(s.Mode, Auto), cmp.Or(s.Pairwise, PairsOff)
	return s
}

// selfTest leaves out the members that fail it.
func (d *deriver) selfTest() {
	if !d.settings.SelfTest {
		return
	}
	list := trials(d.frames, d.subjects)
	for i := range d.members {
		m := &d.members[i]
		m.SelfTest = &SelfTest{}
		m.SelfTest.take(list, m.member, d.find)
		d.missing += m.SelfTest.Missing
		m.LeftOut = m.SelfTest.failure()
	}
}

// cell derives the verdicts on one run.
func (d *deriver) cell(i int) CellVerdicts {
	subject := &d.subjects[i]
	cell := CellVerdicts{Cell: subject.cell(), Dimensions: map[string]PanelVerdict{}}
	v := newView(subject)
	for _, dimension := range d.settings.Dimensions {
		if subject.asked(d.settings.Mode, dimension) {
			cell.Dimensions[dimension] = d.panelVerdict(v.single(d.frames, kindSingle, dimension))
		}
	}
	return cell
}

func (d *deriver) panelVerdict(q *question) PanelVerdict {
	verdict := PanelVerdict{
		Dimension:  q.dimension,
		PromptHash: q.frame.hash,
		Votes:      make([]JudgeVerdict, 0, len(d.members)),
	}
	voters := 0
	for i := range d.members {
		m := &d.members[i]
		if !m.isActive() {
			continue
		}
		a, missing := q.answer(m.member, d.find)
		selected := d.selected(q.dimension, m.member.Name)
		if selected {
			voters++
		}
		if missing != nil {
			d.missing++
			if selected {
				verdict.Missing++
			}
			continue
		}
		vote := a.verdict(q, m.member)
		m.Verdicts++
		m.DroppedClaims += vote.DroppedClaims
		if vote.Abstained {
			m.Abstained++
		}
		vote.PromptHash = verdict.PromptHash
		if selected {
			verdict.add(vote)
		} else {
			vote.Reason = notSelected
		}
		verdict.Votes = append(verdict.Votes, vote)
	}
	verdict.decide(voters)
	return verdict
}

// notSelected marks the vote of a member that does not judge the dimension.
const notSelected = "not among the members chosen for this dimension"

func (d *deriver) selected(dimension, member string) bool {
	chosen, given := d.selection[dimension]
	return !given || slices.Contains(chosen, member)
}

// verdict returns the answer to a single question as reports carry it.
func (a checkedReply) verdict(q *question, m Member) JudgeVerdict {
	v := JudgeVerdict{
		Confidence:    a.confidence,
		Critique:      a.critique,
		Evidence:      a.held,
		Cited:         cited(a.held),
		Dimension:     q.dimension,
		Model:         m.Model,
		Abstained:     a.abstained,
		DroppedClaims: a.dropped,
		Member:        m.Name,
		Reason:        a.reason,
	}
	if v.Evidence == nil {
		v.Evidence = []string{}
	}
	if !a.abstained {
		v.Result = &a.result
	}
	return v
}

func (v *PanelVerdict) add(vote JudgeVerdict) {
	switch {
	case vote.Abstained:
		v.Abstained++
	case *vote.Result == Pass:
		v.Pass++
	default:
		v.Fail++
	}
}

// decide takes the majority. A panel of several needs two votes: one alone is not a panel.
func (v *PanelVerdict) decide(voters int) {
	votes := v.Pass + v.Fail
	if votes < min(2, voters) || v.Pass == v.Fail {
		return
	}
	result := Pass
	if v.Fail > v.Pass {
		result = Fail
	}
	share := float64(max(v.Pass, v.Fail)) / float64(votes)
	v.Result, v.Share = &result, &share
}

// Cost is what replies cost.
type Cost struct {
	Replies int       `json:"replies"`
	Usage   UsageJSON `json:"usage"`
	// USD is the sum of what is known; Unpriced counts the replies whose cost is not.
	USD      float64 `json:"usd"`
	Unpriced int     `json:"unpriced"`
}

func (c *Cost) add(reply *storedReply) {
	c.Replies++
	(*price.TokenUsage)(&c.Usage).Add(price.TokenUsage(reply.Usage))
	if reply.CostUSD == nil {
		c.Unpriced++
		return
	}
	c.USD += *reply.CostUSD
}

func (r *Result) addCosts(replies *Replies) {
	r.PerDimension = map[string]Cost{}
	for _, reply := range replies.list {
		r.Cost.add(reply)
		name := reply.Dimension
		if reply.Question == kindSelfTest {
			name = kindSelfTest
		}
		cost := r.PerDimension[name]
		cost.add(reply)
		r.PerDimension[name] = cost
		for m := range r.Members {
			if r.Members[m].Name == reply.Member {
				r.Members[m].Cost.add(reply)
			}
		}
	}
}
