// Package experiment plans and runs tasks × arms × runs: it schedules the cells, keeps the budgets,
// records every attempt in the ledger, and continues where an earlier process stopped.
//
//  1. A Setup says what to measure. local.Prepare checks it and makes a Prepared with its Plan.
//  2. OpenDirectory locks a run directory for the plan: it writes the plan, or finds the same one
//     and reads what was done.
//  3. An Executor makes attempts. The one in experiment/local does everything on this machine:
//     workspace, preflight, agent, seal, snapshot, grade, judge, record, teardown.
//  4. Run makes the attempts that are missing, and returns the state of the experiment.
//
// # What is kept, and when
//
// plan.json is written before anything is run. attempts.jsonl gets a line before an attempt begins,
// results.jsonl (the ledger) a sealed record when it has ended. A process that is killed at any
// moment leaves at worst a line that says an attempt was begun; the next process records that
// attempt as interrupted and retries it. A verdict is never repeated; infrastructure errors are
// retried a bounded number of times.
//
// # Where cells run
//
// An Executor takes a cell and returns its record; a Sink takes the files that attempts leave. A
// fleet is another executor with another sink. Everything else (order, budgets, retries, the
// breaker, the ledger) does not know the difference.
package experiment
