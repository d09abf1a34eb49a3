// Package proc looks at the processes of this machine: which belong together, what they use, and
// which of them holds a connection.
package proc
