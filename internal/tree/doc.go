// Package tree copies, hashes and packs directories exactly: contents, permissions, times,
// symlinks and hard links. A hostile program may have written them. Directories are opened by
// descriptor below one root, so that no symlink, not even one that appears meanwhile, leads
// outside; pipes, sockets and devices are never opened; depth, number and size are bounded.
//
// Set-user-ID and set-group-ID bits are left out: a copy must not give anybody the rights of
// whoever copied. What its owner could not read becomes readable in a copy.
//
// A digest that is stored in plans and ledgers is a list of lines over the entries of a tree. Each
// format is written by the package that stores it, and never changes.
package tree
