// Package sql answers SQL queries over traces. It builds SQLite tables on the fly: turns, tool
// calls, calls of models, usage, messages and lanes.
package sql

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/fit-eval/fit/internal/jsonenc"
	"github.com/fit-eval/fit/internal/query"
	"github.com/fit-eval/fit/internal/scratch"
)

// Rows is the answer to an SQL query.
type Rows struct {
	Columns []string
	Rows    [][]Cell
}

// Cell is one value: nil, int64, float64, string or bytes.
type Cell struct{ Value any }

func (c Cell) String() string {
	switch v := c.Value.(type) {
	case nil:
		return ""
	case []byte:
		return string(v)
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	default:
		return fmt.Sprint(v)
	}
}

// NamedRow is a row as an object.
type NamedRow struct {
	Columns []string
	Values  []Cell
}

// MarshalJSON writes the columns in order.
func (r NamedRow) MarshalJSON() ([]byte, error) {
	dst := []byte{'{'}
	for i, column := range r.Columns {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(jsonenc.AppendString(dst, column), ':')
		value := r.Values[i].Value
		if b, ok := value.([]byte); ok {
			value = string(b)
		}
		raw, err := json.Marshal(value)
		if err != nil {
			return nil, err
		}
		dst = append(dst, raw...)
	}
	return append(dst, '}'), nil
}

// maxRows bounds an answer: SQL is for summing up, and whole traces are read with the other
// questions.
const maxRows = 100000

// schema has a table for everything people ask about. file and lane are in every table, so that
// many files and teams can be compared.
const schema = `
create table turns (file text, turn integer, role text, lane text, line integer, ts integer, parent text, message_id text, text text, thinking text, is_error integer);
create table tool_calls (file text, turn integer, lane text, id text, name text, input text, command text, path text, ts integer, duration_ms integer,
	result text, is_error integer, parent text);
create table usage (file text, turn integer, lane text, message_id text, input_tokens integer, output_tokens integer, cache_read_tokens integer, cache_creation_tokens integer);
create table messages (file text, line integer, ts integer, kind text, sender text, recipient text, text text, answer text, answered_by text);
create table model_calls (file text, lane text, call integer, turn integer, ts integer, model text, protocol text, path text, status integer, outcome text, retry integer,
	first_byte_ms integer, duration_ms integer, input_tokens integer, output_tokens integer, cache_read_tokens integer, cache_creation_tokens integer,
	reasoning_tokens integer, cost_usd real, original_usd real, error text);
create table lanes (file text, lane text, dialect text, agent text, model text, turns integer, cost_usd real, first_ms integer, last_ms integer);
`

// Schema lists the tables and their columns for people who write queries.
func Schema() string {
	return strings.NewReplacer("create table ", "  ", " text text", " text", "\n\t", " ", ";", "", " text", "",
		" integer", "", " real", "").Replace(schema)
}

// Query answers a query over tables that are built from the traces. The tables can only be read,
// and no file can be attached.
func Query(ctx context.Context, traces []*query.Trace, statement string) (*Rows, error) {
	if err := checkReadOnly(statement); err != nil {
		return nil, err
	}
	for _, t := range traces {
		if err := t.Spool(); err != nil {
			return nil, err
		}
	}
	dir, err := scratch.Make("", "fit-sql-") // on disk, because traces may be larger than memory
	if err != nil {
		return nil, err
	}
	defer func() { _ = dir.Remove() }()
	db, err := sql.Open("sqlite", filepath.Join(dir.Path, "trace.db"))
	if err != nil {
		return nil, err
	}
	defer db.Close()
	db.SetMaxOpenConns(1) // the settings below belong to a connection
	if _, err := db.ExecContext(ctx, "pragma journal_mode = off; pragma synchronous = off"); err != nil {
		return nil, err
	}
	if err := fillTables(ctx, db, traces); err != nil {
		return nil, err
	}
	if _, err := db.ExecContext(ctx, "pragma query_only = on"); err != nil {
		return nil, err
	}
	return runQuery(ctx, db, statement)
}

// checkReadOnly accepts one statement that asks.
func checkReadOnly(statement string) error {
	fields := strings.Fields(statement)
	if len(fields) == 0 {
		return errors.New("sql: the query is empty")
	}
	switch strings.ToLower(strings.Trim(fields[0], "(")) {
	case "select", "with", "values", "explain":
	default:
		return fmt.Errorf("sql: %q: only queries are allowed (select, with, values, explain)", fields[0])
	}
	quote := byte(0)
	for i := range len(statement) {
		switch c := statement[i]; {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '\'' || c == '"' || c == '`':
			quote = c
		case c == ';' && strings.TrimSpace(statement[i+1:]) != "":
			return errors.New("sql: only one statement at a time")
		}
	}
	return nil
}

