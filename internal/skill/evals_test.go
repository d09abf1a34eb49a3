package skill_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/skill"
	"github.com/fit-eval/fit/internal/task"
)

// TestEvalsAreReadInEveryShape: one fixture for each shape that people write.
func TestEvalsAreReadInEveryShape(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		text string
		// want is what the first case says: id, sentences, checks, files, silent.
		want string
	}{
		"assertions as texts": {
			`{"skill_name":"s","evals":[{"id":1,"prompt":"p","assertions":["a","b"],"files":["evals/files/x.csv"]}]}`,
			"1|a;b||evals/files/x.csv|false",
		},
		"assertions as objects": {`{"evals":[{"id":"w","prompt":"p","assertions":[{"text":"a"}]}]}`, "w|a|||false"},
		"expectations":          {`{"evals":[{"id":0,"prompt":"p","expectations":["a"]}]}`, "0|a|||false"},
		"an expected output":    {`{"evals":[{"prompt":"p","expected_output":"e"}]}`, "1|e|||false"},
		"an expected output beside assertions": {
			`{"evals":[{"prompt":"p","expected_output":"e","assertions":["a"]}]}`, "1|a|||false",
		},
		"scorers": {
			`{"evals":[{"id":3,"prompt":"p","scorers":[{"type":"regex","name":"n","pattern":"x+"},
				{"type":"llm_judge","name":"m","criterion":"c"}]}]}`,
			`3|c|{"matches":"x+","name":"n"}||false`,
		},
		"checks":          {`{"evals":[{"prompt":"p","checks":[{"contains":["x"]}]}]}`, `1||{"contains":["x"]}||false`},
		"a negative case": {`{"evals":[{"prompt":"p","category":"non-trigger"}]}`, "1||||true"},
		"should not trigger": {
			`{"evals":[{"prompt":"p","should_trigger":false,"assertions":["a"]}]}`, "1|a|||true",
		},
		"a mark of another name": {`{"evals":[{"prompt":"p","kind":"negative_lookalike"}]}`, "1||||true"},
		"any language, and a list alone": {
			"\uFEFF" + `[{"id":"日本","prompt":"\uD83D\uDE00 é","assertions":["図に3か月"]}]`, "日本|図に3か月|||false",
		},
	} {
		t.Run(name, func(t *testing.T) {
			evals, err := skill.ParseEvals("evals.json", []byte(test.text))
			if err != nil || len(evals.Cases) != 1 {
				t.Errorf("%+v, %v", evals, err)
				return
			}
			c := evals.Cases[0]
			var sentences, checks, files []string
			for _, s := range c.Statements {
				sentences = append(sentences, s.Text)
			}
			for _, check := range c.Checks {
				checks = append(checks, string(check.JSON))
			}
			for _, f := range c.Files {
				files = append(files, f.Text)
			}
			silent := map[bool]string{true: "true", false: "false"}[c.Silent]
			got := strings.Join([]string{
				c.ID, strings.Join(sentences, ";"), strings.Join(checks, ";"), strings.Join(files, ";"), silent,
			}, "|")
			if got != test.want {
				t.Errorf("%s, want %s", got, test.want)
			}
		})
	}
}

