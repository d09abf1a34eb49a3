package experiment

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What was meant as a setting never becomes part of a text, and a text with commas and colons can
// be written.
func TestArmsOfTheCommandLine(t *testing.T) {
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{
		"prompt.md": "Be careful, maxTurn: 2.\n", "empty.md": "\n", "c++/SKILL.md": "x", "a/SKILL.md": "x",
	})
	resolve := func(path string) string { return filepath.Join(dir, path) }
	half := 0.5
	for text, want := range map[string]Arm{
		"a=prompt:Be brief, be right: test first.,maxTurns:2": {Prompt: "Be brief, be right: test first.", MaxTurns: 2},
		`a=prompt:"model: x, effort:high \"now\"",effort:low`: {Prompt: `model: x, effort:high "now"`, Effort: "low"},
		"a=model:gpt-5,effort:high,temperature:0.5":           {Model: "gpt-5", Effort: "high", Temperature: &half},
		"a=prompt:@prompt.md,tools:Read+Edit": {
			Prompt:       "Be careful, maxTurn: 2.",
			AllowedTools: []string{"Read", "Edit"},
		},
		`a=prompt:"@nobody"`:      {Prompt: "@nobody"},
		"a=skills:a+b,files:f":    {Skills: resolve("a") + "+" + resolve("b"), Files: resolve("f")},
		"a=skills:c++":            {Skills: resolve("c++")},
		"a=env:A=1,env:B=x, y: z": {Env: map[string]string{"A": "1", "B": "x, y: z"}},
		"a=context:none,mcp:":     {Context: "none"},
		"a=instructions:AGENTS.md,settings:s.json": {
			Instructions: resolve("AGENTS.md"),
			Settings:     resolve("s.json"),
		},
	} {
		t.Run(text, func(t *testing.T) {
			want.Name = "a"
			got, err := ParseArm(text, resolve)
			if diff := cmp.Diff(want, got); err != nil || diff != "" {
				t.Errorf("%s: %v %s", text, err, diff)
			}
		})
	}
	for text, want := range map[string]string{
		"a=prompt:Be careful.,maxTurn:2":    "there is no key maxTurn; did you mean maxTurns?",
		"a=model:gpt-5,efort:high":          "there is no key efort; did you mean effort?",
		"a=model:gpt-5,volume:high":         "there is no key volume",
		"a=agnt:x":                          "there is no key agnt; did you mean agent?",
		"a=prompt:x,evn:A=1":                "did you mean env?",
		"a=prompt:x,Skills:y":               "did you mean skills?",
		"a=model:x,model:y":                 "model is given twice",
		"a=env:A=1,env:A=2":                 "env A is given twice",
		`a=prompt:"a" b`:                    "follows the quotes of prompt",
		`a=prompt:"a`:                       "quotes of prompt are not closed",
		"a=prompt:@empty.md":                "is empty",
		"a=prompt:@gone.md":                 "gone.md",
		"a=context:some":                    "want project or none",
		"a=temperature:hot":                 "temperature",
		"a=tools:Read,allowedTools:Edit":    "there is no key allowedTools",
		"a=instructions:x.md,instruction:y": "did you mean instructions?",
	} {
		t.Run(text, func(t *testing.T) {
			if arm, err := ParseArm(text, resolve); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q (%+v)", text, err, want, arm)
			}
		})
	}
}