func runQuery(ctx context.Context, db *sql.DB, statement string) (*Rows, error) {
	rows, err := db.QueryContext(ctx, statement)
	if err != nil {
		said := strings.TrimSuffix(strings.TrimPrefix(err.Error(), "SQL logic error: "), " (1)")
		return nil, fmt.Errorf("sql: %s; the tables are turns, tool_calls, usage, messages, model_calls, lanes", said)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	result := &Rows{Columns: columns}
	for rows.Next() {
		if len(result.Rows) == maxRows {
			return nil, fmt.Errorf("sql: more than %d rows; add a limit", maxRows)
		}
		values := make([]Cell, len(columns))
		pointers := make([]any, len(columns))
		for i := range values {
			pointers[i] = &values[i].Value
		}
		if err := rows.Scan(pointers...); err != nil {
			return nil, fmt.Errorf("sql: %w", err)
		}
		result.Rows = append(result.Rows, values)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("sql: %w", err)
	}
	return result, nil
}

func fillTables(ctx context.Context, db *sql.DB, traces []*query.Trace) error {
	if _, err := db.ExecContext(ctx, schema); err != nil {
		return err
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	loader := &tableLoader{ctx: ctx, tx: tx, statements: map[string]*sql.Stmt{}}
	for _, t := range traces {
		if err := loader.load(t); err != nil {
			_ = tx.Rollback()
			return err
		}
	}
	return tx.Commit()
}

type tableLoader struct {
	ctx        context.Context
	tx         *sql.Tx
	statements map[string]*sql.Stmt
}

func (l *tableLoader) insert(table string, values ...any) error {
	statement := l.statements[table]
	if statement == nil {
		marks := "?" + strings.Repeat(",?", len(values)-1)
		var err error
		if statement, err = l.tx.PrepareContext(l.ctx, "insert into "+table+" values ("+marks+")"); err != nil {
			return err
		}
		l.statements[table] = statement
	}
	_, err := statement.ExecContext(l.ctx, values...)
	return err
}

func (l *tableLoader) load(t *query.Trace) error {
	info, err := t.Walk(l.ctx, func(e *query.Cursor) error { return l.entry(t, e.Entry()) })
	if err != nil {
		return err
	}
	stats, _, err := t.Stats(l.ctx)
	if err != nil {
		return err
	}
	for _, row := range stats.PerTurn {
		err := l.insert("usage", t.Name(), row.Index, query.LaneName(row.Source), row.MessageID, row.InputTokens,
			row.OutputTokens, row.CacheReadTokens, row.CacheWriteTokens)
		if err != nil {
			return err
		}
	}
	for _, lane := range info.Lanes {
		err := l.insert("lanes", t.Name(), lane.Lane, lane.Dialect, lane.Agent, lane.Model, lane.Turns, lane.CostUSD,
			lane.FirstMs, lane.LastMs)
		if err != nil {
			return err
		}
	}
	if err := l.modelCalls(t); err != nil {
		return err
	}
	if err := t.ToolUses(l.ctx, func(c *query.ToolUse) error { return l.call(t, c) }); err != nil {
		return err
	}
	return l.messages(t)
}

func (l *tableLoader) entry(t *query.Trace, entry *query.Entry) error {
	text := entry.Text("\n")
	if entry.Result != nil {
		text = *entry.Result
	}
	if entry.Role == query.RoleSystem {
		text = string(entry.Data)
	}
	thinking := ""
	for _, b := range entry.Content {
		if b.Type == query.BlockThinking {
			thinking += b.Text
		}
	}
	return l.insert("turns", t.Name(), entry.Index, string(entry.Role), entry.LaneName(), entry.Line, entry.TimestampMs,
		entry.Parent, entry.MessageID, text, thinking, entry.IsError)
}

func (l *tableLoader) call(t *query.Trace, c *query.ToolUse) error {
	var result *string
	var isError *bool
	if c.Result != nil {
		result, isError = c.Result.Content, &c.Result.IsError
	}
	return l.insert("tool_calls", t.Name(), c.TurnIndex, query.LaneName(c.Source), c.ToolUseID, c.Name, string(c.Input),
		c.Command, c.Path, c.TimestampMs, c.DurationMs, result, isError, c.Parent)
}

func (l *tableLoader) modelCalls(t *query.Trace) error {
	all, err := t.ModelCalls(l.ctx)
	if err != nil {
		return err
	}
	for _, c := range all {
		tokens := make([]any, 5) // unreported figures are null
		if u := c.Usage; u != nil {
			tokens = []any{u.InputTokens, u.OutputTokens, u.CacheReadTokens, u.CacheWriteTokens, u.ReasoningTokens}
		}
		values := []any{
			t.Name(), c.Lane, c.Seq, c.Turn, c.StartMs, c.Model, c.Protocol, c.Path, c.Status, c.Outcome, c.Retry,
			c.FirstByteMs, c.EndMs,
		}
		values = append(append(values, tokens...), c.CostUSD, c.OriginalUSD, c.Error)
		if err := l.insert("model_calls", values...); err != nil {
			return err
		}
	}
	return nil
}

func (l *tableLoader) messages(t *query.Trace) error {
	messages, err := t.Messages(l.ctx)
	if err != nil {
		return err
	}
	for _, m := range messages {
		to, answer, by := "", any(nil), any(nil)
		if len(m.To) > 0 {
			to = m.To[0]
		}
		if len(m.Answers) > 0 {
			answer, by = m.Answers[0].Text, m.Answers[0].From
		}
		if err := l.insert("messages", t.Name(), m.Line, m.TimestampMs, m.Kind, m.From, to, m.Text, answer,
			by); err != nil {
			return err
		}
	}
	return nil
}
