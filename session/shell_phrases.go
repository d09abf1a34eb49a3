package session

import "strings"

// phrase is the beginning of a well-known command.
type phrase struct {
	text string
	last bool // nothing may follow it
}

// The phrases are sorted by their first letters, so that most positions of a command are checked
// only once.
var (
	testPhrases = byFirstLetter("go test", "npm test", "npm run test", "npx jest", "npx vitest", "pnpm test",
		"pnpm run test", "yarn test", "bun test",
		"pytest", "python -m pytest", "python -m unittest", "python3 -m pytest", "python3 -m unittest", "cargo test",
		"mvn test", "gradle test", "make test",
		"make check", "ctest", "rspec")
	buildPhrases = byFirstLetter(
		"go build",
		"go vet",
		"go install",
		"tsc",
		"npx tsc",
		"cargo build",
		"cargo check",
		"npm run build",
		"pnpm build",
		"pnpm run build",
		"yarn build",
		"mvn compile",
		"mvn package",
		"gradle build",
		"gradle assemble",
		"make$",
		"make all$",
		"make build$",
		"cmake --build",
	)
)

// byFirstLetter makes a table of phrases; a phrase that nothing may follow ends in $.
func byFirstLetter(texts ...string) (table [26][]phrase) {
	for _, text := range texts {
		text, last := strings.CutSuffix(text, "$")
		table[text[0]-'a'] = append(table[text[0]-'a'], phrase{text, last})
	}
	return table
}

// runsTests reports whether a well-known test command occurs in a shell command, as separate words.
func runsTests(command string) bool {
	return occurs(&testPhrases, command, func(next byte) bool { return !isWordByte(next) })
}

// builds reports whether a well-known build command does.
func builds(command string) bool {
	return occurs(&buildPhrases, command,
		func(next byte) bool { return isBlank(next) || strings.IndexByte(";&|)", next) >= 0 })
}

// occurs searches a command for phrases that begin where a command can begin, and after which
// mayFollow says that they end.
func occurs(table *[26][]phrase, command string, mayFollow func(next byte) bool) bool {
	for i := range len(command) {
		if i > 0 && !precedesCommand(command[i-1]) {
			continue
		}
		c := command[i]
		if c < 'a' || c > 'z' {
			continue
		}
		for _, p := range table[c-'a'] {
			rest, found := strings.CutPrefix(command[i:], p.text)
			if found && (rest == "" || (!p.last && mayFollow(rest[0]))) {
				return true
			}
		}
	}
	return false
}

func precedesCommand(c byte) bool {
	return c <= '|' && (isBlank(c) || c == ';' || c == '&' || c == '|' || c == '(')
}

func isBlank(c byte) bool { return c == ' ' || (c >= '\t' && c <= '\r' && c != '\v') }

func isWordByte(c byte) bool {
	return c == '_' || (c >= '0' && c <= '9') || (c|0x20 >= 'a' && c|0x20 <= 'z')
}
