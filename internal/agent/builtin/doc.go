// Package builtin is a real, small coding agent that is part of the binary: a loop around a
// language model with the tools Bash, Read, Write, Edit, Glob and Grep, confined to its working
// directory. It is for people without a vendor's CLI, with their own key or any OpenAI-compatible
// local server; the demo and most tests run it on the scripted model. NewModel is the same without
// tools: one request for a prompt.
//
// It prints the stream of system, assistant, user and result objects that session.StreamDialect
// decodes. A conversation is kept in a file under the session's home, so that another process can
// resume it. Its shell runs through the same spawner as every other agent, with an environment that
// never holds a key.
//
// The system prompt has the first 32 KiB of AGENTS.md of the working directory, or of CLAUDE.md
// where that is missing, and names the skills in .claude/skills and .agents/skills, with their
// descriptions and paths; the model reads those that fit. With context none it has neither.
package builtin
