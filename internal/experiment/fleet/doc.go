// Package fleet runs the cells of an experiment on many machines, over NATS JetStream.
//
//  1. A hub is a NATS server with JetStream: the embedded one (StartServer) or an existing cluster.
//     Dial connects to it with the join URL that fit fleet serve prints.
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
// Files of tasks, skills and node_modules are sent as trees that are named by the hash of their
// content, and workers cache them. The files of an attempt come back as one object, are checked by
// its hash, and are put into the run directory as a local run would leave them. Keys are never
// sent: workers take them from their own environment.
package fleet
