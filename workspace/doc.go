// Package workspace makes one clean, sealed directory per attempt, outside any repository, with a
// home, a temporary directory, a port and an environment of its own, and remembers what was in it,
// so that afterwards the difference can be told and graders can work on a copy.
//
// The life of a workspace: Prepare → the agent works in Dir → Seal (nothing is written after it) →
// Snapshot and Diff → graders work on Copy → Remove.
package workspace
