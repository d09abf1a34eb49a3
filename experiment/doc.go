// Package experiment runs tasks × arms × runs: it plans the cells, schedules them, keeps the
// budgets, records every attempt in the ledger, and goes on where an earlier process stopped.
//
//  1. Prepare takes a Setup (family, arms, runs, seed), checks everything, finds every agent, and makes the Plan. Prepared.Probe asks the models one small thing.
//  2. OpenDirectory takes a run directory into possession for the plan: it writes the plan, or finds the same one and reads what was done.
//  3. Prepared.Local makes the executor that does everything on this machine: workspace, preflight, agent, seal, snapshot, grade, judge, record, teardown.
//  4. Run makes the attempts that are missing, and returns how the experiment stands.
//
// # What is kept, and when
//
// plan.json is written before anything is run. attempts.jsonl gets a line before an attempt begins,
// results.jsonl (the ledger) a sealed record when it has ended. A process that is killed at any
// moment leaves at worst a line that says an attempt was begun; the next process records that
// attempt as interrupted and makes it again. A verdict is never repeated; errors of the
// infrastructure are, a bounded number of times.
//
// # The seam
//
// An Executor takes a cell and gives its record. The local one works on this machine; a fleet is
// another one. Everything else (order, budgets, retries, the breaker, the ledger) does not know the
// difference.
package experiment
