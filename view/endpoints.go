package view

// endpoints are the answers of the server, by the patterns of their addresses.
func (s *Server) endpoints() map[string]endpoint {
	return map[string]endpoint{
		"GET /api/experiments":           s.experiments,
		"GET /api/experiments/{x}":       s.experiment,
		"GET /api/experiments/{x}/cells": s.cells,
	}
}