// TestOtherLayoutsAreRefused: with the keys that were found and what to rename.
func TestOtherLayoutsAreRefused(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"test_cases":[{"expected_behavior":["a"]}],"evaluation_criteria":{}}`: "evals.json:1: there is no list " +
			"evals, but the keys test_cases, evaluation_criteria; rename test_cases to evals, and in each case " +
			"expected_behavior to assertions",
		`{"cases":[{"input":"x","cmd":"y"}]}`:             "the keys cases; rename cases to evals, in each case input to prompt",
		`{"a":1}`:                                         `the keys a; write {"skill_name"`,
		`[{"query":"q","should_trigger":true}]`:           "rename the file to evals/queries.json and run fit skill trigger",
		`{"cases":[{"prompt":"p","assertions":["a"]}]}`:   "the keys cases; rename cases to evals",
		`{"evals":[{"prompt":"p","checks":{"a":1}}]}`:     `checks is not a list; write [{"contains"`,
		"{\"evals\":[\n{\"id\":1,\"input\":\"x\"},\n7]}":  "evals.json:2: case 1 has no prompt; rename input to prompt",
		`{"evals":[{"id":1,"prompt":"p"}]}`:               "case 1 has nothing to judge by",
		`{"evals":[{"prompt":["p"],"assertions":["a"]}]}`: "case 1: the prompt must be a text",
		`3`:            "there is no list evals, but a value without keys",
		`{"evals":[]}`: "evals is empty",
		`{"evals":`:    "evals.json:1:9",
	} {
		t.Run(text, func(t *testing.T) {
			_, err := skill.ParseEvals("evals.json", []byte(text))
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %q", err, want)
			}
		})
	}
}

// TestEverythingThatIsWrongIsSaidAtOnce: each with its line.
func TestEverythingThatIsWrongIsSaidAtOnce(t *testing.T) {
	t.Parallel()
	_, err := skill.ParseEvals("e.json", []byte("{\"evals\":[\n{\"id\":1,\"prompt\":\"\",\"assertions\":[\"a\"]},\n"+
		"{\"id\":1,\"prompt\":\"p\",\"assertions\":[3]},\n{\"id\":true,\"prompt\":\"p\",\"scorers\":[{\"type\":\"x\"}]}]}"))
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{
		"e.json:2: case 1 has no prompt", "e.json:3: case 1: assertions: want a text", "e.json:3: the id 1 is that of line 2",
		"e.json:4: case 3: the id must be a number or a word", "e.json:4: case 3: scorers: the type is regex or llm_judge",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v\ndoes not say %q", err, want)
		}
	}
}

func TestQueries(t *testing.T) {
	t.Parallel()
	queries, err := skill.ParseQueries("q.json", []byte(`[{"query":"a","should_trigger":true},
		{"query":"b","should_trigger":false}]`))
	if err != nil || len(queries) != 2 || !queries[0].Should || queries[1].Should || queries[1].Line != 2 {
		t.Errorf("%+v, %v", queries, err)
	}
	_, err = skill.ParseQueries("q.json", []byte("[{\"query\":\"a\"},\n{\"query\":\"\",\"should_trigger\":true}]"))
	for _, want := range []string{"q.json:1: should_trigger is missing", "q.json:2: query is missing"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
	for text, want := range map[string]string{`3`: "but a value without keys", `{}`: "but no keys"} {
		if _, err := skill.ParseQueries("q.json", []byte(text)); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: %v does not end with %q", text, err, want)
		}
	}
}

func FuzzParseEvals(f *testing.F) {
	f.Add([]byte(`{"skill_name":"s","evals":[{"id":1,"prompt":"p","assertions":["a",{"text":"b"}],"files":["x"]}]}`))
	f.Add([]byte(`{"evals":[{"id":"1","prompt":"p","scorers":[{"type":"regex","pattern":"("}]}]}`))
	f.Add([]byte(`[{"query":"q","should_trigger":true}]`))
	f.Add([]byte(`{"cases":[]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		evals, err := skill.ParseEvals("e.json", text)
		if err == nil {
			for _, c := range evals.Cases {
				if c.ID == "" || c.Prompt == "" || c.Line < 1 {
					t.Errorf("%+v", c)
				}
			}
		}
		_, _ = skill.ParseQueries("q.json", text) // it must not panic
	})
}

// TestLintFindsWhatIsWrong: each rule has a skill that breaks it, and a good skill breaks none.
func TestLintFindsWhatIsWrong(t *testing.T) {
	t.Parallel()
	good := "---\nname: tables\ndescription: Makes tables. Use it when somebody asks for a table.\n---\nDo it.\n"
	for name, test := range map[string]struct {
		files map[string]string
		want  string // FILE:LINE rule, joined; empty: nothing
	}{
		"a good skill": {map[string]string{"SKILL.md": good}, ""},
		"no file":      {map[string]string{"x": ""}, "SKILL.md:0 skill-file"},
		"no front":     {map[string]string{"SKILL.md": "text\n"}, "SKILL.md:1 front-matter"},
		"broken front": {map[string]string{"SKILL.md": "---\nname: a: b\n---\n"}, "SKILL.md:2 front-matter"},
		"nothing said": {
			map[string]string{"SKILL.md": "---\nlicense: MIT\n---\n"}, "SKILL.md:2 name; SKILL.md:2 description",
		},
		"a wrong name": {
			map[string]string{"SKILL.md": strings.Replace(good, "tables", "My--Tables", 1)}, "SKILL.md:2 name",
		},
		"another name": {
			map[string]string{"SKILL.md": strings.Replace(good, "tables", "table", 1)}, "SKILL.md:2 name-directory",
		},
		"a long description": {
			map[string]string{"SKILL.md": strings.Replace(good, "Makes", strings.Repeat("long ", 300), 1)},
			"SKILL.md:3 description",
		},
		"no when": {
			map[string]string{"SKILL.md": "---\nname: tables\ndescription: Makes tables.\n---\n"},
			"SKILL.md:3 description-when",
		},
		"other keys": {
			map[string]string{"SKILL.md": strings.Replace(good, "---\nDo", "version: 1\nmetadata: {a: 1}\n---\nDo", 1)},
			"SKILL.md:4 unknown-key; SKILL.md:5 metadata",
		},
		"a long body": {
			map[string]string{"SKILL.md": good + strings.Repeat("line\n", 600)}, "SKILL.md:5 body-length",
		},
		"missing files": {
			map[string]string{
				"SKILL.md":     good + "Run `scripts/a.sh`, read [this](references/b.md#x) and scripts/c.sh.\n",
				"scripts/c.sh": "echo\n",
			},
			"SKILL.md:6 missing-file; SKILL.md:6 missing-file",
		},
		"a script": {
			map[string]string{"SKILL.md": good, "scripts/a.sh": "#!/bin/sh\n"}, "scripts/a.sh:1 not-executable",
		},
		"a path": {map[string]string{"SKILL.md": good + "Look in /Users/ann/notes.\n"}, "SKILL.md:6 absolute-path"},
		"a secret": {
			map[string]string{"SKILL.md": good, "references/a.md": "key\nghp_0123456789abcdefghijABCDEFGHIJ012345\n"},
			"references/a.md:2 secret",
		},
		"broken evals": {
			map[string]string{"SKILL.md": good, "evals/evals.json": "{\"evals\":[\n{}]}", "evals/queries.json": "{}"},
			"evals/evals.json:2 evals; evals/evals.json:2 evals; evals/queries.json:1 queries",
		},
		"odd evals": {
			map[string]string{
				"SKILL.md":         good,
				"evals/evals.json": `{"evals":[{"prompt":"p","asertions":[],"assertions":["a"],"files":["x.csv"]}]}`,
			},
			"evals/evals.json:1 evals; evals/evals.json:1 evals",
		},
		"files beside the test cases, of the skill, and nowhere": {
			map[string]string{
				"SKILL.md": good, "evals/files/a.csv": "1", "examples/b.csv": "2",
				"evals/evals.json": `{"evals":[{"prompt":"p","assertions":["a"],` +
					"\n" + `"files":["files/a.csv",` + "\n" + `"examples/b.csv",` + "\n" + `"c.csv"]}]}`,
			},
			"evals/evals.json:4 evals; evals/evals.json:3 evals",
		},
		"an unread key in every case": {
			map[string]string{
				"SKILL.md": good,
				"evals/evals.json": `{"evals":[{"prompt":"p","context":"c","assertions":["a"]},
					{"prompt":"q","context":"c","assertions":[{"type":"regex","pattern":"x","text":"a"}]}]}`,
			},
			"evals/evals.json:1 evals; evals/evals.json:2 evals",
		},
		"examples and patterns": {
			map[string]string{
				"SKILL.md": good + "Write `[alt](image.png)`, read references/ns-*/all.md, look in /home/... and " +
					"run `python3 scripts/a.py`.\n",
				"scripts/a.py": "#!/usr/bin/env python3\n",
			}, "",
		},
		"a skill below": {map[string]string{"skills/tables/SKILL.md": good}, "SKILL.md:0 skill-file"},
	} {
		t.Run(name, func(t *testing.T) {
			_, root := tree(t, test.files)
			var found []string
			for _, f := range skill.Lint(root, "tables", task.CheckCase(root)) {
				found = append(found, fmt.Sprintf("%s:%d %s", f.File, f.Line, f.Rule))
				if skill.Rules[f.Rule] == "" {
					t.Errorf("the rule %s has no text", f.Rule)
				}
			}
			if got := strings.Join(found, "; "); got != test.want {
				t.Errorf("%s, want %s", got, test.want)
			}
		})
	}
}

func TestALeakIsAWordSequenceBeyondChance(t *testing.T) {
	t.Parallel()
	const text = "Round every amount to two places, and write the currency after it, never before it."
	for about, want := range map[string]string{
		"Please: round every amount to TWO places, and write the currency after it!": "round every amount to TWO " +
			"places and write the currency after it",
		"Round every amount to two places.":       "",
		"Write the total of all the rows, please": "",
	} {
		t.Run(about, func(t *testing.T) {
			if got := skill.Leak(text, about); got != want {
				t.Errorf("%q, want %q", got, want)
			}
		})
	}
	if got := skill.Leak("金額は必ず小数点以下二桁に丸めて、通貨は後ろに書く。", "金額は必ず小数点以下二桁に丸めて、通貨は後ろに書く"); got == "" {
		t.Error("a repeated sentence without spaces is not found")
	}
}
