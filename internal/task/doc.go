// Package task loads a family of tasks from a directory or from a git repository, and checks
// everything about it before any money is spent.
//
//	family, err := task.Load(ctx, "https://host/families.git//node@v2", task.Options{Environ: os.Environ()})
//
// # The layout of a family
//
//	family.yaml        optional: name, secrets, and settings for all tasks (docs/schema/family.schema.json)
//	.claude/           optional: skills, staged into every working directory
//	judge.md           optional: the judge's profile
//	.env, .env.local   optional: environment for all tasks
//	workdir/, specs/   optional: base of every working directory, and of specs/ in it
//	tasks/<id>/
//	  agent.task.md       the task, word for word
//	  supervisor.task.md  optional: more for a supervising lead
//	  judge.task.md       optional: turns the judge on
//	  task.yaml           optional: settings of this task (docs/schema/task.schema.json)
//	  hooks/preflight.sh  optional: runs before the agent, and may start services
//	  hooks/invariants.sh optional: grades
//	  tests/              optional: the hidden suite
//	  solution/           optional: makes all checks pass when laid over the working directory
//	  workdir/, specs/, .env, .env.local
//
// Later overlays win: the family's workdir, its specs, the task's workdir, its specs. A task needs
// an invariants hook or a hidden suite.
//
// # The hidden suite
//
// Every test file is a check, and its name without what marks it as a test is the check's name; all
// other files support them. A gate in the name makes the check a gate:
//
//	language  checks                    gates                               name of the check
//	node      x.test.js, x.test.mjs     x.gate.test.js, x.gate.test.mjs     x
//	go        x_test.go                 x_gate_test.go                      x
//	python    test_x.py, x_test.py      test_x_gate.py, x_gate_test.py      x
//	other     what tests.files names    x.gate.<anything>                   x
//
// The language follows from the files; tests.language decides where that is not clear. Two checks
// of one name, a suite without checks, and links that lead nowhere or out of the family are
// mistakes.
//
// # Mistakes
//
// Load reports all of them, joined; each is a *document.Error that names the file and, where there
// is one, the line and column.
package task
