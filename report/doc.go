// Package report turns ledgers into answers: pass@k with intervals, the comparison of two arms with a decision, and the same as text, JSON, Markdown and JUnit.
package report
