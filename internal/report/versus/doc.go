// Package versus turns a run directory into an EvalReport: several agents on the same tasks, side
// by side, with claims only if the evidence supports them.
//
//  1. Open reads a run directory of fit versus or fit-benchmark: ledger, plan, tasks, and for every
//     attempt that counts what code alone can tell about it.
//  2. Source.Subjects is what judges are asked about; package judge asks and keeps the replies.
//  3. Source.Report derives verdicts from the replies that are there and builds the report. Build
//     does 1 and 3 in one call.
//  4. Text, Markdown, SARIF and Robot show it.
//
// A report is a function of the directory's content. It reads no clock and no host name, and does
// not depend on the directory's path: the same content gives the same bytes anywhere.
package versus
