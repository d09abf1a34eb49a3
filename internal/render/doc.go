// Package render turns the events of a trace into the text a person reads in a terminal: while a
// session runs, and afterwards from the file. Both go through the same Renderer, so that the live
// output can be seen again.
package render
