// Package cheats runs agents that cheat, end to end: the built-in agent follows a script, works on
// the shipped families in the isolation that they are shipped with, and is graded as always. No
// cheat may be called a pass, and none may end in an error, which would give it another try. Beside
// them run agents that solve the task, which must pass, and agents that do nothing, which must
// fail; without these the rest would prove nothing.
package cheats
