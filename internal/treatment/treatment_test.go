package treatment_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/gateway/calls"
	"github.com/fit-eval/fit/internal/treatment"
	"github.com/fit-eval/fit/ledger"
	"github.com/fit-eval/fit/redact"
)

// object is a JSON object of a request.
type object = map[string]any

// asked returns a request with a tool, as Claude Code makes it.
func asked(t testing.TB, system string, messages ...object) exchange {
	t.Helper()
	return exchange{Model: "asked", Body: encode(t, object{
		"model":    "asked",
		"system":   system,
		"tools":    []object{{"name": "Read", "description": "Reads a file."}},
		"messages": messages,
	})}
}

func user(text string) object { return object{"role": "user", "content": text} }

// call is a tool call of the model.
func call(tool string, input object) object {
	return object{"role": "assistant", "content": []object{{
		"type":  "tool_use",
		"id":    "1",
		"name":  tool,
		"input": input,
	}}}
}

// result answers a tool call.
func result(id, text string, failed bool) object {
	return object{"role": "user", "content": []object{{
		"type":        "tool_result",
		"tool_use_id": id,
		"content":     text,
		"is_error":    failed,
	}}}
}

func skillPiece(name, description, body string, others ...string) treatment.Piece {
	return treatment.Piece{
		Piece:  ledger.Piece{Kind: ledger.PieceSkill, Name: name},
		Text:   description,
		Body:   body,
		Others: others,
	}
}

func instructions(text string) treatment.Piece {
	return treatment.Piece{Piece: ledger.Piece{Kind: ledger.PieceInstructions, Name: "AGENTS.md"}, Text: text}
}

