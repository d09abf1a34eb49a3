package sql

import (
	"context"
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/query"
)

// open opens the session of one agent that package query has among its fixtures.
func open(t *testing.T) *query.Trace {
	t.Helper()
	trace, err := query.Open("../testdata/sample.ndjson", query.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return trace
}

func TestSQLAsksAcrossFiles(t *testing.T) {
	a, b := open(t), open(t)
	a.Label, b.Label = "a", "b"
	for statement, want := range map[string]string{
		"select count(*) from turns": "14",
		"select file, name, is_error from tool_calls where name = 'Bash' order by 1":        "a Bash 1|b Bash 1",
		"select sum(input_tokens) from usage where file = 'a'":                              "60",
		"select command from tool_calls where command <> '' limit 1;":                       "cat b.go",
		"with x as (select path from tool_calls where path <> '') select distinct * from x": "/repo/a.go",
		"select lane, turns, cost_usd from lanes where file='b'":                            "agent 7 0.25",
		"select count(*) from messages":                                                     "0",
		"select ';'":                                                                        ";",
	} {
		t.Run(statement, func(t *testing.T) {
			rows, err := Query(context.Background(), []*query.Trace{a, b}, statement)
			if err != nil {
				t.Errorf("%s: %v", statement, err)
				return
			}
			var lines []string
			for _, row := range rows.Rows {
				var cells []string
				for _, cell := range row {
					cells = append(cells, cell.String())
				}
				lines = append(lines, strings.Join(cells, " "))
			}
			if got := strings.Join(lines, "|"); got != want {
				t.Errorf("%s: %q, want %q", statement, got, want)
			}
		})
	}
}

func TestSQLOnlyReads(t *testing.T) {
	trace := open(t)
	for _, statement := range []string{
		"", "delete from turns", "attach 'x' as y", "select 1; drop table turns",
		"with x as (select 1) delete from turns", "pragma query_only = off", "select * from nothing",
		"insert into turns select 1",
	} {
		if rows, err := Query(context.Background(), []*query.Trace{trace}, statement); err == nil {
			t.Errorf("%q gave %+v", statement, rows)
		}
	}
}
