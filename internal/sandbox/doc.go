// Package sandbox starts, limits, isolates and reliably kills one process tree.
//
// It has one job, and it treats the program it runs as hostile: an agent may fork,
// change its session, clear its environment, ignore signals, flood its output and
// leave daemons behind. When Spawn returns, nothing of it is alive.
//
//  1. NewEnvironment builds the child's environment from empty, by allow-list.
//  2. Local.Spawn runs a SpawnSpec, streams its output to two writers, and returns
//     a SpawnResult that distinguishes exit, signal, timeout, cancellation and output
//     limit. A program that fails is a result, not an error.
//  3. Isolation decides what the program sees of the machine: everything ("none"),
//     or only the listed paths, with or without network ("bwrap"). Programs that must
//     reach each other and nothing else share a PrivateNetwork.
//  4. Limits bound each process, and the memory and disk of the whole tree.
//
// # How a program is isolated
//
// Bubblewrap makes the namespaces and mounts (package bwrap), loads a seccomp filter
// (package seccomp), and starts our own binary, which becomes the program (first). No process in
// there is the machine's root: an ordinary user stays the same, in a user namespace; if we are
// root, the program is a user without any rights (identity), and mounts with mapped owners make it
// the owner of the paths that it was given.
//
// # How the killing is made certain
//
// Between us and the program is a supervisor: our own binary, started again. A binary becomes able
// to do that by importing this package: package helper starts it before main, and ends with it in a
// supervisor. In order of preference (SpawnResult.Containment says which one was used):
//
//   - PIDNamespace: the supervisor is process 1 of a new PID namespace. Whatever the
//     program forks stays inside, cannot see or signal anything outside, and the
//     kernel kills it all when the supervisor ends, for whatever reason. Used as root
//     and, through a user namespace, without root where the system allows that. With
//     Isolation bwrap, bubblewrap makes the namespace.
//   - InsideEngine: in a container of podman or docker, orphans become children of the
//     supervisor, as with SubReaper. What outlives a supervisor that was killed falls to
//     the first process of the container, which is ours too and kills it.
//   - SubReaper: orphans become children of the supervisor, which kills descendants
//     until it has no child left. A program that is out to escape could kill the
//     supervisor first.
//   - ProcessGroup: on systems other than Linux, or on request. Signals reach the
//     process group; on Linux also every descendant that can be found, and every
//     process whose environment carries the same EVAL_RUN_ID.
//
// A socket joins the supervisor and us. When we die, even by SIGKILL, it reads the end of the
// stream and kills the tree.
package sandbox
