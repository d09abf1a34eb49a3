// Package network runs agents that try to reach what their network does not have. A cell of every
// agent is left with its model, the tools of its team and the service of its task: the task is
// solved, and every attempt to reach anything else must fail. The same attempts are made once with
// the machine's network, where they must succeed; without that they would prove nothing.
package network
