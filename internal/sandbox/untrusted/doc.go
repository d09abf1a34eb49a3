// Package untrusted runs a program that must not reach the processes around it, in a process that
// was started under its Name.
package untrusted