// read grades pieces and returns them.
func read(t testing.TB, path string, pieces ...treatment.Piece) *ledger.Treatment {
	t.Helper()
	found, err := treatment.Read(treatment.Config{Calls: path, Pieces: pieces})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestASkillThatIsNotOfferedIsAbsent, although its name and its description are all over the place.
func TestASkillThatIsNotOfferedIsAbsent(t *testing.T) {
	const description = "Converts tables to CSV. Use it for plumbus files."
	path := record(t, nil, asked(t,
		"Helpful words.\n- other-tools: "+description+"\n- my-csv-tools: "+description+
			"\n├───csv-tools/\nRead .agents/skills/csv-tools/SKILL.md.",
		user("Use csv-tools, please. The skill `csv-tools` helps."),
		object{"role": "assistant", "content": "csv-tools: " + description},
		result("1", "- csv-tools: "+description, false),
	))
	house := instructions("House rules for everybody:\n- csv-tools: use it for everything that has columns\n")
	found := read(t, path, skillPiece("csv-tools", description, ""))
	if p := found.Pieces[0]; p.Given != ledger.GivenAbsent {
		t.Errorf("%+v", p)
	}
	path = record(t, nil, asked(t, "Helpful words.", user(house.Text+"\nGo.")))
	if p := read(t, path, skillPiece("csv-tools", description, ""), house).Pieces[0]; p.Given != ledger.GivenAbsent {
		t.Errorf("named in the instructions only: %+v", p)
	}
}

// TestWhiteSpaceEntitiesAndLineNumbersDoNotCount on either side.
func TestWhiteSpaceEntitiesAndLineNumbersDoNotCount(t *testing.T) {
	const text = "# Rules\r\n\r\nUse tabs & \"quotes\" <always>.\n\n\tNever   sleep.\n1: first\n"
	for name, given := range map[string]string{
		"as it is":     text,
		"escaped":      "<rules># Rules\nUse tabs &amp; &quot;quotes&quot; &lt;always&gt;.\nNever sleep.\n1: first</rules>",
		"numbered":     " 1→# Rules\n 2→\n 3→Use tabs & \"quotes\" <always>.\n 4→\n     5→Never sleep.\n 6→1: first",
		"in a column":  " 1 | # Rules\n 2 | \n 3 | Use tabs & \"quotes\" <always>.\n 4 | Never sleep.\n 5 | 1: first",
		"with a colon": "1: # Rules\n2: Use tabs & \"quotes\" <always>.\n3: Never sleep.\n4: first",
		"joined":       "# Rules Use tabs & \"quotes\" <always>. Never sleep. first",
	} {
		t.Run(name, func(t *testing.T) {
			p := read(t, record(t, nil, asked(t, given, user("Go."))), instructions(text)).Pieces[0]
			if p.Given != ledger.GivenWhole {
				t.Errorf("%s: %+v", name, p)
			}
		})
	}
}

// TestBothSidesAreRedacted: a secret in an instruction file is not in the record, and the file was
// still given as a whole.
func TestBothSidesAreRedacted(t *testing.T) {
	const text = "# Rules\n\nThe staging key is hunter2-hunter2 and it expires.\n"
	redactor := redact.New(redact.Config{Extra: map[string]string{"KEY": "hunter2-hunter2"}})
	path := record(t, redactor, asked(t, text, user("Go.")))
	for want, r := range map[string]*redact.Redactor{ledger.GivenWhole: redactor, ledger.GivenPart: nil} {
		t.Run(want, func(t *testing.T) {
			found, err := treatment.Read(treatment.Config{
				Calls:    path,
				Pieces:   []treatment.Piece{instructions(text)},
				Redactor: r,
			})
			if err != nil || found.Pieces[0].Given != want {
				t.Errorf("want %s: %+v, %v", want, found, err)
			}
		})
	}
}

// TestTheFirstTurnWithToolsCounts, not the requests before it that agents make for themselves.
func TestTheFirstTurnWithToolsCounts(t *testing.T) {
	rules := instructions("Keep the okapi tests under one second and never skip them.")
	bare := func(text string) exchange { return exchange{Body: encode(t, object{"messages": []object{user(text)}})} }
	counting := asked(t, rules.Text, user("Go."))
	counting.Path = "/v1/messages/count_tokens"
	failing := asked(t, rules.Text, user("Go."))
	failing.outcome = calls.Budget
	found := read(t, record(t, nil, bare("quota"), counting, failing, bare("Write a title."),
		asked(t, "Nothing.", user("Go.")), asked(t, rules.Text, user("Go."))), rules)
	if p := found.Pieces[0]; p.Given != ledger.GivenAbsent || !slices.Equal(found.Tools, []string{"Read"}) {
		t.Errorf("%+v", found)
	}
	if p := read(t, record(t, nil, bare(rules.Text)), rules).Pieces[0]; p.Given != ledger.GivenWhole {
		t.Errorf("an agent without tools: %+v", p)
	}
}

// TestWhatCannotBeSeenIsUnknown, with the reason.
func TestWhatCannotBeSeenIsUnknown(t *testing.T) {
	rules := instructions("Keep the okapi tests under one second and never skip them.")
	stored := func(name string, value any) string {
		body := object{"tools": []object{{"name": "x"}}, "input": "Go."}
		body[name] = value
		return record(t, nil, exchange{Protocol: "responses", Path: "/v1/responses", Body: encode(t, body)})
	}
	for reason, path := range map[string]string{
		"not recorded":         filepath.Join(t.TempDir(), "missing.calls"),
		"no model call":        record(t, nil),
		"--record bodies":      recordAs(t, calls.Config{MetaOnly: true}, asked(t, rules.Text, user("Go."))),
		"previous_response_id": stored("previous_response_id", "resp_1"),
		"(prompt)":             stored("prompt", object{"id": "pmpt_1"}),
		"item_reference":       stored("input", []object{{"type": "item_reference", "id": "msg_1"}}),
		"no recorded":          record(t, nil, exchange{Body: []byte("broken")}),
	} {
		t.Run(reason, func(t *testing.T) {
			p := read(t, path, rules).Pieces[0]
			if p.Given != ledger.GivenUnknown || !strings.Contains(p.Why, reason) {
				t.Errorf("%s: %+v", reason, p)
			}
		})
	}
	found, err := treatment.Read(treatment.Config{
		Calls:   record(t, nil, asked(t, rules.Text, user("Go."))),
		Pieces:  []treatment.Piece{rules},
		Unknown: "a subscription does not pass the gateway",
	})
	if err != nil || found.Unknown == "" || found.Pieces[0].Given != ledger.GivenUnknown {
		t.Errorf("%+v, %v", found, err)
	}
}

// TestOpenedIsDecidedInTheConversation: by a call of the tool for skills, or by half of the lines
// that only this version has.
func TestOpenedIsDecidedInTheConversation(t *testing.T) {
	const body = "# CSV tools\n\nRead the header first.\nKeep the columns.\nCount the rows.\nThank the user.\n"
	old := "# CSV tools\n\nRead the header first.\nKeep the columns.\n"
	launched, failed := result("1", "Launching", false), result("1", "Unknown skill", true)
	for name, test := range map[string]struct {
		messages []object
		want     bool
	}{
		"by the tool":          {[]object{call("Skill", object{"skill": "csv-tools"}), launched}, true},
		"by a command":         {[]object{call("SlashCommand", object{"command": "/csv-tools now"}), launched}, true},
		"another skill":        {[]object{call("Skill", object{"skill": "pdf-tools"}), launched}, false},
		"in vain":              {[]object{call("Skill", object{"skill": "csv-tools"}), failed}, false},
		"by half of its lines": {[]object{call("Bash", object{}), result("1", "Count the rows.", false)}, true},
		"in numbered lines":    {[]object{result("1", " 6→Count the rows.\n 7→Thank the user.", false)}, true},
		"in two steps": {
			[]object{result("1", "Count the rows.", false), result("2", "Thank the user.", false)}, true,
		},
		"in JSON": {
			[]object{result("1", `[{"result":"5 | Count the rows.\n6 | Thank the user."}]`, false)}, true,
		},
		"lines of both versions": {[]object{result("1", old, false)}, false},
		"said by the model":      {[]object{{"role": "assistant", "content": body}}, false},
		"never":                  {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			first := asked(t, "- csv-tools: Converts tables.", user("Go."))
			later := asked(t, "- csv-tools: Converts tables.", append([]object{user("Go.")}, test.messages...)...)
			p := read(t, record(t, nil, first, later), skillPiece("csv-tools", "Converts tables.", body, old)).Pieces[0]
			if p.Given != ledger.GivenWhole || p.Opened == nil || *p.Opened != test.want {
				t.Errorf("%s: %+v", name, p)
			}
		})
	}
}

