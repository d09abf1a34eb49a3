package view

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/bridge/server"
	"github.com/fit-eval/fit/internal/judge"
	"github.com/fit-eval/fit/internal/query"
	"github.com/fit-eval/fit/internal/report"
	"github.com/fit-eval/fit/internal/report/skilltest"
	"github.com/fit-eval/fit/internal/report/versus"
	"github.com/fit-eval/fit/ledger"
	"github.com/fit-eval/fit/session"
	"github.com/fit-eval/fit/stats"
)

var update = flag.Bool("update", false, "write the types of the page")

const pageTypes = "web/src/types.ts"

// TestThePageHasTheTypesOfTheServer: the page's types are those of the answers.
func TestThePageHasTheTypesOfTheServer(t *testing.T) {
	want := newTypeWriter().file()
	if *update {
		if err := os.WriteFile(pageTypes, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(pageTypes)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s is not what the Go types say; run go test ./internal/view -run Types -update", pageTypes)
	}
}

// typeWriter writes Go types as TypeScript. A type with a name of its own is an interface, every
// other one is written where it is used.
type typeWriter struct {
	names map[reflect.Type]string
	// written are types that write their JSON themselves.
	written map[reflect.Type]string
	// fields are texts of which there are few, by the names of their type and of themselves.
	fields map[string]string
	used   map[string]bool
	// never are the fields that Go could leave null and the server never does.
	never map[string]bool
}

func newTypeWriter() *typeWriter {
	never := map[string]bool{}
	for _, name := range []string{
		"Aligned.alignment",
		"AlignedSide.actions",
		"LaneMarks.marks",
		"LaneMarks.errorMarks",
		"Cells.tasks",
		"Cells.arms",
		"Cells.runs",
		"Cells.cells",
		"Group.tasks",
		"Plan.tasks",
		"Plan.arms",
		"FamilyComparison.pairs",
		"ExperimentList.roots",
		"ExperimentList.experiments",
		"Forest.tasks",
		"Comparison.tasks",
		"Report.groups",
		"FileChange.lines",
		"Diff.changes",
		"CellDetail.notes",
		"ExperimentDetail.views",
		"SkillTest.arms",
		"SkillTest.cases",
		"SkillTest.facts",
		"SkillCase.assertions",
		"SkillCase.runs",
		"SkillRun.rows",
		"ThreadList.threads",
		"Thread.runs",
		"ThreadView.posts",
		"Members.traces",
		"Members.members",
	} {
		never[name] = true
	}
	return &typeWriter{
		names: map[reflect.Type]string{
			reflect.TypeFor[listArm]():                "Arm",
			reflect.TypeFor[listEntry]():              "Experiment",
			reflect.TypeFor[listTrace]():              "TraceFile",
			reflect.TypeFor[experimentsAnswer]():      "ExperimentList",
			reflect.TypeFor[planAnswer]():             "Plan",
			reflect.TypeFor[report.Report]():          "Report",
			reflect.TypeFor[report.CheckRate]():       "CheckRate",
			reflect.TypeFor[report.Task]():            "ReportTask",
			reflect.TypeFor[report.Totals]():          "Totals",
			reflect.TypeFor[report.Provenance]():      "Provenance",
			reflect.TypeFor[report.Treatment]():       "Treatment",
			reflect.TypeFor[report.Reason]():          "Reason",
			reflect.TypeFor[report.Group]():           "Group",
			reflect.TypeFor[report.Factor]():          "Factor",
			reflect.TypeFor[report.Ratio]():           "Ratio",
			reflect.TypeFor[report.Comparison]():      "Comparison",
			reflect.TypeFor[report.MultiComparison](): "FamilyComparison",
			reflect.TypeFor[stats.Interval]():         "Interval",
			reflect.TypeFor[stats.Decision]():         "Decision",
			reflect.TypeFor[runningCell]():            "RunningCell",
			reflect.TypeFor[liveStatus]():             "Status",
			reflect.TypeFor[experimentAnswer]():       "ExperimentDetail",
			reflect.TypeFor[cellName]():               "CellId",
			reflect.TypeFor[cell]():                   "Cell",
			reflect.TypeFor[cellsAnswer]():            "Cells",
			reflect.TypeFor[forestAnswer]():           "Forest",
			reflect.TypeFor[citation]():               "Citation",
			reflect.TypeFor[vote]():                   "Vote",
			reflect.TypeFor[ledger.Piece]():           "GivenPiece",
			reflect.TypeFor[ledger.Treatment]():       "Given",
			reflect.TypeFor[diffLine]():               "DiffLine",
			reflect.TypeFor[fileChange]():             "FileChange",
			reflect.TypeFor[diff]():                   "Diff",
			reflect.TypeFor[cellAnswer]():             "CellDetail",
			reflect.TypeFor[imageRef]():               "Picture",
			reflect.TypeFor[callResult]():             "CallOutcome",
			reflect.TypeFor[block]():                  "Block",
			reflect.TypeFor[entry]():                  "Entry",
			reflect.TypeFor[pageAnswer]():             "PageOfEntries",
			reflect.TypeFor[laneMarks]():              "LaneMarks",
			reflect.TypeFor[lanesAnswer]():            "Lanes",
			reflect.TypeFor[overviewAnswer]():         "TraceOverview",
			reflect.TypeFor[findAnswer]():             "Found",
			reflect.TypeFor[placedMessage]():          "Message",
			reflect.TypeFor[exchangeAnswer]():         "Exchange",
			reflect.TypeFor[toolTime]():               "ToolTime",
			reflect.TypeFor[query.Action]():           "Action",
			reflect.TypeFor[query.Alignment]():        "Alignment",
			reflect.TypeFor[query.AlignedSide]():      "AlignedSide",
			reflect.TypeFor[query.AlignedStep]():      "AlignedStep",
			reflect.TypeFor[alignedAnswer]():          "Aligned",
			reflect.TypeFor[session.Milestone]():      "Milestone",
			reflect.TypeFor[judge.JudgeVerdict]():     "PanelVote",
			reflect.TypeFor[judge.PanelVerdict]():     "PanelVerdict",
			reflect.TypeFor[versus.Cell]():            "VersusCell",
			reflect.TypeFor[versus.AgentSummary]():    "AgentSummary",
			reflect.TypeFor[versus.Pair]():            "Pair",
			reflect.TypeFor[versus.EvalReport]():      "EvalReport",
			reflect.TypeFor[note]():                   "Note",
			reflect.TypeFor[skillAnswer]():            "SkillTest",
			reflect.TypeFor[skilltest.CaseRuns]():     "SkillCase",
			reflect.TypeFor[skilltest.RunRows]():      "SkillRun",
			reflect.TypeFor[skilltest.Row]():          "SkillRow",
			reflect.TypeFor[skilltest.Assertion]():    "SkillAssertion",
			reflect.TypeFor[server.Threads]():         "ThreadList",
			reflect.TypeFor[server.Thread]():          "Thread",
			reflect.TypeFor[server.Run]():             "ThreadRun",
			reflect.TypeFor[server.Post]():            "ThreadPost",
			reflect.TypeFor[server.View]():            "ThreadView",
			reflect.TypeFor[query.LaneInfo]():         "Member",
			reflect.TypeFor[membersAnswer]():          "Members",
		},
		written: map[reflect.Type]string{
			reflect.TypeFor[stats.AtK]():    "{ est: number; lo: number; hi: number } | { error: string }",
			reflect.TypeFor[query.Role]():   `"system" | "assistant" | "user" | "tool_result"`,
			reflect.TypeFor[report.Value](): "unknown",
		},
		fields: map[string]string{
			"Experiment.kind":  `"benchmark" | "versus" | "comparison"`,
			"Note.seal":        `"own" | "foreign" | "unsigned" | "altered"`,
			"Experiment.state": `"running" | "complete" | "incomplete" | "damaged" | "empty"`,
			"Status.state":     `"running" | "paused" | "stopping" | "ended"`,
			"Cell.state":       "Outcome",
			"GivenPiece.given": `"whole" | "part" | "name" | "absent" | "unknown"`,
			"DiffLine.sign":    `" " | "+" | "-" | "@" | "\\"`,
			"AlignedStep.op":   `"match" | "change" | "only-a" | "only-b"`,
			"Thread.state":     `"open" | "recessed" | "adjourned" | "failed"`,
			"ThreadPost.role":  `"person" | "agent" | "outcome" | "end" | "notice"`,
			"ThreadRun.state":  `"queued" | "running" | "paused" | "ended"`,
			"Block.type":       `"text" | "thinking" | "tool_use" | "image" | "other"`,
		},
		used:  map[string]bool{},
		never: never,
	}
}

func (w *typeWriter) file() string {
	types := slices.SortedFunc(maps.Keys(w.names), func(a, b reflect.Type) int {
		return strings.Compare(w.names[a], w.names[b])
	})
	var out strings.Builder
	out.WriteString("// Written by go test ./internal/view -run Types -update from the types of the server. Do not edit.\n" +
		"import type { Outcome } from \"./ui\";\n")
	for _, one := range types {
		fmt.Fprintf(&out, "\nexport interface %s {\n", w.names[one])
		for _, field := range w.fieldsOf(one, w.names[one]) {
			fmt.Fprintf(&out, "  %s;\n", field)
		}
		out.WriteString("}\n")
	}
	for name := range w.fields {
		if !w.used[name] {
			panic("no type has the field " + name)
		}
	}
	return out.String()
}

// fieldsOf lists the fields of a struct as encoding/json writes them.
func (w *typeWriter) fieldsOf(of reflect.Type, name string) []string {
	var list []string
	shadowed := map[string]bool{}
	for _, field := range reflect.VisibleFields(of) {
		if tag, _, _ := strings.Cut(field.Tag.Get("json"), ","); len(field.Index) == 1 && tag != "" {
			shadowed[tag] = true
		}
	}
	for _, field := range reflect.VisibleFields(of) {
		tag, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if !field.IsExported() || tag == "-" || field.Anonymous && tag == "" || len(field.Index) > 1 && shadowed[tag] {
			continue
		}
		if tag == "" {
			tag = field.Name
		}
		optional := strings.Contains(options, "omit")
		written := w.typeOf(field.Type, optional || w.never[name+"."+tag])
		if known := w.fields[name+"."+tag]; known != "" {
			w.used[name+"."+tag] = true
			written = known
		}
		if optional {
			tag += "?"
		}
		list = append(list, tag+": "+written)
	}
	return list
}

// typeOf writes a type. What is left out where it is empty is never null.
func (w *typeWriter) typeOf(t reflect.Type, optional bool) string {
	null := " | null"
	if optional {
		null = ""
	}
	if written, ok := w.written[t]; ok {
		return written
	}
	if name, ok := w.names[t]; ok {
		return name
	}
	marshaler := reflect.TypeFor[json.Marshaler]()
	if t.Kind() == reflect.Interface || t.Implements(marshaler) || reflect.PointerTo(t).Implements(marshaler) {
		return "unknown"
	}
	switch t.Kind() {
	case reflect.Pointer:
		if inner := w.typeOf(t.Elem(), false); inner != "unknown" {
			return inner + null
		}
		return "unknown"
	case reflect.Slice, reflect.Array:
		inner := w.typeOf(t.Elem(), true)
		if strings.ContainsAny(inner, "|&") && !strings.HasPrefix(inner, "{") {
			inner = "(" + inner + ")"
		}
		return inner + "[]" + null
	case reflect.Map:
		return "Record<string, " + w.typeOf(t.Elem(), true) + ">" + null
	case reflect.Struct:
		return "{ " + strings.Join(w.fieldsOf(t, ""), "; ") + " }"
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "boolean"
	}
	return "number"
}
