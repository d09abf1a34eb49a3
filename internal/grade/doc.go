// Package grade checks what an agent has done with evidence that the agent cannot touch: hooks and
// hidden tests, run on copies of the final working directory, become rows; rows become a grade.
//
//	result, err := grade.Run(ctx, grade.Config{Task: t, Source: ws, Artifacts: dir, Baseline: shared})
//
// Run never writes to the working directory itself. Each producer of rows gets a fresh copy, with
// the task's protected files put back as they were, and a sandbox that ends with its whole process
// tree.
//
// # Rows
//
// A row is a gate, scored, diagnostic or malformed ([Classify]); [Count] adds rows up. The exit
// code of a hook only says whether the grader is healthy. No checks at all are an error, not a
// pass. A grader that dies, hangs, falls silent or leaves out declared checks on the agent's copy
// runs again without the agent's work, at that moment: if it is healthy there, the agent broke it,
// which is a fail; otherwise nothing was measured, which is an error. A hook that died or gave up
// runs again on both, and is an error if it ever disagrees with itself. A machine that has run out
// of disk, memory or descriptors gives no verdict at all.
//
// The invariants hook writes rows to descriptor 3. It is a socket: no program can truncate it,
// rewrite it, or open it again to read what others wrote. A program of the agent that the hook
// starts by itself inherits it and can add rows; one that it starts by fit-untrusted
// ([untrusted.Name]), which is on its search path, has neither the descriptor nor the hook's
// variables, and can neither look into its processes nor end them. In bubblewrap it sees the work
// and the system, and nothing of the family, the hook or the tests. Rows that contradict each other
// fail, and where a task declares its checks, as lint wants it to, so do others and repeated ones;
// there is no score then. Hooks must write to the descriptor (>&3); /dev/fd/3 cannot be opened.
//
// # Hidden tests
//
// A check is one file of the hidden suite and becomes one row. It passes when its process ended by
// itself with status 0, every expected test was reported as passed exactly as often as expected,
// and none was reported as failed, skipped or still to do. Which tests to expect is known from
// sources that no agent has touched: the family's declaration; for Go the parsed source; otherwise
// a run on the reference solution, or on the base where there is none; and if that names no tests,
// the names that are in the source as plain text.
//
// Reports are not read from what a process merely prints. Our runners hold one random secret per
// test and give it away only when that test has passed, so a process that exits early, or prints a
// perfect report, has proved nothing:
//
//   - Go: tests are renamed and wrapped, and compiled by us with all settings of the go command
//     overridden. They are never in the agent's directory: the go command takes them from ours
//     (-overlay), and they are gone before anything runs. The wrapper prints its secret after the
//     test has returned, without failure or skip, subtests included. Packages of the agent must
//     compile without the tests, so they cannot use a name of theirs; one that embeds a hidden file
//     or links to a name of its module fails. The program can be run and not read. Test files of
//     the package are put back as in the base, so that neither TestMain nor colliding names of the
//     agent count, and so are assembler and object files; a vendor directory, go.work or replace
//     directive that the base does not have is not used. Everything is compiled before any code of
//     the agent runs, with a cache that the agent never could write to. cgo is off.
//   - Node: each file runs in a process of its own, with our reporter loaded before anything
//     else. It takes the secrets from standard input into variables that no other module can
//     reach, and makes node:assert, node:test, the module loader and the streams that carry
//     events unchangeable, and the contexts of tests, which it closes before anybody else has them;
//     heap snapshots, the inspector and internal bindings are refused. The
//     reporter can be used once, only tests of the hidden suite's files count, and none counts
//     before the test file was loaded to its end.
//   - Python: our runner starts in isolated mode, searches the standard library before the
//     working directory, ignores compiled files of the agent, puts conftest.py and
//     sitecustomize.py back as they were, reads no settings of pytest, and fails when unittest or
//     a built-in function was changed while tests ran.
//   - A family's own command is run as it is and believed by its report (TAP, JUnit XML, go test
//     -json, or the nonce of the run as the last line), which must name the tests that it names
//     for the reference solution. A report file is deleted before the run. A report that is
//     printed goes through a socket that programs which the command starts cannot open, and in a
//     sandbox they cannot write to the test file.
//
// Every check has a fresh copy, so that nothing that the agent's code does during one reaches the
// next; Go's tests share one, because they are compiled before.
//
// # Who runs whom
//
// Shells of hooks and of a family's own commands run from a copy that no program may read. The
// kernel then keeps other processes of the same user out of their memory and descriptors, so a
// program under test cannot rewrite the script that checks it. fit-untrusted, which hooks and
// suites find on their search path, goes further: it runs a program in new namespaces, where it has
// no name for the processes around it and leaves none behind. Git settings that the agent left
// (.git/config, hooks, attributes, a .git file) are put back before a hook or a command runs, and
// git reads no settings of the user. [Hints] returns lint's advice about a task.
//
// # What remains
//
// Unit tests run code of the agent in their own process, and nothing inside of one process is safe
// from native code. An agent that knows this package can read /proc/self/mem in Node and Python, or
// in Go read and patch machine code with unsafe, or in Python walk up the stack to the runner's
// variables, and find secrets there. In Python, functions that hidden tests call through modules
// other than unittest can be replaced, and objects can claim to equal everything: compare plain
// values. Code can recognise that it is being tested and answer from a table, and except in Go it
// can read the hidden test that is about to run, which is in its directory. Programs that a hook
// starts without fit-untrusted can read the hook's environment and the hidden suite; in a
// container, and where a user namespace gives no privileges, those that it starts by fit-untrusted
// can read the suite, too. Graders of tasks with a service share a loopback with it and have no
// other network, unless the machine cannot make one: the record says so then. A family's own
// command is only as good as its report: agent code that runs in its process can print one.
// exit-nonce is the weakest, because the nonce is in the command line. Without isolation (none)
// graders have the network and see the machine. Families that need more should test through a
// process boundary: start the agent's program from the hidden test and look at what it answers.
package grade
