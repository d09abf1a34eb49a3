package local

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"

	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/internal/gateway"
	"github.com/fit-eval/fit/internal/gateway/calls"
	"github.com/fit-eval/fit/internal/treatment"
	"github.com/fit-eval/fit/session"
)

// unsaid returns what the agent shows as a reply of its model that no reply at the gateway has;
// empty if there is nothing, or nobody can know. A program of the project inside of the agent can
// make up replies, and as many calls as it likes. Where the service or a deliberate fault failed a
// call, agents put their own words in place of a reply.
func (a *attempt) unsaid() (string, error) {
	_, troubled := a.seenByGateway()
	if len(a.stock.programs) == 0 || a.record.Gateway != gateway.On || troubled || a.prepared.Faults != nil {
		return "", nil
	}
	type at struct {
		lane, parent string
		turn         int
	}
	turns, order := map[at]*treatment.Turn{}, []at{}
	_, _, err := a.readUsage(agentTrace, func(e *session.EnrichedEvent) {
		message := e.Kind == session.KindMessage && e.Role == "assistant" && e.Label == "" && e.Error == nil
		if !message && (e.Kind != session.KindToolCall || e.Tool == nil) {
			return
		}
		key := at{e.Lane, e.Parent, e.TurnIndex}
		if turns[key] == nil {
			turns[key] = &treatment.Turn{}
			order = append(order, key)
		}
		if message {
			turns[key].Text += e.Text + "\n"
			return
		}
		turns[key].Calls = append(turns[key].Calls, treatment.ToolUse{ID: e.Tool.CallID, Texts: textsIn(e.Tool.Args)})
	})
	if err != nil {
		return "", err
	}
	var shown []treatment.Turn
	for _, key := range order {
		shown = append(shown, *turns[key])
	}
	unsaid, err := treatment.Unsaid(filepath.Join(a.dir, calls.Path(agentTrace)), shown)
	return display.CutRunes(display.Line(unsaid), shownText), err
}

// textsIn returns the texts of a JSON value.
func textsIn(args json.RawMessage) []string {
	var value any
	if json.Unmarshal(args, &value) != nil {
		return nil
	}
	var collect func(value any) []string
	collect = func(value any) (texts []string) {
		switch value := value.(type) {
		case string:
			return []string{value}
		case []any:
			for _, element := range value {
				texts = append(texts, collect(element)...)
			}
		case map[string]any:
			for _, name := range slices.Sorted(maps.Keys(value)) {
				texts = append(texts, collect(value[name])...)
			}
		}
		return texts
	}
	return collect(value)
}
