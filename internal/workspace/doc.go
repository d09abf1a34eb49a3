// Package workspace makes one clean, sealed directory per attempt, outside any repository, with its
// own home, temporary directory, port and environment, and remembers what was in it, so that it can
// compute the difference afterwards and graders can work on a copy.
//
// The life of a workspace: Prepare → the agent works in Dir → Seal (nothing is written after it) →
// Snapshot and Diff → graders work on Copy → Remove.
package workspace
