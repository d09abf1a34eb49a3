// Package versus runs a whole head to head for real: Claude Code, Codex and pi on one task, with
// the scripted model on loopback, judged and reported.
package versus
