package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/ledger"
	"github.com/fit-eval/fit/stats"
)

// JudgeReport describes the judge of a group. It is only asked about runs that the mechanical
// graders pass.
type JudgeReport struct {
	// Asked counts the runs it was asked about, Passed and Failed those it decided on, Undecided
	// those without a majority.
	Asked     int `json:"asked"`
	Passed    int `json:"passed"`
	Failed    int `json:"failed"`
	Undecided int `json:"undecided"`
	// Mechanical is the pass rate that there would be without the judge, a mean over tasks.
	Mechanical *stats.Interval `json:"mechanical,omitempty"`
	CostUSD    *float64        `json:"costUsd"`
	// Models are the models that judged.
	Models []string `json:"models,omitempty"`
	// Digests identify the judge; there are several if it has several templates.
	Digests []string `json:"digests,omitempty"`
	// Agreement is set if runs were judged by several votes.
	Agreement *Agreement `json:"agreement,omitempty"`
	// Corrected is the pass rate after correction for the judge's errors; nil without labels.
	Corrected *Corrected `json:"corrected,omitempty"`
}

// Agreement measures how far several votes on the same runs agree.
type Agreement struct {
	// Votes is how many each run got, Runs those with at least two that concluded, Unanimous those
	// of them without dissent.
	Votes     int `json:"votes"`
	Runs      int `json:"runs"`
	Unanimous int `json:"unanimous"`
	// Observed is the share of pairs of votes on a run that agree.
	Observed float64 `json:"observed"`
	// Alpha is Krippendorff's, which allows for votes without a verdict; Kappa is Fleiss', if there
	// are none of them. Both are nil where all votes are the same, which leaves no chance agreement
	// to compare with.
	Alpha *stats.Kappa `json:"alpha,omitempty"`
	Kappa *stats.Kappa `json:"kappa,omitempty"`
	// EffectiveVotes is how many independent votes they are worth, by their errors on the runs that
	// people labelled; nil without labels or without errors.
	EffectiveVotes *float64 `json:"effectiveVotes,omitempty"`
}

// judgeReport summarises the judge's part in records; nil if it was not asked.
func judgeReport(records []ledger.Record) *JudgeReport {
	j := &JudgeReport{}
	cost, known := 0.0, true
	for i := range records {
		r := &records[i]
		undecided := r.Verdict == ledger.Error &&
			(r.ErrorClass == ledger.ErrorJudge || len(r.JudgeVotes) > 0 && r.JudgeVerdict == nil)
		switch {
		case r.JudgeVerdict == nil && !undecided:
			continue
		case undecided:
			j.Undecided++
		case r.JudgeVerdict.Verdict == ledger.Pass:
			j.Passed++
		default:
			j.Failed++
		}
		j.Asked++
		if model := r.Model.Judge; model != "" && !slices.Contains(j.Models, model) {
			j.Models = append(j.Models, model)
		}
		if digest := r.Digests.Judge; digest != "" && !slices.Contains(j.Digests, digest) {
			j.Digests = append(j.Digests, digest)
		}
		for _, vote := range r.JudgeVotes {
			if vote.CostUSD == nil {
				known = false
				continue
			}
			cost += *vote.CostUSD
		}
		if len(r.JudgeVotes) == 0 { // a record from before votes existed
			if r.CostBreakdown == nil {
				known = false
			} else {
				cost += r.CostBreakdown.Judge
			}
		}
	}
	if j.Asked == 0 {
		return nil
	}
	if known {
		j.CostUSD = &cost
	}
	slices.Sort(j.Digests)
	j.Agreement = agreementOf(records)
	return j
}

