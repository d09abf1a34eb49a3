// Package harness lets several agents work in one session and keeps a trace of everything that
// passes between them.
//
// # How a session works
//
//  1. A mode (NewFacilitator, NewSupervisor, NewDiscusser, NewJudge) takes a config: who leads, who
//     takes part, how agents are made (NewAgent), where the trace goes (Output). Profiles give
//     every participant its persona, model and tools.
//  2. Run posts the task to the lead and starts a loop. Each participant has a queue on the Bus;
//     the loop hands what is queued to the participant's agent as tagged lines, one round at a
//     time, and participants run in parallel.
//  3. Agents act through tools (Ask, Answer, Announce, Conclude …). Every call goes to the
//     Dispatcher, which knows no transport: an MCP server is a thin shell over it, and tests call
//     it directly.
//  4. When a round ends, asks that were delivered and not answered are reminded once, then answered
//     with nothing. When nobody runs and nothing is queued, the lead is nudged once, then the
//     session ends. Limits of time, turns, tokens and dollars end it too. Nothing waits forever.
//  5. The last line of the trace is the summary.
//
// # The trace is the state
//
// Every change of the session's state is an event that is first written to the trace and applied to
// the state by the same code that reads it back. After a crash, Resume rebuilds the state from the
// trace and continues: same conversations, same open asks, same budgets. A line is in the file
// before its effect leaves the process: before a tool call returns, and before a prompt is handed
// to an agent.
//
// # Order and backpressure
//
// Messages from one sender to one receiver arrive in the order they were sent. Messages from
// different senders arrive in the order in which their tool calls were accepted, which is the order
// of the message lines in the trace. Queues have no limit: what bounds a session are its limits,
// and the size of one message. A sender never waits for a receiver.
package harness
