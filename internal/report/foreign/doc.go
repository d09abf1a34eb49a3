// Package foreign reads the results of other harnesses as records of ours, and writes ours in their
// formats. Each format has one file for each direction.
//
// What a source does not know stays unknown, and an error is never a failed task.
package foreign
