// Package local runs the cells of an experiment on this machine: each attempt gets a workspace, an
// agent works in it, graders the agent cannot touch look at copies of the result, and a judge is
// asked where the task has one.
//
//  1. A Machine has the agents, the environment and the prices of this machine.
//  2. Prepare checks an experiment.Setup on it and makes an experiment.Prepared, which is plain
//     data.
//  3. New makes the Executor of a prepared experiment; Probe asks every model one small thing, and
//     Warm fills build caches.
//  4. experiment.Run calls Execute for every attempt.
package local
