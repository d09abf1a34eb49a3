package treatment_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fit-eval/fit/internal/treatment"
	"github.com/fit-eval/fit/ledger"
)

// start is a first request as agents make them.
func start(lines ...string) *treatment.Start {
	return &treatment.Start{
		Model:   "m",
		System:  []string{"You are an agent.\nHelp the user.\n\n" + strings.Join(lines, "\n") + "\nBe brief.\n"},
		Texts:   []string{"Convert the table."},
		Tools:   []treatment.Tool{{Name: "Read", Definition: `{"name":"Read"}`}},
		Options: map[string]string{"temperature": "1"},
	}
}

func TestDifferencesNameWhatNothingDeclares(t *testing.T) {
	csv := skillPiece("csv-tools", "Converts tables.", "")
	csv.Path = ".agents/skills/csv-tools/SKILL.md"
	rules := instructions("Keep the okapi tests under one second.\nNever skip them.\n")
	server := treatment.Piece{Piece: ledger.Piece{Kind: ledger.PieceServer, Name: "db"}}
	for name, test := range map[string]struct {
		change func(*treatment.Start)
		pieces []treatment.Piece
		want   []treatment.Difference
	}{
		"nothing": {func(*treatment.Start) {}, nil, nil},
		"a skill with the agent's words around it": {
			func(s *treatment.Start) {
				s.System = append(s.System, "## Skills\nThese skills exist:\n- csv-tools: Converts tables.\nOpen them when needed.")
			},
			[]treatment.Piece{csv},
			[]treatment.Difference{{
				What:     treatment.DiffersSystem,
				After:    "## Skills\nThese skills exist:\n- csv-tools: Converts tables.\nOpen them when needed.",
				Declared: true,
			}},
		},
		"the directory of a skill": {
			func(s *treatment.Start) { s.System = append(s.System, "- `r1` = `{cwd}/.agents/skills`") },
			[]treatment.Piece{csv},
			[]treatment.Difference{{
				What: treatment.DiffersSystem, After: "- `r1` = `{cwd}/.agents/skills`", Declared: true,
			}},
		},
		"instructions": {
			func(s *treatment.Start) { s.Texts = append(s.Texts, "Keep the okapi tests under one second.") },
			[]treatment.Piece{rules},
			[]treatment.Difference{{
				What: treatment.DiffersMessages, After: "Keep the okapi tests under one second.", Declared: true,
			}},
		},
		"instructions that both arms have": {
			func(s *treatment.Start) { s.Texts = append(s.Texts, "Never skip them.") },
			[]treatment.Piece{rules, rules},
			[]treatment.Difference{{What: treatment.DiffersMessages, After: "Never skip them."}},
		},
		"a sentence that nobody declared": {
			func(s *treatment.Start) { s.System[0] = strings.Replace(s.System[0], "Be brief.", "Be thorough.", 1) },
			[]treatment.Piece{csv, rules},
			[]treatment.Difference{{What: treatment.DiffersSystem, Before: "Be brief.", After: "Be thorough."}},
		},
		"a server's tool, and another": {
			func(s *treatment.Start) {
				s.Tools = append(s.Tools, treatment.Tool{Name: "mcp__db__query", Definition: "{}"},
					treatment.Tool{Name: "Web", Definition: "{}"})
			},
			[]treatment.Piece{server},
			[]treatment.Difference{
				{What: treatment.DiffersTools, After: "Web"},
				{What: treatment.DiffersTools, After: "mcp__db__query", Declared: true},
			},
		},
		"model and sampling": {
			func(s *treatment.Start) { s.Model, s.Options["temperature"], s.Options["top_p"] = "n", "0", "0.5" },
			nil,
			[]treatment.Difference{
				{What: treatment.DiffersModel, Before: "m", After: "n"},
				{What: treatment.DiffersOptions, Before: "temperature=1", After: "temperature=0"},
				{What: treatment.DiffersOptions, After: "top_p=0.5"},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			// the word in the middle differs from start to start
			a, noise, b := start("Your lucky word is okay today."), start("Your lucky word is mango today."),
				start("Your lucky word is tulip today.")
			test.change(b)
			if diff := cmp.Diff(test.want, treatment.Differences(a, b, noise, test.pieces)); diff != "" {
				t.Errorf("%s:\n%s", name, diff)
			}
		})
	}
}

// TestTwoStartsOfARealAgentDoNotDiffer, although dates, ids and directories do; a skill is what
// makes them differ.
func TestTwoStartsOfARealAgentDoNotDiffer(t *testing.T) {
	for _, name := range []string{"claude-opus-4-8", "codex", "gemini", "qwen-code"} {
		all := recorded(t, name)
		change := func(pairs ...string) *treatment.Start {
			t.Helper()
			changed := slices.Clone(all)
			for i := range changed {
				changed[i].Body = []byte(strings.NewReplacer(pairs...).Replace(string(changed[i].Body)))
			}
			s, err := treatment.ReadStart(record(t, nil, changed...), "")
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		again := change("2026-11-18", "2026-12-24", "01a1", "02b2", "/home/u/project", "/tmp/other")
		noise := change("/home/u/project", "/tmp/third")
		if found := treatment.Differences(change(), again, noise, nil); len(found) > 0 {
			t.Errorf("%s: %+v", name, found)
		}
		csv := skillPiece("csv-tools", "Converts tables to CSV & \"friends\". Use it for plumbus files.", "")
		found := treatment.Differences(change("csv-tools", "x", "plumbus", "x"), change(), nil, []treatment.Piece{csv})
		if len(found) == 0 || slices.ContainsFunc(found, func(d treatment.Difference) bool { return !d.Declared }) {
			t.Errorf("%s: %+v", name, found)
		}
	}
}
