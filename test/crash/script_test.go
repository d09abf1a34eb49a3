package crash

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/model/scripted"
)

// The meeting: in every round the facilitator asks everybody at once and waits for all answers. Ann
// first asks ben, and eve tells everybody when she begins.
const meetingSummary = "Everybody has answered in every round."

var (
	meetingNames  = []string{"ann", "ben", "cat", "dan", "eve"}
	meetingRounds = rounds()
	// meetingMessages is how many messages the meeting has: everybody is asked and answers, ann
	// asks and ben answers, eve announces once.
	meetingMessages = meetingRounds*(2*5+2) + 1
)

// rounds is how long the meeting is: a round that is followed by another, and more in make soak.
func rounds() int {
	if os.Getenv("FIT_SOAK") != "" {
		return 4
	}
	return 2
}

// meetingScript plays all members of the meeting.
func meetingScript(t *testing.T) *scripted.Script {
	t.Helper()
	script, err := scripted.New(scripted.Script{
		Captures: []scripted.Capture{
			{Var: "fromLead", From: "prompt", Regex: `\[ask#(\d+)\] facilitator:`},
			{Var: "fromAnn", From: "prompt", Regex: `\[ask#(\d+)\] ann:`},
		},
		Scenarios: []scripted.Scenario{
			{Name: "facilitator", When: scripted.Cond{Tool: "orchestration/Conclude"}, Turns: facilitatorTurns()},
			{Name: "ann", When: scripted.Cond{System: "You are ann."}, Turns: participantTurns(
				scripted.Case{
					When: scripted.Cond{Prompt: "] facilitator:"},
					Turn: calls(tool("Ask", `{"to":"ben","question":"What shall I say?"}`)),
				},
				scripted.Case{
					When: scripted.Cond{Prompt: "] ben:"},
					Turn: calls(tool("Answer", `{"message":"I say what ben says."}`)),
				},
			)},
			{Name: "ben", When: scripted.Cond{System: "You are ben."}, Turns: participantTurns(
				scripted.Case{
					When: scripted.Cond{Prompt: "] facilitator:", Any: []scripted.Cond{{Prompt: "] ann:"}}},
					Turn: calls(tool("Answer", `{"message":"Say yes.","askId":${fromAnn}}`),
						tool("Answer", `{"message":"Yes.","askId":${fromLead}}`)),
				},
				scripted.Case{
					When: scripted.Cond{Prompt: "] ann:"},
					Turn: calls(tool("Answer", `{"message":"Say yes.","askId":${fromAnn}}`)),
				},
				scripted.Case{
					When: scripted.Cond{Prompt: "] facilitator:"},
					Turn: calls(tool("Answer", `{"message":"Yes.","askId":${fromLead}}`)),
				},
			)},
			{Name: "eve", When: scripted.Cond{System: "You are eve."}, Turns: append(
				[]scripted.Turn{calls(tool("Announce", `{"message":"I begin."}`),
					tool("Answer", `{"message":"Ready.","askId":${fromLead}}`)), {Text: "Done."}},
				participantTurns(answersLead())...,
			)},
			{Name: "others", Turns: participantTurns(answersLead())},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return script
}

func tool(name, input string) scripted.Call {
	return scripted.Call{MCP: "orchestration/" + name, Input: []byte(input)}
}

func calls(list ...scripted.Call) scripted.Turn { return scripted.Turn{Calls: list} }

func answersLead() scripted.Case {
	return scripted.Case{
		When: scripted.Cond{Prompt: "] facilitator:"},
		Turn: calls(tool("Answer", `{"message":"Yes.","askId":${fromLead}}`)),
	}
}

// participantTurns go round forever: look at what is new, act on it or take note of it, end the
// turn.
func participantTurns(cases ...scripted.Case) []scripted.Turn {
	return []scripted.Turn{
		{Label: "look", Cases: cases, Goto: "nothing"},
		{Text: "Done."},
		{Goto: "look"},
		{Label: "nothing", Text: "Noted."},
		{Goto: "look"},
	}
}

// facilitatorTurns count the answers of each round, which may come all at once or one by one.
func facilitatorTurns() []scripted.Turn {
	var turns []scripted.Turn
	team := len(meetingNames)
	for round := range meetingRounds {
		ask := calls(tool("Ask", fmt.Sprintf(`{"question":"This is round %d. Do you agree?"}`, round+1)))
		ask.Label = fmt.Sprintf("ask %d", round)
		turns = append(turns, ask)
		for had := range team {
			count := scripted.Turn{Goto: fmt.Sprintf("wait %d %d", round, had)}
			for more := team - had; more > 0; more-- {
				next := fmt.Sprintf("wait %d %d", round, had+more)
				if had+more == team {
					next = fmt.Sprintf("ask %d", round+1)
				}
				count.Cases = append(count.Cases,
					scripted.Case{
						When: scripted.Cond{Prompt: "re:" + strings.Repeat(`(?s:.*)\[answer#`, more)},
						Turn: scripted.Turn{Goto: next},
					})
			}
			turns = append(turns, scripted.Turn{Label: fmt.Sprintf("wait %d %d", round, had), Text: "I wait."}, count)
		}
	}
	end := calls(tool("Conclude", fmt.Sprintf(`{"verdict":"success","summary":%q}`, meetingSummary)))
	end.Label = fmt.Sprintf("ask %d", meetingRounds)
	return append(turns, end, scripted.Turn{Text: "That was it."})
}
