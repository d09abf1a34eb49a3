package grade

import (
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/task"
)

func TestChecksOfAnAnswer(t *testing.T) {
	t.Parallel()
	cost := 0.02
	facts := &Answer{CostUSD: &cost, DurationMs: 1500, Turns: 3}
	const schema = `{"type":"object","required":["n"],"properties":{"n":{"type":"integer"}}}`
	for _, test := range []struct {
		name   string
		check  task.AnswerCheck
		passes []string
		fails  []string
	}{
		{
			"strict",
			task.AnswerCheck{Kind: "equals", Want: []string{"Paris", "Lutetia"}},
			[]string{"Paris", " Lutetia\n"},
			[]string{"paris", "Paris.", ""},
		},
		{
			"normalised",
			task.AnswerCheck{Kind: "equals", As: "normalised", Want: []string{"New York"}},
			[]string{"new  york.", "\"New York\""},
			[]string{"York", "new-york"},
		},
		{
			"number",
			task.AnswerCheck{Kind: "equals", As: "number", Want: []string{"1,234.5"}, Tolerance: 0.1},
			[]string{"1234.5", "It is $1,234.45", "1.2345e3"},
			[]string{"1234", "none", "-1234.5"},
		},
		{
			"number exactly",
			task.AnswerCheck{Kind: "equals", As: "number", Want: []string{"0.3"}},
			[]string{".3", "0.30"},
			[]string{"0.31"},
		},
		{
			"number in a text",
			task.AnswerCheck{Kind: "equals", As: "number", Want: []string{"7"}},
			[]string{"between 5-7", "on 2024-01-07", "+7%"},
			[]string{"\u22127", "5 -7", "NaN", "1e999"},
		},
		{
			"punctuation alone",
			task.AnswerCheck{Kind: "equals", As: "normalised", Want: []string{"!"}},
			[]string{"!"},
			[]string{"", "?"},
		},
		{
			"a group that matches everywhere",
			task.AnswerCheck{Kind: "matches", Pattern: "(a)(?:.*b)?", Want: []string{"a"}},
			[]string{"aaaa"},
			[]string{strings.Repeat("a", 200_000)},
		},
		{
			"contains",
			task.AnswerCheck{Kind: "contains", Want: []string{"a", "b"}},
			[]string{"b a"},
			[]string{"a", "A B"},
		},
		{
			"any, without case",
			task.AnswerCheck{Kind: "containsAny", IgnoreCase: true, Want: []string{"ä", "b"}},
			[]string{"Ä", "xBx"},
			[]string{"c", ""},
		},
		{
			"excludes",
			task.AnswerCheck{Kind: "excludes", Want: []string{"sorry"}},
			[]string{"yes", ""},
			[]string{"I am sorry"},
		},
		{
			"matches",
			task.AnswerCheck{Kind: "matches", Pattern: `^\d+$`},
			[]string{"42"},
			[]string{"x42"},
		},
		{
			"group",
			task.AnswerCheck{Kind: "matches", IgnoreCase: true, Pattern: `answer: (\w+)`, Want: []string{"b"}},
			[]string{"ANSWER: a ... answer: b"},
			[]string{"answer: c", "b"},
		},
		{
			"schema",
			task.AnswerCheck{Kind: "schema", Schema: []byte(schema)},
			[]string{`{"n":1}`, "```json\n{\"n\": 2}\n```"},
			[]string{`{"n":"1"}`, `{}`, "n", `{"n":"1","n":1}`, `{"n":1} {}`},
		},
		{
			"choice",
			task.AnswerCheck{Kind: "choice", Want: []string{"B"}, Choices: []string{"red", "blue"}},
			[]string{"B", "(b)", "B) blue", "Blue.", "I think...\nANSWER: B", "The answer is **B**.", "**Answer:** b"},
			[]string{"A", "red", "green", "Because", "", "I cannot answer b questions", "The answer is b ut"},
		},
		{"cost", task.AnswerCheck{Kind: "maxCostUsd", Limit: 0.02}, []string{""}, nil},
		{"seconds", task.AnswerCheck{Kind: "maxSeconds", Limit: 1}, nil, []string{""}},
		{"turns", task.AnswerCheck{Kind: "maxTurns", Limit: 3}, []string{""}, nil},
		{"no trace", task.AnswerCheck{Kind: "usedTool", Pattern: "Bash"}, nil, []string{""}},
	} {
		t.Run(test.name, func(t *testing.T) {
			for want, texts := range map[bool][]string{true: test.passes, false: test.fails} {
				for _, text := range texts {
					holds, why, err := compareAnswer(test.check, facts, text)
					if err != nil || holds != want || !holds && why == "" {
						t.Errorf("%s, %q: %v %q %v", test.name, text, holds, why, err)
					}
				}
			}
		})
	}
	if _, _, err := compareAnswer(task.AnswerCheck{Kind: "maxCostUsd", Limit: 1}, &Answer{}, ""); err == nil {
		t.Error("an unknown cost is not a cheap one")
	}
}

func TestAThresholdIsEnough(t *testing.T) {
	t.Parallel()
	rows := []Row{
		Classify([]byte(`{"test":"a","pass":true,"weight":3}`)),
		Classify([]byte(`{"test":"b","pass":false}`)),
	}
	gate := Classify([]byte(`{"test":"g","pass":false,"gate":true}`))
	for _, test := range []struct {
		threshold float64
		rows      []Row
		want      string
	}{
		{0.75, rows, VerdictPass},
		{0.8, rows, VerdictFail},
		{0.5, append(rows[:2:2], gate), VerdictFail},
		{0.5, append(rows[:2:2], Classify([]byte(`{"test":"m"}`))), VerdictFail},
	} {
		if got := decide(tallyOf(test.rows), &test.threshold, health{}, nil); got.Verdict != test.want {
			t.Errorf("%v: %+v", test.threshold, got)
		}
	}
}

func FuzzChecks(f *testing.F) {
	f.Add("number", "1,000", "It is 1000.0")
	f.Add("normalised", "a", "A!")
	f.Fuzz(func(t *testing.T, as, want, text string) {
		check := task.AnswerCheck{Kind: "equals", As: as, Want: []string{want}}
		if holds, why := equals(check, text); !holds && !strings.HasPrefix(why, "want ") {
			t.Error(why)
		}
		_, _ = choice(task.AnswerCheck{Want: []string{"A"}, Choices: []string{want}}, text)
	})
}
