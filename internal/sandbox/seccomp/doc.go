// Package seccomp says which system calls no isolated program may make.
package seccomp