// agreementOf measures how far the votes on the same runs agree; nil where no run has two votes
// that concluded.
func agreementOf(records []ledger.Record) *Agreement {
	a := &Agreement{}
	var counts [][]int
	complete := true
	for i := range records {
		votes := records[i].JudgeVotes
		a.Votes = max(a.Votes, len(votes))
		pass, fail := countVotes(votes)
		if pass+fail < 2 {
			continue
		}
		a.Runs++
		if pass == 0 || fail == 0 {
			a.Unanimous++
		}
		counts = append(counts, []int{pass, fail})
	}
	if a.Runs == 0 {
		return nil
	}
	agreeing, pairs, every := 0, 0, [2]int{}
	for _, c := range counts {
		complete = complete && c[0]+c[1] == counts[0][0]+counts[0][1]
		agreeing += c[0]*(c[0]-1)/2 + c[1]*(c[1]-1)/2
		pairs += (c[0] + c[1]) * (c[0] + c[1] - 1) / 2
		every[0], every[1] = every[0]+c[0], every[1]+c[1]
	}
	a.Observed = float64(agreeing) / float64(pairs)
	if every[0] == 0 || every[1] == 0 {
		return a
	}
	if alpha, err := stats.KrippendorffAlpha(counts); err == nil {
		a.Alpha = &alpha
	}
	if kappa, err := stats.FleissKappa(counts); complete && err == nil {
		a.Kappa = &kappa
	}
	return a
}

func countVotes(votes []ledger.JudgeVote) (pass, fail int) {
	for _, vote := range votes {
		switch vote.Verdict {
		case ledger.Pass:
			pass++
		case ledger.Fail:
			fail++
		}
	}
	return pass, fail
}

// judge fills in the judge's part of a group.
func (g *Group) judge(in Input) error {
	if g.Judge = judgeReport(g.records); g.Judge == nil {
		return nil
	}
	byTask := map[string][]float64{}
	for i := range g.records {
		r := &g.records[i]
		if r.Grade == nil || r.Grade.Verdict == ledger.Error {
			continue
		}
		byTask[r.TaskID] = append(byTask[r.TaskID], indicator(r.Grade.Verdict == ledger.Pass))
	}
	var rates []float64
	for i := range g.Tasks {
		if outcomes := byTask[g.Tasks[i].TaskID]; len(outcomes) > 0 {
			rates = append(rates, stats.Mean(outcomes))
		}
	}
	mechanical, err := stats.TaskMean(rates, in.Level)
	if err != nil {
		return fmt.Errorf("mechanical pass rate: %w", err)
	}
	g.Judge.Mechanical = &mechanical
	if in.Labels != nil {
		return g.correct(in)
	}
	return nil
}

func indicator(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

// lines describe the judge in words.
func (j *JudgeReport) lines() []string {
	if j == nil {
		return nil
	}
	text := fmt.Sprintf("judge: asked about %d runs that passed the checks (%s), %d pass, %d fail", j.Asked,
		percent(j.Mechanical), j.Passed, j.Failed)
	if j.Undecided > 0 {
		text += fmt.Sprintf(", %d without a verdict", j.Undecided)
	}
	if j.CostUSD != nil && *j.CostUSD > 0 {
		text += fmt.Sprintf(" · %s", display.Cost(j.CostUSD))
	}
	if len(j.Models) > 0 {
		text += " · by " + strings.Join(j.Models, ", ")
	}
	lines := []string{text}
	if j.Agreement != nil {
		lines = append(lines, j.Agreement.text())
	}
	if j.Corrected != nil {
		lines = append(lines, j.Corrected.text())
	}
	return lines
}

func (a *Agreement) text() string {
	text := fmt.Sprintf("votes: %d each, unanimous on %d of %d runs, %.0f%% of pairs agree", a.Votes, a.Unanimous,
		a.Runs, 100*a.Observed)
	if a.Alpha == nil {
		return text + "; all votes are identical, so agreement beyond chance (κ, α) is undefined"
	}
	text += fmt.Sprintf(", Krippendorff's α %.2f", a.Alpha.Value)
	if a.Kappa != nil {
		text += fmt.Sprintf(", Fleiss' κ %.2f", a.Kappa.Value)
	}
	if a.EffectiveVotes != nil {
		text += fmt.Sprintf("; effective number of votes %.1f", *a.EffectiveVotes)
	}
	return text
}
