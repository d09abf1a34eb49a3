package render

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestEveryLaneKeepsItsColour(t *testing.T) {
	for lane, want := range map[string]int{
		"agent": 1, "lead": 1, "technical-writer": 0, "security-engineer": 2, "judge": 3, "improvement-coach": 3,
		"advisor": 4, "release-engineer": 4,
		"staff-engineer": 5, "bob": 5, "facilitator": 6, "alice": 6, "supervisor": 7, "product-manager": 7,
		"orchestrator": 7,
	} {
		t.Run(lane, func(t *testing.T) {
			if got := paletteIndex(lane); got != want {
				t.Errorf("colour of %q = %d, want %d", lane, got, want)
			}
		})
	}
}

func TestHints(t *testing.T) {
	long := strings.Repeat("x", 100)
	for _, test := range []struct{ tool, input, want string }{
		{"Bash", `{"command":"go test ./...\necho done"}`, "go test ./..."},
		{"Bash", `{"command":"echo {\"a\":  1}"}`, "echo a: 1"},
		{"Bash", `{"command":"` + long + `"}`, strings.Repeat("x", 77) + "..."},
		{"Read", `{"file_path":"a.go"}`, "a.go"},
		{"Edit", `{"file_path":"a.go","replace_all":true}`, "a.go (replace_all)"},
		{"Grep", `{"pattern":"foo","path":"src"}`, "foo in src"},
		{"TodoWrite", `{"todos":[{},{}]}`, "2 todos"},
		{"TodoWrite", `{"todos":"none"}`, "0 todos"},
		{"Task", `{"description":"d"}`, "d"},
		{"mcp__orchestration__Ask", `{ "question": "why?" }`, `{"question":"why?"}`},
		{"mcp__orchestration__RollCall", ``, "{}"},
		{"Unknown", `{"command":"x"}`, ""},
		{"Bash", `null`, ""},
		{"Bash", `{"command":"ls \u001b[31mred"}`, `ls \x1b[31mred`},
	} {
		t.Run(test.tool, func(t *testing.T) {
			if got := Hint(test.tool, json.RawMessage(test.input)); got != test.want {
				t.Errorf("Hint(%s, %s) = %q, want %q", test.tool, test.input, got, test.want)
			}
		})
	}
}

func TestToolNames(t *testing.T) {
	for name, want := range map[string]string{
		"Bash": "Bash", "mcp__orc__ask": "ask", "mcp__orc__a__b": "a__b", "mcp__orc": "mcp__orc", "": "",
	} {
		t.Run(name, func(t *testing.T) {
			if got := ToolName(name); got != want {
				t.Errorf("ToolName(%q) = %q, want %q", name, got, want)
			}
		})
	}
}

// Lengths are counted in characters, whatever number of bytes or units a character takes.
func TestLengthsAreCountedInCharacters(t *testing.T) {
	if fits := strings.Repeat("🎈", 80); Preview(fits, false) != fits {
		t.Errorf("80 characters became %q", Preview(fits, false))
	}
	if got, want := Preview(strings.Repeat("🎈", 81), false), strings.Repeat("🎈", 77)+"..."; got != want {
		t.Errorf("81 characters became %q, want %q", got, want)
	}
}

func TestPreviews(t *testing.T) {
	for _, test := range []struct {
		content string
		isError bool
		want    string
	}{
		{"", true, "(no output)"},
		{"", false, "(ok)"},
		{"\n\n  first\nsecond", true, "first"},
		{strings.Repeat("é", 90), true, strings.Repeat("é", 77) + "..."},
		{"\x1b[2Jboo", true, `\x1b[2Jboo`},
	} {
		t.Run(test.content, func(t *testing.T) {
			if got := Preview(test.content, test.isError); got != test.want {
				t.Errorf("Preview(%q) = %q, want %q", test.content, got, test.want)
			}
		})
	}
}
