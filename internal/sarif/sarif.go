// Package sarif has the parts of a SARIF 2.1.0 log that findings are written in, for programs that
// show findings beside code.
package sarif

import "slices"

// Log is a whole document.
type Log struct {
	Schema  string `json:"$schema"`
	Version string `json:"version"`
	Runs    []Run  `json:"runs"`
}

// Run is what one tool found.
type Run struct {
	Tool    Tool     `json:"tool"`
	Results []Result `json:"results"`
	// ColumnKind says how columns are counted; validators require it even where there are none.
	ColumnKind string `json:"columnKind"`
}

// Tool is the tool that found it.
type Tool struct {
	Driver Driver `json:"driver"`
}

// Driver describes the tool.
type Driver struct {
	Name            string `json:"name"`
	SemanticVersion string `json:"version,omitempty"`
	// InformationURI is the page of the web that says what the findings rest on.
	InformationURI string `json:"informationUri,omitempty"`
	Rules          []Rule `json:"rules"`
}

// Rule is a kind of finding.
type Rule struct {
	ID               string  `json:"id"`
	ShortDescription Message `json:"shortDescription"`
}

// Message is a text for people.
type Message struct {
	Text string `json:"text"`
}

// Result is one finding.
type Result struct {
	RuleID    string     `json:"ruleId"`
	RuleIndex int        `json:"ruleIndex"`
	Level     string     `json:"level"` // error, warning or note
	Message   Message    `json:"message"`
	Locations []Location `json:"locations,omitempty"`
	// Properties are the tool's own.
	Properties any `json:"properties,omitempty"`
}

// Location is where a finding is.
type Location struct {
	Physical Physical `json:"physicalLocation"`
}

// Physical is a place in a file.
type Physical struct {
	Artifact Artifact `json:"artifactLocation"`
	Region   *Region  `json:"region,omitempty"`
}

// Artifact is a file, as a relative URI.
type Artifact struct {
	URI string `json:"uri"`
}

// Region is some lines of a file.
type Region struct {
	StartLine int `json:"startLine"`
	EndLine   int `json:"endLine,omitempty"`
}

// NewRun returns the run of a tool, without findings.
func NewRun(tool, version string) *Run {
	return &Run{
		Tool:       Tool{Driver: Driver{Name: tool, SemanticVersion: version, Rules: []Rule{}}},
		Results:    []Result{},
		ColumnKind: "unicodeCodePoints",
	}
}

// Log returns the document with this run alone.
func (r *Run) Log() Log {
	return Log{
		Schema:  "https://json.schemastore.org/sarif-2.1.0.json",
		Version: "2.1.0",
		Runs:    []Run{*r},
	}
}

// Add adds a finding, and its rule where it is the first of it.
func (r *Run) Add(meaning string, result Result) {
	rules := &r.Tool.Driver.Rules
	at := slices.IndexFunc(*rules, func(known Rule) bool { return known.ID == result.RuleID })
	if at < 0 {
		at = len(*rules)
		*rules = append(*rules, Rule{ID: result.RuleID, ShortDescription: Message{meaning}})
	}
	result.RuleIndex = at
	r.Results = append(r.Results, result)
}
