// Package experiment runs tasks × arms × runs: it plans the cells, schedules them, keeps the budgets, records every attempt in the ledger, and goes on where
// an earlier process stopped.
//
// An Executor takes a cell and gives its sealed result. The local one works on this machine; a fleet is another one.
package experiment
