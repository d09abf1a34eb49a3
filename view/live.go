package view

import "context"

// liveStatus is how a running experiment is doing.
type liveStatus struct{}

// isRunning reports whether a process works in a run directory.
func (s *Server) isRunning(place) bool { return false }

// status asks the process that works in a run directory; nil if there is none.
func (s *Server) status(context.Context, place) *liveStatus { return nil }
