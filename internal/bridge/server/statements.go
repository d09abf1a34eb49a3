package server

import (
	"database/sql"
	"sync"
)

// statements runs queries, each of which is compiled once: that takes longer than to run it.
type statements struct {
	prepare func(query string) (*sql.Stmt, error)

	mu    sync.Mutex
	known map[string]*sql.Stmt
}

func newStatements(prepare func(query string) (*sql.Stmt, error)) *statements {
	return &statements{prepare: prepare, known: map[string]*sql.Stmt{}}
}

func (s *statements) of(query string) (*sql.Stmt, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.known[query]; known != nil {
		return known, nil
	}
	compiled, err := s.prepare(query)
	if err == nil {
		s.known[query] = compiled
	}
	return compiled, err
}

// Exec runs a statement.
func (s *statements) Exec(query string, args ...any) (sql.Result, error) {
	compiled, err := s.of(query)
	if err != nil {
		return nil, err
	}
	return compiled.Exec(args...)
}

// Query runs a query that returns rows.
func (s *statements) Query(query string, args ...any) (*sql.Rows, error) {
	compiled, err := s.of(query)
	if err != nil {
		return nil, err
	}
	return compiled.Query(args...)
}

// One reads a row, or fails with sql.ErrNoRows.
func (s *statements) One(query string, args []any, into ...any) error {
	compiled, err := s.of(query)
	if err != nil {
		return err
	}
	return compiled.QueryRow(args...).Scan(into...)
}
