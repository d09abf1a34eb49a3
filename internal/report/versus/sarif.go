package versus

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/fit-eval/fit/internal/evidence"
	"github.com/fit-eval/fit/internal/judge"
	"github.com/fit-eval/fit/internal/lazyregexp"
	"github.com/fit-eval/fit/session"
)

// The parts of a SARIF 2.1.0 log that are written here.
type sarifLog struct {
	Schema  string     `json:"$schema"`
	Version string     `json:"version"`
	Runs    []sarifRun `json:"runs"`
}

type sarifRun struct {
	Tool    sarifTool     `json:"tool"`
	Results []sarifResult `json:"results"`
	// ColumnKind says how columns are counted; there are none here, but validators require it.
	ColumnKind string `json:"columnKind"`
}

type sarifTool struct {
	Driver sarifDriver `json:"driver"`
}

type sarifDriver struct {
	Name            string      `json:"name"`
	SemanticVersion string      `json:"version,omitempty"`
	Rules           []sarifRule `json:"rules"`
}

type sarifRule struct {
	ID               string       `json:"id"`
	ShortDescription sarifMessage `json:"shortDescription"`
}

type sarifMessage struct {
	Text string `json:"text"`
}

type sarifResult struct {
	RuleID     string          `json:"ruleId"`
	RuleIndex  int             `json:"ruleIndex"`
	Level      string          `json:"level"`
	Message    sarifMessage    `json:"message"`
	Locations  []sarifLocation `json:"locations,omitempty"`
	Properties sarifProperties `json:"properties"`
}

type sarifLocation struct {
	Physical sarifPhysical `json:"physicalLocation"`
}

type sarifPhysical struct {
	Artifact sarifArtifact `json:"artifactLocation"`
	Region   *sarifRegion  `json:"region,omitempty"`
}

type sarifArtifact struct {
	URI string `json:"uri"`
}

type sarifRegion struct {
	StartLine int `json:"startLine"`
	EndLine   int `json:"endLine,omitempty"`
}

// sarifProperties say which run a finding is about. Removed says that the line is one of the file
// before the change.
type sarifProperties struct {
	Task    string `json:"task"`
	Arm     string `json:"arm"`
	Run     int    `json:"run"`
	Address string `json:"address,omitempty"`
	Removed bool   `json:"removed,omitempty"`
}

// SARIF writes the integrity flags and what judges found wrong, each with its file and line, for
// programs that show findings beside code.
func (r *EvalReport) SARIF(w io.Writer) error {
	run := sarifRun{
		Tool: sarifTool{Driver: sarifDriver{
			Name:            "fit versus",
			SemanticVersion: r.Tool.Version,
			Rules:           []sarifRule{},
		}},
		Results:    []sarifResult{},
		ColumnKind: "unicodeCodePoints",
	}
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
	return robot(w, sarifLog{
		Schema:  "https://json.schemastore.org/sarif-2.1.0.json",
		Version: "2.1.0",
		Runs:    []sarifRun{run},
	})
}

// addVerdict adds the citations of members that failed a run, if the panel failed it, too.
func (r *sarifRun) addVerdict(verdict *judge.PanelVerdict, cell *Cell) {
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

func (r *sarifRun) add(rule, meaning, level, message, address string, cell *Cell) {
	rules := &r.Tool.Driver.Rules
	at := slices.IndexFunc(*rules, func(known sarifRule) bool { return known.ID == rule })
	if at < 0 {
		at = len(*rules)
		*rules = append(*rules, sarifRule{ID: rule, ShortDescription: sarifMessage{meaning}})
	}
	result := sarifResult{
		RuleID:    rule,
		RuleIndex: at,
		Level:     level,
		Message:   sarifMessage{fmt.Sprintf("%s/%s/%d: %s", cell.Task, cell.Arm, cell.Run, message)},
		Properties: sarifProperties{
			Task:    cell.Task,
			Arm:     cell.Arm,
			Run:     cell.Run,
			Address: address,
		},
	}
	if location, removed, ok := locate(address); ok {
		result.Locations, result.Properties.Removed = []sarifLocation{location}, removed
	}
	r.Results = append(r.Results, result)
}

// place is file:12, file:12-14 or file:-11.
var place = lazyregexp.New(`^(.+):(-?)(\d+)(?:-(\d+))?$`)

// locate turns an address into a location in a file; other addresses have none.
func locate(address string) (location sarifLocation, removed, ok bool) {
	parts := place.FindStringSubmatch(address)
	if parts == nil {
		if address == "" || strings.Contains(address, ":") || address == "verify" {
			return sarifLocation{}, false, false
		}
		location.Physical.Artifact.URI = uri(address) // a whole file
		return location, false, true
	}
	if parts[1] == "trace" || parts[1] == "req" {
		return sarifLocation{}, false, false
	}
	start, err := strconv.Atoi(parts[3])
	if err != nil || start < 1 {
		return sarifLocation{}, false, false
	}
	end, _ := strconv.Atoi(parts[4])
	location.Physical = sarifPhysical{
		Artifact: sarifArtifact{uri(parts[1])},
		Region:   &sarifRegion{StartLine: start, EndLine: max(0, end)},
	}
	if end < start {
		location.Physical.Region.EndLine = 0
	}
	return location, parts[2] == "-", true
}
