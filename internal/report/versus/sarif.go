package versus

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/fit-eval/fit/internal/evidence"
	"github.com/fit-eval/fit/internal/judge"
	"github.com/fit-eval/fit/internal/lazyregexp"
	"github.com/fit-eval/fit/internal/report"
	"github.com/fit-eval/fit/internal/sarif"
	"github.com/fit-eval/fit/session"
)

// sarifProperties say which run a finding is about. Removed says that the line is one of the file
// before the change.
type sarifProperties struct {
	Task    string `json:"task"`
	Arm     string `json:"arm"`
	Run     int    `json:"run"`
	Address string `json:"address,omitempty"`
	Removed bool   `json:"removed,omitempty"`
}

// sarifRun is what is found in the runs of a report.
type sarifRun struct{ *sarif.Run }

// SARIF writes the integrity flags and what judges found wrong, each with its file and line, for
// programs that show findings beside code.
func (r *EvalReport) SARIF(w io.Writer) error {
	run := sarifRun{sarif.NewRun("fit versus", r.Tool.Version)}
	run.Tool.Driver.InformationURI = "https://github.com/fit-eval/fit/blob/main/" + report.ValidityPage
	for i := range r.Cells {
		cell := &r.Cells[i]
		for _, flag := range cell.Integrity {
			run.add("integrity/"+flag.Kind, "sign of cheating: the agent "+evidence.Meaning(flag.Kind),
				levelOf(flag.Severity), cmp.Or(flag.Evidence, flag.Kind), flag.Address(), cell)
		}
		for j := range cell.Verdicts {
			run.addVerdict(&cell.Verdicts[j], cell)
		}
	}
	return robot(w, run.Log())
}

// addVerdict adds the citations of members that failed a run, if the panel failed it, too.
func (r sarifRun) addVerdict(verdict *judge.PanelVerdict, cell *Cell) {
	if verdict.Result == nil || *verdict.Result == judge.Pass {
		return
	}
	for _, vote := range verdict.Votes {
		if vote.Result == nil || *vote.Result == judge.Pass {
			continue
		}
		for _, item := range vote.Evidence {
			address, _, _ := strings.Cut(item, " ")
			r.add("judge/"+verdict.Dimension, "the panel of judges failed the run in "+verdict.Dimension, "warning",
				fmt.Sprintf("%s: %s", vote.Member, cmp.Or(vote.Critique, item)), address, cell)
		}
	}
}

func levelOf(severity session.Severity) string {
	switch severity {
	case session.SeverityCritical, session.SeverityHigh:
		return "error"
	case session.SeverityMedium:
	}
	return "warning"
}

func (r sarifRun) add(rule, meaning, level, message, address string, cell *Cell) {
	properties := sarifProperties{
		Task:    cell.Task,
		Arm:     cell.Arm,
		Run:     cell.Run,
		Address: address,
	}
	result := sarif.Result{
		RuleID:  rule,
		Level:   level,
		Message: sarif.Message{Text: fmt.Sprintf("%s/%s/%d: %s", cell.Task, cell.Arm, cell.Run, message)},
	}
	if location, removed, ok := locate(address); ok {
		result.Locations, properties.Removed = []sarif.Location{location}, removed
	}
	result.Properties = properties
	r.Add(meaning, result)
}

// place is file:12, file:12-14 or file:-11.
var place = lazyregexp.New(`^(.+):(-?)(\d+)(?:-(\d+))?$`)

// locate turns an address into a location in a file; other addresses have none.
func locate(address string) (location sarif.Location, removed, ok bool) {
	parts := place.FindStringSubmatch(address)
	if parts == nil {
		if address == "" || strings.Contains(address, ":") || address == "verify" {
			return sarif.Location{}, false, false
		}
		location.Physical.Artifact.URI = uri(address) // a whole file
		return location, false, true
	}
	if parts[1] == "trace" || parts[1] == "req" {
		return sarif.Location{}, false, false
	}
	start, err := strconv.Atoi(parts[3])
	if err != nil || start < 1 {
		return sarif.Location{}, false, false
	}
	end, _ := strconv.Atoi(parts[4])
	location.Physical = sarif.Physical{
		Artifact: sarif.Artifact{URI: uri(parts[1])},
		Region:   &sarif.Region{StartLine: start, EndLine: max(0, end)},
	}
	if end < start {
		location.Physical.Region.EndLine = 0
	}
	return location, parts[2] == "-", true
}
