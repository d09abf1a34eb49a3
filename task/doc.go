// Package task loads and validates what there is to do. A task family directory and, later, other formats become the same Family of Tasks; everything
// downstream knows only those. All that can be wrong with a family is found here, before a cent is spent, with the file and line of each mistake.
//
// The layout of a family:
//
//	family.yaml          optional settings for all tasks
//	judge.md             optional profile of the judge
//	.claude/             optional skills and profiles, staged into every working directory
//	.env, .env.local     optional environment
//	workdir/, specs/     optional base of every working directory
//	tasks/<id>/
//	  agent.task.md      what the agent is asked, word for word
//	  supervisor.task.md optional, for a supervising lead
//	  judge.task.md      optional; its presence turns the judge on
//	  task.yaml          optional settings of this task
//	  hooks/             preflight.sh, invariants.sh and whatever they need: hidden from the agent
//	  tests/             hidden test suite
//	  solution/          optional reference solution, an overlay that makes all checks pass: hidden from the agent
//	  workdir/, specs/   optional overlays
//	  .env, .env.local   optional environment
//
// The agent sees the overlays and the prompt. Everything else is hidden material.
package task
