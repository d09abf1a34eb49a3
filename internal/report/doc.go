// Package report turns ledgers into answers: pass@k with intervals, the comparison of two arms with
// a decision, and the same as text, JSON, Markdown and JUnit.
//
//  1. Build takes the records of a ledger, what was planned, and the values of k, and makes a
//     Report: one Group for every arm, never mixing what was measured under different conditions.
//     Errors are missing data: they are counted and bounded, not taken for failures.
//  2. Text, Markdown, JUnit and plain JSON encoding show it.
//  3. Compare takes two groups and gives a Comparison: the decision with its sentence, differences
//     by task, and what it cost.
package report
