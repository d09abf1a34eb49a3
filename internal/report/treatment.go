package report

import (
	"cmp"
	"maps"
	"slices"

	"github.com/fit-eval/fit/ledger"
	"github.com/fit-eval/fit/stats"
)

// Treatment says what the models of some arms were given: whether what was changed reached them.
type Treatment struct {
	Arms []ArmTreatment `json:"arms"`
	// Pieces are what arms and the family bring, and what the task's files bring to some of the
	// arms only.
	Pieces []Piece `json:"pieces,omitempty"`
	// Lines say it in words.
	Lines []string `json:"lines,omitempty"`
}

// ArmTreatment is what is known about the runs of one arm that have a verdict.
type ArmTreatment struct {
	Arm  string `json:"arm"`
	Runs int    `json:"runs"`
	// Context counts the runs by what the agent read of its project: project or none.
	Context map[string]int `json:"context"`
	// Unrecorded runs were made by versions that did not look.
	Unrecorded int `json:"unrecorded,omitempty"`
	// Unknown counts, by reason, the runs of which nobody can know what the model was given.
	Unknown map[string]int `json:"unknown,omitempty"`
	// NotDelivered runs lacked their treatment: they are missing data, and not among Runs.
	NotDelivered int `json:"notDelivered,omitempty"`
}

// Piece is one text or file that some arm was to be given.
type Piece struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
	From string `json:"from"`
	// Differs says that it is in some of the arms only, or in different versions.
	Differs bool    `json:"differs,omitempty"`
	Arms    []Given `json:"arms"`
}

// Given counts the runs of an arm by how much of a piece their model was given.
type Given struct {
	Arm     string         `json:"arm"`
	Runs    int            `json:"runs"`
	Whole   int            `json:"whole"`
	Part    int            `json:"part,omitempty"`
	Named   int            `json:"name,omitempty"` // only its name
	Absent  int            `json:"absent,omitempty"`
	Unknown int            `json:"unknown,omitempty"`
	Why     map[string]int `json:"why,omitempty"` // reasons of the unknown
	Digests []string       `json:"digests,omitempty"`
	// Opened and Unopened are the runs in which what is loaded on demand was and was not loaded.
	// Agents decide which, so their pass rates compare nothing. Both are nil for what is not
	// loaded on demand.
	Opened     *OpenedRuns     `json:"opened,omitempty"`
	Unopened   *OpenedRuns     `json:"unopened,omitempty"`
	OpenedRate *stats.Interval `json:"openedRate,omitempty"`

	// held counts the runs whose agent was to have it, whether or not its model is known to have
	// been given it.
	held int
}

// OpenedRuns are the runs in which a skill was opened, or those in which it was not.
type OpenedRuns struct {
	Runs     int             `json:"runs"`
	Passed   int             `json:"passed"`
	PassRate *stats.Interval `json:"passRate,omitempty"`
	// NotRandomised is always true: agents chose which runs these are.
	NotRandomised bool `json:"notRandomised"`
}

// given counts the runs whose model was given at least the name.
func (g *Given) given() int { return g.Whole + g.Part + g.Named }

// WhyEarlier says why nobody knows what the model of an old record was given.
const WhyEarlier = "recorded by an earlier version, which did not look"

// pieceKey identifies a piece across arms: agents have the same skill in different places.
type pieceKey struct{ kind, name string }

func keyOf(p *ledger.Piece) pieceKey { return pieceKey{p.Kind, p.Name} }