// TestLinesThatOthersHaveDoNotOpenASkill: neither those of another skill nor those that the model
// was given at the start.
func TestLinesThatOthersHaveDoNotOpenASkill(t *testing.T) {
	const shared = "Ask before you delete.\nWork in small steps.\nSay what you did.\n"
	csv := skillPiece("csv-tools", "Tables.", shared+"Count the rows.\n")
	pdf := skillPiece("pdf-tools", "Forms.", shared)
	first := asked(t, "- csv-tools: Tables.\n- pdf-tools: Forms.", user("Say what you did.\nWork in small steps."))
	later := asked(t, "", user("Say what you did.\nWork in small steps."), result("1", shared, false))
	for _, calls := range [][]exchange{{first}, {first, later}} {
		found := read(t, record(t, nil, calls...), csv, pdf)
		if *found.Pieces[0].Opened || found.Pieces[1].Opened != nil { // who could tell?
			t.Errorf("%d calls: %q", len(calls), grades(found))
		}
	}
}

// TestServedModelsAreTheirOwnNames, in every protocol, whole or as a stream.
func TestServedModelsAreTheirOwnNames(t *testing.T) {
	var all []exchange
	for _, reply := range []string{
		`{"type":"message","model":"claude-a"}`,
		"event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"model\":\"claude-a\"}}\n\n",
		"event: response.created\ndata: {\"type\":\"response.created\",\"response\":{\"model\":\"gpt-b\"}}\n\n",
		"data: {\"choices\":[]}\n\ndata: {\"model\":\"gpt-b\",\"choices\":[]}\n\ndata: [DONE]\n\n",
		"data: {\"candidates\":[],\"modelVersion\":\"gemini-c\"}\r\n\r\n",
		`{"error":"no"}`,
	} {
		x := asked(t, "", user("Go."))
		x.reply = reply
		all = append(all, x)
	}
	want := []ledger.Served{
		{Model: "claude-a", Asked: "asked", Calls: 2},
		{Model: "gpt-b", Asked: "asked", Calls: 2},
		{Model: "gemini-c", Asked: "asked", Calls: 1},
	}
	if diff := cmp.Diff(want, read(t, record(t, nil, all...)).Served); diff != "" {
		t.Error(diff)
	}
}

