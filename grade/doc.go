// Package grade checks what an agent has done with evidence that the agent cannot touch: hooks and hidden tests, run on a copy of the final working
// directory, become rows; rows become a grade.
//
// A row is a gate, scored or diagnostic. Hook exit codes only tell whether the grader is healthy. Zero rows are an error, not a pass; a grader that is
// healthy on the base snapshot and dies, hangs or is killed on the agent's copy is a fail.
package grade
