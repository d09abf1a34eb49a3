package given

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fit-eval/fit/ledger"
)

// One run shows which files reached its model, where in the prompt, at how many tokens, and what
// comes with the agent.
func TestWhatAModelWasGiven(t *testing.T) {
	opened := true
	skill, notes := ledger.Piece{
		Kind:  ledger.PieceSkill,
		Name:  "csv-tools",
		Path:  ".claude/skills/csv-tools/SKILL.md",
		From:  ledger.FromArm,
		Given: ledger.GivenWhole,
	}, ledger.Piece{
		Kind:   ledger.PieceInstructions,
		Name:   "AGENTS.md",
		Path:   "AGENTS.md",
		From:   ledger.FromTask,
		Given:  ledger.GivenPart,
		Share:  .467,
		Where:  "messages",
		Tokens: 8192,
	}
	skill.Opened, skill.Where, skill.Tokens = &opened, "system", 97
	prompt := ledger.Piece{
		Kind:  ledger.PiecePrompt,
		Name:  "prompt",
		From:  ledger.FromArm,
		Given: ledger.GivenUnknown,
		Why:   "content stored at the vendor\x1b[2J",
	}
	whole := &ledger.Treatment{
		Context:      "project",
		Pieces:       []ledger.Piece{skill, notes, prompt},
		SystemTokens: 14200,
		VendorTokens: 13900,
		Tools:        []string{"Bash", "Skill"},
		Served:       []ledger.Served{{Model: "sonnet-1", Asked: "sonnet", Calls: 1}},
		Programs:     []string{".claude/settings.json"},
		Managed:      []string{"/etc/claude-code/managed-settings.json"},
	}
	for name, test := range map[string]struct {
		given *ledger.Treatment
		want  string
	}{
		"all of it": {whole, `given to the model (context project):
  skill csv-tools         from the arm, .claude/skills/csv-tools/SKILL.md  whole                                         in system    97 tokens per call  opened
  instructions AGENTS.md  from the task                                    part (47%)                                    in messages  8192 tokens per call
  prompt                  from the arm                                     unknown: content stored at the vendor\x1b[2J  —            —
system prompt: about 14200 tokens, of which 13900 come with the agent
tools offered: 2: Bash, Skill
served by sonnet-1 in 1 call, asked for as sonnet
files that let the agent run programs of the project: .claude/settings.json
files of the administrator that the agent may have read: /etc/claude-code/managed-settings.json
`},
		"nothing": {
			&ledger.Treatment{Context: "none"},
			"given to the model (context none): nothing that the arm, the family or the task's files bring\n",
		},
		"not known": {
			&ledger.Treatment{Context: "project", Unknown: "the model calls did not pass the gateway"},
			"given to the model (context project): unknown, the model calls did not pass the gateway\n",
		},
		"an old record": {nil, "given to the model: unknown, recorded by an earlier version, which did not look\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			if err := Write(&out, test.given); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, out.String()); diff != "" {
				t.Errorf("%s: %s", name, diff)
			}
		})
	}
}
