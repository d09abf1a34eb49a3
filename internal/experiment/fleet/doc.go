// Package fleet runs the cells of an experiment on many machines, over NATS JetStream.
//
//  1. A hub is a NATS server with JetStream: the embedded one (StartServer) or an existing cluster.
//     Dial connects to it with one of the URLs that fit fleet serve writes, whose key has a role.
//  2. Work makes this machine a worker: it announces what it can do, pulls attempts that it can
//     run, runs each with an executor of experiment/local, and reports how it ended.
//  3. New makes the Executor of an experiment for experiment.Run. It publishes attempts and returns
//     the first record that comes back for each.
//
// # What is true
//
// The run directory is authoritative, the queue is not. The coordinator publishes what the run
// directory lacks, one message per attempt with the attempt's name as message id. If the hub loses
// everything, the coordinator publishes it again. If the coordinator dies, the same command on the
// same run directory takes its place: attempts that workers are running are adopted, not repeated.
//
// # Who runs a cell
//
// Attempts with the same needs form a pool with its own stream. Workers pull only from pools whose
// needs they meet. An attempt stays with its worker while the worker reports progress and the hub
// confirms it. A worker without confirmation for the time of the lease kills its sandbox; after the
// same time the hub gives the attempt to another worker.
//
// # What travels
//
// Files of tasks, skills and node_modules are sent as trees, and workers cache them. The hash of a
// tree is its name and the key to read it; it is known to the coordinator and, by way of the
// message of an attempt, to the worker that takes it. The files of an attempt come back as one
// file, are checked by its hash, and are put into the run directory as a local run would leave
// them. Model keys are never sent: workers take them from their own environment.
//
// # Who trusts whom
//
// A hub lets coordinators, workers and observers do what their role needs (permit). A result is
// signed by its worker and has the ticket of the attempt, which only who took the attempt knows.
// The coordinator accepts what an attempt can be (accept.go) and repeats the rest; a worker runs
// what its owner allows (Policy).
package fleet