// treatmentOf says what the models of groups were given; the first group is named first.
func treatmentOf(level float64, groups ...*Group) *Treatment {
	t := &Treatment{}
	found := map[pieceKey]*Piece{}
	tasks := map[pieceKey]map[string]bool{} // in which some arm has the piece
	for _, g := range groups {
		t.Arms = append(t.Arms, armTreatment(g))
		for i := range g.records {
			r := &g.records[i]
			if r.Verdict == ledger.Error || r.Treatment == nil {
				continue
			}
			for j := range r.Treatment.Pieces {
				piece := &r.Treatment.Pieces[j]
				key := keyOf(piece)
				if found[key] == nil {
					found[key] = &Piece{Kind: piece.Kind, Name: piece.Name, From: piece.From}
					tasks[key] = map[string]bool{}
				}
				tasks[key][r.TaskID] = true
				if sourceOrder(piece.From) < sourceOrder(found[key].From) {
					found[key].From = piece.From
				}
			}
		}
	}
	for key, piece := range found {
		for _, g := range groups {
			in := tasks[key]
			if piece.From != ledger.FromTask {
				in = nil // it belongs to every task
			}
			piece.Arms = append(piece.Arms, givenIn(g, key, in, level))
		}
		piece.Differs = piece.differs()
		if piece.From != ledger.FromTask || piece.Differs {
			t.Pieces = append(t.Pieces, *piece)
		}
	}
	slices.SortFunc(t.Pieces, func(a, b Piece) int {
		return cmp.Or(sourceOrder(a.From)-sourceOrder(b.From), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	t.Lines = t.lines()
	return t
}

// proveTreatment fills in what the models of a group were given, and what follows for claims.
func (g *Group) proveTreatment(in Input) {
	if in.Planned != nil && in.Planned.Declared != nil {
		g.Differs, g.requests = in.Planned.Declared.Differs[g.Provenance.Arm], in.Planned.Declared.Requests
	}
	g.Treatment = treatmentOf(in.Level, g)
	var allowed []Reason
	g.Withheld, allowed = Withhold(in.Allow, &Basis{Groups: []*Group{g}})
	for _, reason := range allowed {
		g.Warnings, g.alone = append(g.Warnings, reason.allowedText()), append(g.alone, reason.allowedText())
	}
}

// sourceOrder sorts what an arm brings before what all arms share.
func sourceOrder(from string) int {
	return slices.Index([]string{ledger.FromArm, ledger.FromFamily, ledger.FromOther, ledger.FromTask}, from) & 0xff
}

func armTreatment(g *Group) ArmTreatment {
	a := ArmTreatment{Arm: g.Name, Context: map[string]int{}}
	for i := range g.records {
		r := &g.records[i]
		switch {
		case r.ErrorClass == ledger.ErrorNotDelivered && r.Verdict == ledger.Error:
			a.NotDelivered++
			continue
		case r.Verdict == ledger.Error:
			continue
		}
		a.Runs++
		if r.Treatment == nil {
			a.Unrecorded++
			a.Context["none"]++ // versions that did not look let agents read nothing of their project
			continue
		}
		a.Context[r.Treatment.Context]++
		if why := r.Treatment.Unknown; why != "" {
			if a.Unknown == nil {
				a.Unknown = map[string]int{}
			}
			a.Unknown[why]++
		}
	}
	return a
}

// givenIn counts the runs of a group; with tasks only those of these tasks.
func givenIn(g *Group, key pieceKey, tasks map[string]bool, level float64) Given {
	out := Given{Arm: g.Name}
	digests := map[string]bool{}
	for i := range g.records {
		r := &g.records[i]
		if r.Verdict == ledger.Error || tasks != nil && !tasks[r.TaskID] {
			continue
		}
		out.Runs++
		piece, why := pieceOf(r, key)
		if piece == nil {
			out.Absent++
			continue
		}
		out.add(piece, why)
		if keyOf(piece) == key && piece.Given != ledger.GivenAbsent && piece.From != ledger.FromOther {
			out.held++
			if piece.Digest != "" {
				digests[piece.Digest] = true
			}
		}
		if piece.Opened != nil {
			out.open(*piece.Opened, r.Verdict == ledger.Pass)
		}
	}
	out.Digests = slices.Sorted(maps.Keys(digests))
	out.rates(level)
	return out
}

// pieceOf finds a piece among those of a run; nil means that the run does not have it. Where nobody
// knows, it is a piece that is unknown, with the reason.
func pieceOf(r *ledger.Record, key pieceKey) (*ledger.Piece, string) {
	unknown := &ledger.Piece{Given: ledger.GivenUnknown}
	if r.Treatment == nil {
		return unknown, WhyEarlier
	}
	var best *ledger.Piece
	for i := range r.Treatment.Pieces {
		p := &r.Treatment.Pieces[i]
		if keyOf(p) == key && (best == nil || gradeOrder(p.Given) < gradeOrder(best.Given)) {
			best = p
		}
	}
	switch {
	case best != nil:
		return best, cmp.Or(best.Why, r.Treatment.Unknown, "no reason recorded")
	case r.Treatment.Unknown != "":
		return unknown, r.Treatment.Unknown
	}
	return nil, ""
}

// gradeOrder sorts grades, the most first.
func gradeOrder(given string) int {
	return slices.Index([]string{ledger.GivenWhole, ledger.GivenPart, ledger.GivenName, ledger.GivenUnknown}, given) &
		0xff
}

func (g *Given) add(piece *ledger.Piece, why string) {
	switch piece.Given {
	case ledger.GivenWhole:
		g.Whole++
	case ledger.GivenPart:
		g.Part++
	case ledger.GivenName:
		g.Named++
	case ledger.GivenAbsent:
		g.Absent++
	default: // a grade of a later version is not known either
		g.Unknown++
		if g.Why == nil {
			g.Why = map[string]int{}
		}
		g.Why[why]++
	}
}

func (g *Given) open(opened, passed bool) {
	if g.Opened == nil {
		g.Opened, g.Unopened = &OpenedRuns{NotRandomised: true}, &OpenedRuns{NotRandomised: true}
	}
	runs := g.Unopened
	if opened {
		runs = g.Opened
	}
	runs.Runs++
	if passed {
		runs.Passed++
	}
}

// rates fills in the shares with exact intervals, which hold for few runs too. Counts are always
// valid, so there is no error.
func (g *Given) rates(level float64) {
	if g.Opened == nil {
		return
	}
	g.OpenedRate = exactShare(g.Opened.Runs, g.Opened.Runs+g.Unopened.Runs, level)
	g.Opened.PassRate = exactShare(g.Opened.Passed, g.Opened.Runs, level)
	g.Unopened.PassRate = exactShare(g.Unopened.Passed, g.Unopened.Runs, level)
}

// exactShare returns a share with its limits; nil of nothing.
func exactShare(k, n int, level float64) *stats.Interval {
	interval, err := stats.ClopperPearson(k, n, level)
	if err != nil {
		return nil
	}
	return &interval
}

// differs reports whether one arm had the piece and another had not, or they had different versions
// of what arms bring.
func (p *Piece) differs() bool {
	some, none := false, false
	for i := range p.Arms {
		some, none = some || p.Arms[i].held > 0, none || p.Arms[i].held == 0
	}
	return some && none || p.versions()
}

// shown reports whether an agent must show its model the piece, or what announces it, at the start.
// Commands are for people, and files and settings for the agent.
func (p *Piece) shown() bool {
	return p.declared() && slices.Contains([]string{
		ledger.PieceInstructions, ledger.PieceSkill, ledger.PieceAgent, ledger.PiecePrompt, ledger.PieceProfile,
	}, p.Kind)
}

// declared reports whether an arm or the family brings the piece.
func (p *Piece) declared() bool { return p.From != ledger.FromTask && p.From != ledger.FromOther }