// TestToolServers: their tools are offered, named for later, or not there.
func TestToolServers(t *testing.T) {
	server := treatment.Piece{Piece: ledger.Piece{Kind: ledger.PieceServer, Name: "my-db"}}
	with := func(tool, text string, messages ...object) exchange {
		return exchange{Body: encode(t, object{
			"tools":    []object{{"name": tool, "description": "x"}},
			"messages": append([]object{user(text)}, messages...),
		})}
	}
	query := call("mcp__my-db__query", object{})
	for name, test := range map[string]struct {
		calls  []exchange
		given  string
		opened bool
	}{
		"offered":  {[]exchange{with("mcp__my-db__query", "Go.")}, ledger.GivenWhole, false},
		"as here":  {[]exchange{with("my_db_query", "Go."), with("x", "Go.", query)}, ledger.GivenWhole, true},
		"deferred": {[]exchange{with("ToolSearch", "<deferred>mcp__my-db__query</deferred>")}, ledger.GivenName, false},
		"absent":   {[]exchange{with("mcp__my-db2__query", "Query my-db.")}, ledger.GivenAbsent, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := read(t, record(t, nil, test.calls...), server).Pieces[0]
			if p.Given != test.given || *p.Opened != test.opened {
				t.Errorf("%s: %+v", name, p)
			}
		})
	}
}

// TestFindReadsWhatTheAgentReads and is safe in a hostile directory.
func TestFindReadsWhatTheAgentReads(t *testing.T) {
	dir := write(t, project)
	outside := write(t, map[string]string{"secret.md": "secret"})
	for name, target := range map[string]string{".rules/out.md": outside + "/secret.md", ".opencode": ".agents"} {
		t.Run(name, func(t *testing.T) {
			if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		})
	}
	if err := syscall.Mkfifo(filepath.Join(dir, ".rules/fifo.md"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		places agent.Places
		want   []string
	}{
		"the first only": {
			agent.Places{Instructions: []string{"AGENTS.override.md", "AGENTS.md", "CLAUDE.md"}, OneOf: true},
			[]string{"AGENTS.md"},
		},
		"imports": {
			agent.Places{Instructions: []string{"CLAUDE.md"}, Imports: true},
			[]string{"CLAUDE.md", "docs/style.md"},
		},
		"the same skill in two places": {
			agent.Places{Skills: []string{".agents/skills", ".opencode/skills", ".claude/skills", "missing"}},
			[]string{"csv-tools", "pdf-tools"},
		},
		"definitions": {
			agent.Places{Agents: []string{".claude/agents"}, Commands: []string{".claude/commands"}},
			[]string{"reviewer", "ship"},
		},
		"a hostile directory": {
			agent.Places{Instructions: []string{".rules", "docs/*.md"}},
			[]string{".rules/fifo.md it cannot be read", ".rules/out.md it cannot be read", "docs/style.md"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			pieces, err := treatment.Find(dir, test.places)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, p := range pieces {
				why, _, _ := strings.Cut(p.Why, ":")
				got = append(got, strings.TrimSpace(p.Name+" "+why))
				if p.Why == "" && (p.Digest == "" || p.Text == "" || p.Path == "" || p.From != ledger.FromTask) {
					t.Errorf("%s: %+v", name, p)
				}
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("%s: %q, want %q", name, got, test.want)
			}
		})
	}
}

// TestADamagedRecordProvesNothing: the call that carried a piece may be the one that is lost. An
// end that is torn is what a killed session leaves, and its calls before are whole.
func TestADamagedRecordProvesNothing(t *testing.T) {
	path := record(t, nil, asked(t, "Be kind."), asked(t, "Be kind."), asked(t, "Be brief."))
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	damaged := bytes.Clone(whole)
	damaged[len(damaged)/2] ^= 0xff
	for name, test := range map[string]struct {
		data    []byte
		unknown bool
	}{"whole": {whole, false}, "torn": {whole[:len(whole)-1], false}, "damaged": {damaged, true}} {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile(path, test.data, 0o600); err != nil {
				t.Fatal(err)
			}
			found, err := treatment.Read(treatment.Config{Calls: path})
			if err != nil || strings.Contains(found.Unknown, "damaged") != test.unknown {
				t.Errorf("%v, %+v", err, found)
			}
		})
	}
}
