// Package ledger is the record of an experiment: results.jsonl, one sealed line per attempt,
// appended and synced as attempts end, never rewritten.
//
// Each record carries the hash of the one before it, so that a line that was changed, removed or
// slipped in is found when the ledger is read. A writer holds a lock; a line torn by a crash is
// recovered by the next writer. Ledgers of shards are merged by a pure function.
package ledger
