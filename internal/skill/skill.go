// Package skill reads skills: directories with a SKILL.md, whose front matter says what the skill is
// called and when to use it.
package skill
