// Package pipes moves what a program reads and writes, whatever becomes of the program.
package pipes
