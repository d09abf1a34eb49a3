package console

import (
	"bufio"
	"fmt"
	"strings"
)

// What a person can say about a piece of work.
const (
	VerdictPass = "p"
	verdictFail = "f"
	VerdictSkip = "s"
	VerdictQuit = "q"
)

// AskVerdict asks a person about what was just shown. The end of the input is a wish to quit.
func (c *Console) AskVerdict(answers *bufio.Scanner, about string) (string, error) {
	for {
		fmt.Fprintf(c.Stderr, "%s: p(ass), f(ail), s(kip), q(uit)? ", about)
		if !answers.Scan() {
			if err := answers.Err(); err != nil {
				return "", fmt.Errorf("read the answer: %w", err)
			}
			fmt.Fprintln(c.Stderr)
			return VerdictQuit, nil
		}
		switch answer := strings.ToLower(strings.TrimSpace(answers.Text())); answer {
		case "p", "pass":
			return VerdictPass, nil
		case "f", "fail":
			return verdictFail, nil
		case "s", "skip":
			return VerdictSkip, nil
		case "q", "quit":
			return VerdictQuit, nil
		}
	}
}
