package skill

import (
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/fit-eval/fit/internal/jsontape"
)

// QueryFiles are the names that a file of trigger queries may have, relative to the skill.
var QueryFiles = []string{
	"evals/queries.json", "evals/trigger-queries.json", "evals/trigger_queries.json", "evals/trigger-evals.json",
	"evals/trigger_evals.json", "evals/trigger-eval.json", "evals/trigger_eval.json", "evals/eval_queries.json",
}

// Query is one query of a trigger test.
type Query struct {
	Text   string
	Should bool // the skill should be used
	Line   int
}

// ParseQueries reads a file of trigger queries. The error joins everything that is wrong.
func ParseQueries(name string, source []byte) ([]Query, error) {
	r, err := newReader(name, source)
	if err != nil {
		return nil, err
	}
	list := r.top
	if list.Kind() == jsontape.Object {
		for _, key := range []string{"queries", "trigger_queries", "evals"} {
			if list = r.top.Get(key); list.Exists() {
				break
			}
		}
	}
	if list.Kind() != jsontape.Array {
		r.wrong(r.top, `there is no list [{"query": "…", "should_trigger": true}, …], but %s`, keysOf(r.top))
	}
	var queries []Query
	seen := map[string]int{}
	for one := range list.Elements() {
		q := Query{Text: r.text(one.Get("query")), Line: r.line(one)}
		should := one.Get("should_trigger")
		switch {
		case strings.TrimSpace(q.Text) == "":
			hint := ""
			if one.Get("prompt").Exists() {
				hint = "; rename prompt to query"
			}
			r.wrong(one, "query is missing%s", hint)
			continue
		case should.Kind() != jsontape.True && should.Kind() != jsontape.False:
			r.wrong(one, "should_trigger is missing: true or false")
			continue
		case seen[q.Text] > 0:
			r.wrong(one, "the query repeats that of line %d", seen[q.Text])
			continue
		case utf8.RuneCountInString(q.Text) > 20_000:
			r.wrong(one, "the query is longer than 20000 characters")
			continue
		}
		q.Should, seen[q.Text] = should.Kind() == jsontape.True, q.Line
		queries = append(queries, q)
	}
	if len(queries) == 0 && len(r.problems) == 0 {
		r.wrong(r.top, "the list has no queries")
	}
	return queries, errors.Join(r.problems...)
}
