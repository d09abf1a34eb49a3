// Package evidence examines one attempt, or two, by code alone, without asking a model: the five
// scores of the rubric that can be measured, signs of cheating with their positions, why an
// unresolved attempt failed, how much it took, when it reached which milestone, and what system
// prompts it was given.
//
// Everything is a pure function of the run directory:
//
//  1. ReadTasks reads tasks.json: what every attempt was asked and how it is checked.
//  2. Collect takes the task, the ledger's record, the trace and the diff of one attempt and
//     returns a Run. Directory.Run does the same from a run directory and keeps the result in its
//     cache.
//  3. Compare sets the milestones of two Runs side by side, ComparePrompts their system prompts.
//
// A trace of any length is read once, in flat memory. Agents are hostile: a trace or a diff proves
// only that the agent printed it.
package evidence
