package view

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// contest is the report of a head to head.
type contest struct {
	Statement string
	PerAgent  []struct {
		Arm            string
		NRuns, Missing int
		PassRate       *limits
		Blended        *float64
		Efficiency     struct {
			WallClockMs float64
			Turns       float64
		}
		CostUsd *float64
	}
	Cells []struct {
		Task, Arm  string
		Run        int
		Diff       struct{ Files, Added, Removed int }
		Milestones []struct{ ElapsedMs float64 }
		Verdicts   []struct {
			Dimension  string
			Result     *string
			Pass, Fail int
			Share      *float64
			Votes      []struct{ Member, Critique string }
		}
	}
	Pairs []struct {
		Sentence         string
		FlipRate         *float64
		Primacy, Recency int
		Pairwise         []struct {
			Winner, Task string
			Run          int
			BiasDetected bool
		}
	}
	Calibration []struct {
		Dimension, Status string
		Labels            int
	}
	Panel struct {
		Models  []string
		Members []struct {
			Name, Model, LeftOut               string
			Verdicts, Abstained, DroppedClaims int
			Swaps                              *struct {
				FlipRate float64
				Decisive int
			}
		}
	}
}

// TestDrawnContest: the head to head shows what versus report prints, with the lines that judges
// cite marked; three arms are ranked and compared in pairs as compare does.
func TestDrawnContest(t *testing.T) {
	t.Parallel()
	g := visit(t)
	judged, three := g.id(t, "judged"), g.id(t, "three")
	pages := walk(t, map[string]any{"url": g.address},
		spot{"head to head", "#/versus/" + judged + "?task=fix-add-03&run=1", ".column .diff .line.cited"},
		spot{"judged cell", "#/x/" + judged + "/fix-add-03/quince/1", ".diff .line.cited"},
		spot{"labels", "#/labels/" + judged, ".evidence-text"},
		spot{"three", "#/x/" + three, "table.pairs tbody tr"},
		spot{"three head to head", "#/versus/" + three, ".column .diff .line"},
		spot{"no such page", "#/nowhere", ".empty"},
	)
	var report contest
	answerOf(t, &report, "versus", "report", filepath.Join(g.top, "judged"), "--robot")
	page := pages["head to head"]
	page.says(t, strings.ToUpper(report.Statement[:1])+report.Statement[1:], strings.Join(report.Panel.Models, ", "))
	for _, a := range report.PerAgent {
		page.has(t, a.Arm, percent(*a.PassRate.Est), "", fmt.Sprint(a.NRuns), fmt.Sprint(a.Missing),
			fmt.Sprintf("%.2f", *a.Blended), elapsed(a.Efficiency.WallClockMs), fmt.Sprint(a.Efficiency.Turns),
			money(a.CostUsd), "0")
	}
	for _, p := range report.Pairs {
		sentence := strings.ReplaceAll(p.Sentence, " -", " −") // with the minus sign of print
		page.says(t, sentence, fmt.Sprintf(
			"no vote counts in %s that judges were asked for · %s turned around when the positions were swapped "+
				"(%d for the first, %d for the second)",
			counted(len(p.Pairwise), "comparison"), percent(*p.FlipRate), p.Primacy, p.Recency))
		for _, w := range p.Pairwise {
			if w.Task == "fix-add-03" && w.Run == 1 {
				page.says(t, "pear or quince: no vote counts turned around when the positions were swapped")
				if w.Winner != "" || !w.BiasDetected {
					t.Errorf("a judge that prefers the first is not found out: %+v", w)
				}
			}
		}
	}
	for _, m := range report.Panel.Members {
		page.has(t, m.Name, m.Model, fmt.Sprint(m.Verdicts), fmt.Sprint(m.Abstained), fmt.Sprint(m.DroppedClaims),
			fmt.Sprintf("%.2f of %d", m.Swaps.FlipRate, m.Swaps.Decisive), "*", "not taken")
	}
	for _, c := range report.Calibration {
		page.has(t, c.Dimension, c.Status, "unknown", "unknown", fmt.Sprint(c.Labels))
	}
	for _, cell := range report.Cells {
		if cell.Task != "fix-add-03" || cell.Run != 1 || cell.Arm != "quince" {
			continue
		}
		for _, v := range cell.Verdicts {
			result, share := "undecided", ""
			if v.Result != nil {
				result = *v.Result
			}
			if v.Share != nil {
				share = ", " + percent(*v.Share) + " agree"
			}
			for _, one := range []drawn{page, pages["judged cell"]} {
				one.has(t, v.Dimension, result, fmt.Sprintf("%d to %d%s", v.Pass, v.Fail, share))
				for _, vote := range v.Votes {
					one.has(t, v.Dimension, vote.Member, "*", "*")
				}
			}
		}
	}
	for _, one := range []drawn{page, pages["judged cell"]} {
		if !slices.Contains(one.Cited, "return a + b") {
			t.Errorf("%s marks the lines %q", one.name, one.Cited)
		}
	}
	var family struct {
		Pairs []struct {
			A, B     string
			Decision struct {
				Claim        string
				Effect, PAdj float64
			}
		}
		Sets [][]string
	}
	answerOf(t, &family, "benchmark", "compare", filepath.Join(g.top, "three"), "--format", "json")
	for _, p := range family.Pairs {
		pages["three"].has(t, cut(p.B)+" against "+cut(p.A), p.Decision.Claim, points(p.Decision.Effect, 1), "",
			fmt.Sprintf("%.4f", p.Decision.PAdj))
	}
	for i, set := range family.Sets {
		pages["three"].says(t, fmt.Sprintf("Rank %d: %s (", i+1, strings.Join(set, ", ")))
	}
}

// TestJudgesThatWereLeftOut: the page says why each judge was left out, as the terminal's table
// does, and that none of them has compared anything.
func TestJudgesThatWereLeftOut(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "thrown")
	if err := writeJudged(dir, 2, true); err == nil {
		t.Fatal("judges that pass everything have passed the self-test")
	}
	address := serve(t, dir)
	g := &guide{asked: askView(t, address)}
	place := "#/versus/" + g.id(t, "thrown")
	pages := walk(t, map[string]any{"url": address}, spot{"thrown", place, ".members tbody tr"})
	var report contest
	answerOf(t, &report, "versus", "report", dir, "--robot")
	for _, m := range report.Panel.Members {
		if m.LeftOut == "" {
			t.Errorf("%+v", m)
		}
		pages["thrown"].has(t, m.Name, m.Model, "0", "0", "0", "–", "*", "left out: "+m.LeftOut)
	}
	for _, p := range report.Pairs {
		for _, w := range p.Pairwise {
			if w.Winner != "" {
				t.Errorf("nobody voted, and the winner is %q", w.Winner)
			}
		}
	}
}

// cut shortens a name in the middle.
func cut(name string) string {
	const most = 24
	if len(name) <= most {
		return name
	}
	return name[:most/2] + "…" + name[len(name)-(most-1-most/2):]
}
