// Package bwrap says what bubblewrap shows a program of the machine, its mounts and its /etc, and
// reads what bubblewrap reports.
package bwrap
