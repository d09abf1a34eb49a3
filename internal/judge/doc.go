// Package judge asks language models about the work of agents, keeps their replies, and derives
// verdicts from them.
//
//  1. A Subject is one run as judges may see it: the task, the patch, the check, the trace. Nothing
//     in it says who did the work.
//  2. Store.Ask puts one binary question per dimension and member and keeps every reply
//     in replies.jsonl, under the SHA-256 of the exact request. The same request is made once.
//  3. Derive reads the replies: it parses them, drops every claim whose citation does not hold in
//     what was shown, takes the majority of the panel, and reconciles comparisons made in both
//     orders. It is a pure function: a better rule costs no call.
//  4. Labels hold what people say about the same runs. They measure the panel's errors, and Correct
//     turns observed rates into corrected ones where the measurement is valid.
//
// A verdict without a citation that holds is an abstention, never a Fail.
package judge

// The results of a question about one run.
const (
	Pass = "Pass"
	Fail = "Fail"
)

// The results of a comparison as members give them.
const (
	winnerX   = "X"
	winnerY   = "Y"
	winnerTie = "tie"
)
