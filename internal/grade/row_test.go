package grade

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/fit-eval/fit/ledger"
)

func count(lines ...string) tally { return tallyOf(parseRows([]byte(strings.Join(lines, "\n")))) }

func score(value float64) *float64 { return &value }

func TestTally(t *testing.T) {
	for name, test := range map[string]struct {
		rows []string
		want tally
	}{
		"weights are mixed": {
			[]string{`{"pass":true,"weight":3}`, `{"pass":false}`, `{"pass":true,"weight":1}`},
			tally{GatesPass: true, Score: score(0.8), Scored: 3, Passed: 2},
		},
		"a weight of nothing said is 1": {
			[]string{`{"pass":true}`, `{"pass":false}`},
			tally{GatesPass: true, Score: score(0.5), Scored: 2, Passed: 1},
		},
		"weight 0 is ignored, with whatever fields": {
			[]string{`{"pass":true}`, `{"weight":0,"note":"x","pass":"maybe"}`, `{"weight":-0.0}`},
			tally{GatesPass: true, FullMarks: true, Score: score(1), Scored: 1, Passed: 1, Diagnostics: 2},
		},
		"gates are no part of the score": {
			[]string{`{"gate":true,"pass":true}`, `{"pass":true}`},
			tally{GatesPass: true, FullMarks: true, Score: score(1), Gates: 1, Scored: 1, Passed: 1},
		},
		"fractions add up to full marks": {
			[]string{`{"pass":true,"weight":0.1}`, `{"pass":true,"weight":0.1}`, `{"pass":true,"weight":0.1}`},
			tally{GatesPass: true, FullMarks: true, Score: score(1), Scored: 3, Passed: 3},
		},
		"a failed scored row breaks full marks": {
			[]string{`{"pass":true,"weight":1e300}`, `{"pass":false,"weight":1e-300}`},
			tally{GatesPass: true, Score: score(1), Scored: 2, Passed: 1},
		},
		"a failed gate leaves the score derived": {
			[]string{`{"gate":true,"pass":false}`, `{"pass":true}`},
			tally{FullMarks: true, Score: score(1), Gates: 1, Scored: 1, Passed: 1},
		},
		"gates only have no score": {
			[]string{`{"gate":true,"pass":true}`},
			tally{GatesPass: true, FullMarks: true, Gates: 1},
		},
		"no rows":             {nil, tally{GatesPass: true, FullMarks: true}},
		"only malformed rows": {[]string{`null`, `{}`}, tally{GatesPass: true, Score: score(0), Malformed: 2}},
		"a source is ignored": {
			[]string{`{"pass":true,"source":"tests"}`},
			tally{GatesPass: true, FullMarks: true, Score: score(1), Scored: 1, Passed: 1},
		},
		"huge weights do not overflow": {
			[]string{`{"pass":true,"weight":1.7e308}`, `{"pass":false,"weight":1.7e308}`},
			tally{GatesPass: true, Score: score(0.5), Scored: 2, Passed: 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, count(test.rows...)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestMalformedRowsFailAtTheirOwnWeightOrOne(t *testing.T) {
	for line, weight := range map[string]float64{
		`{"test":"x"}`:                         1,
		`{"pass":"true"}`:                      1,
		`{"gate":"true","pass":true}`:          1,
		`{"gate":false,"pass":true}`:           1,
		`{"gate":null,"pass":true}`:            1,
		`{"gate":true,"weight":0,"pass":true}`: 1,
		`{"gate":true,"weight":2,"pass":true}`: 2,
		`{"gate":true,"weight":"2","pass":1}`:  1,
		`{"weight":-1,"pass":true}`:            1,
		`{"weight":1e999,"pass":true}`:         1,
		`{"weight":NaN,"pass":true}`:           1,
		`{"weight":"1","pass":true}`:           1,
		`{"weight":null,"pass":true}`:          1,
		`{"weight":3,"pass":null}`:             3,
		`{"raw":"x","parseError":true}`:        1,
		`null`:                                 1,
		`7`:                                    1,
		`"text"`:                               1,
		`[{"pass":true}]`:                      1,
		`{"pass":true`:                         1,
		"\xff\xfe":                             1,
	} {
		t.Run(line, func(t *testing.T) {
			rows := parseRows([]byte(line + "\n" + `{"pass":true}`))
			if len(rows) != 2 || rows[0].Role != Malformed || rows[0].Weight != weight {
				t.Errorf("is %+v, want it malformed with weight %v", rows[0], weight)
			}
			tally := tallyOf(rows)
			want := 1 / (1 + weight)
			if tally.Malformed != 1 || tally.FullMarks || math.Abs(*tally.Score-want) > 1e-12 {
				t.Errorf("makes the tally %+v, want one malformed row and the score %v", tally, want)
			}
		})
	}
}

func TestALineThatIsNoJSONKeepsItsPlace(t *testing.T) {
	rows := parseRows([]byte("{\"pass\":true}\n\n  \t\noops \x1b[2J\n{\"gate\":true,\"pass\":false}"))
	var roles []string
	for _, row := range rows {
		roles = append(roles, row.Role.String())
	}
	if diff := cmp.Diff([]string{"scored", "malformed", "gate"}, roles); diff != "" {
		t.Error(diff)
	}
	var broken struct {
		Raw        string
		ParseError bool
	}
	if err := json.Unmarshal(rows[1].Raw, &broken); err != nil || broken.Raw != "oops \x1b[2J" || !broken.ParseError {
		t.Errorf("the broken line became %s", rows[1].Raw)
	}
}

func TestRowsAreBounded(t *testing.T) {
	rows := parseRows([]byte(`{"test":"` + strings.Repeat("x", maxRowBytes) + `","pass":true}`))
	if len(rows) != 1 || rows[0].Role != Malformed || len(rows[0].Raw) > 1000 {
		t.Errorf("a huge row became %d rows of role %v", len(rows), rows[0].Role)
	}
	if n := len(parseRows([]byte(strings.Repeat("1\n", 2*maxRows)))); n != maxRows {
		t.Errorf("%d rows were read, want %d", n, maxRows)
	}
}

func TestVerdicts(t *testing.T) {
	pass, fail, gate := `{"test":"a","pass":true}`, `{"test":"b","pass":false}`, `{"test":"g","gate":true,"pass":false}`
	for name, test := range map[string]struct {
		rows   []string
		health health
		want   ledger.Grade
	}{
		"everything passed": {
			[]string{pass},
			health{},
			ledger.Grade{Verdict: VerdictPass, GatesPass: true, Score: score(1), Healthy: true},
		},
		"something failed": {
			[]string{pass, fail},
			health{},
			ledger.Grade{Verdict: VerdictFail, GatesPass: true, Score: score(0.5), Healthy: true},
		},
		"a gate failed": {
			[]string{pass, gate},
			health{},
			ledger.Grade{Verdict: VerdictFail, Score: score(1), Healthy: true},
		},
		"one malformed": {
			[]string{pass, `{}`},
			health{},
			ledger.Grade{Verdict: VerdictFail, GatesPass: true, Score: score(0.5), Malformed: 1, Healthy: true},
		},
		"the agent broke the grader": {
			[]string{pass},
			health{broken: "died"},
			ledger.Grade{Verdict: VerdictFail, GatesPass: true, Score: score(1), Reason: "died"},
		},
		"the grader is broken": {
			[]string{pass},
			health{broken: "died", graderFault: true},
			ledger.Grade{Verdict: VerdictError, GatesPass: true, Score: score(1), Reason: "died"},
		},
		"no rows at all": {
			nil, health{}, ledger.Grade{
				Verdict: VerdictError, GatesPass: true, Healthy: true,
				Reason: "the graders made no check: nothing was measured",
			},
		},
		"only a diagnostic row": {
			[]string{`{"weight":0}`},
			health{},
			ledger.Grade{
				Verdict: VerdictError, GatesPass: true, Healthy: true,
				Reason: "the graders made no check: nothing was measured",
			},
		},
		"gates only": {
			[]string{`{"gate":true,"pass":true}`},
			health{},
			ledger.Grade{Verdict: VerdictPass, GatesPass: true, Healthy: true},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, decide(count(test.rows...), nil, test.health, nil)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestEffectiveScore(t *testing.T) {
	for _, healthy := range []bool{true, false} {
		for _, gates := range []bool{true, false} {
			for _, judge := range []bool{true, false} {
				want := 0.0
				if healthy && gates && judge {
					want = 0.75
				}
				if got := Effective(score(0.75), healthy, gates, judge); *got != want {
					t.Errorf("healthy %v, gates %v, judge %v: %v, want %v", healthy, gates, judge, *got, want)
				}
			}
		}
	}
	if Effective(nil, true, true, true) != nil {
		t.Error("a task without a score got one")
	}
}

func TestRowsOfSeveralWritersAreNotBelieved(t *testing.T) {
	for name, test := range map[string]struct {
		rows     []string
		declared []string
		want     tally
		missing  []string
	}{
		"passed and failed at once": {
			rows: []string{`{"test":"a","pass":true}`, `{"test":"a","pass":false}`},
			want: tally{GatesPass: true, Score: score(0), Malformed: 2},
		},
		"a forged gate beside the real one": {
			rows: []string{`{"test":"g","gate":true,"pass":true}`, `{"test":"g","gate":true,"pass":false}`},
			want: tally{FullMarks: true, Gates: 2},
		},
		"not declared": {
			rows: []string{`{"test":"a","pass":true}`, `{"test":"b","pass":true,"weight":99}`}, declared: []string{"a"},
			want: tally{GatesPass: true, Score: score(0.01), Scored: 1, Passed: 1, Malformed: 1},
		},
		"declared and said twice": {
			rows: []string{`{"test":"a","pass":true}`, `{"test":"a","pass":true}`}, declared: []string{"a"},
			want: tally{GatesPass: true, Score: score(0), Malformed: 2},
		},
		"declared and missing": {
			rows: []string{`{"test":"a","pass":true}`}, declared: []string{"a", "b"}, missing: []string{"b"},
			want: tally{GatesPass: true, FullMarks: true, Score: score(1), Scored: 1, Passed: 1},
		},
		"declared and worth nothing": {
			rows:     []string{`{"test":"a","pass":true}`, `{"test":"b","pass":true,"weight":0}`},
			declared: []string{"a", "b"},
			want:     tally{GatesPass: true, Score: score(0.5), Scored: 1, Passed: 1, Malformed: 1},
		},
		"rows without names are all right": {
			rows: []string{`{"pass":true}`, `{"pass":false}`},
			want: tally{GatesPass: true, Score: score(0.5), Scored: 2, Passed: 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			rows := parseRows([]byte(strings.Join(test.rows, "\n")))
			_, missing := compareRows(rows, test.declared)
			if diff := cmp.Diff(test.want, tallyOf(rows)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.missing, missing); diff != "" {
				t.Errorf("missing (-want +got):\n%s", diff)
			}
		})
	}
}

func TestStampOverwritesAnAuthoredSource(t *testing.T) {
	for raw, want := range map[string]string{
		`{"pass":true,"source":"tests"}`: `{"pass":true,"source":"invariants"}`,
		`[1]`:                            `[1]`,
		`7`:                              `7`,
	} {
		t.Run(raw, func(t *testing.T) {
			if got := string(stamp(Row{Raw: json.RawMessage(raw)}, sourceInvariants)); got != want {
				t.Errorf("became %s, want %s", got, want)
			}
		})
	}
}

func TestNoRowCanMakeAFailedOneGood(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lines := []string{`{"test":"real","pass":false}`}
		for range rapid.IntRange(0, 20).Draw(t, "forged") {
			name := rapid.SampledFrom([]string{"real", "other", ""}).Draw(t, "name")
			weight := rapid.SampledFrom([]string{"0", "1", "1e308", "-1", `"x"`, "null"}).Draw(t, "weight")
			lines = append(lines, fmt.Sprintf(`{"test":%q,"pass":true,"weight":%s}`, name, weight))
		}
		rows := parseRows([]byte(strings.Join(lines, "\n")))
		compareRows(rows, nil)
		tally := tallyOf(rows)
		if grade := decide(tally, nil, health{}, nil); grade.Verdict != VerdictFail {
			t.Fatalf("%v became %s", lines, grade.Verdict)
		}
		if *tally.Score < 0 || *tally.Score > 1 || math.IsNaN(*tally.Score) {
			t.Fatalf("%v has the score %v", lines, *tally.Score)
		}
	})
}

func FuzzRows(f *testing.F) {
	f.Add([]byte(`{"test":"a","pass":true,"weight":0.5}` + "\n" + `{"gate":true,"pass":false}`))
	f.Add([]byte("\x00\xff{\"pass\":"))
	f.Add([]byte(`{"weight":1e308,"pass":true}` + "\n" + `{"weight":1e308,"pass":true}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		rows := parseRows(data)
		compareRows(rows, []string{"a"})
		for _, row := range rows {
			if !json.Valid(row.Raw) || !json.Valid(stamp(row, sourceTests)) {
				t.Errorf("a row is not JSON: %q", row.Raw)
			}
			if row.Role == Malformed && row.Pass || !(row.Weight >= 0) || math.IsInf(row.Weight, 0) {
				t.Errorf("impossible row %+v", row)
			}
		}
		if tally := tallyOf(rows); tally.Score != nil && !(*tally.Score >= 0 && *tally.Score <= 1) {
			t.Errorf("the score is %v", *tally.Score)
		}
	})
}
