// Package crash kills whole sessions of real agents, at every line of their trace, and resumes
// them.
package crash
