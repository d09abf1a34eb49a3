package harness

import (
	"fmt"
	"strings"
	"sync"

	"github.com/fit-eval/fit/internal/profile"
	"github.com/fit-eval/fit/redact"
)

// recordLimit is how much of a caller's transcript an advisor gets: the newest part.
const recordLimit = 512 << 10

// recorder keeps what an advisor needs to know about one participant: its system prompt, what it
// was asked, and what it did. It exists only where there is an advisor.
type recorder struct {
	redactor *redact.Redactor

	mu      sync.Mutex
	system  string
	prompts []string
	lines   []string
	size    int
	dropped int
}

func newRecorder(redactor *redact.Redactor, system profile.SystemPrompt) *recorder {
	text := system.Text
	if text != "" && !system.Replace {
		text = "(added to the agent's own system prompt)\n" + text
	}
	return &recorder{redactor: redactor, system: redactor.String(text)}
}

func (r *recorder) prompt(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.prompts = append(r.prompts, r.redactor.String(text))
}

// line keeps an event of the participant; the oldest are dropped when there are too many.
func (r *recorder) line(event []byte) {
	clean := string(r.redactor.JSON(event))
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, clean)
	r.size += len(clean)
	for r.size > recordLimit && len(r.lines) > 1 {
		r.size -= len(r.lines[0])
		r.lines[0] = "" // let go of the text
		r.lines = r.lines[1:]
		r.dropped++
	}
}

// render writes the record as an advisor reads it.
func (r *recorder) render() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var sections []string
	section := func(tag, text string) {
		if text != "" {
			sections = append(sections, fmt.Sprintf("<%s>\n%s\n</%s>", tag, text, tag))
		}
	}
	section("caller_system_prompt", r.system)
	section("caller_prompts", strings.Join(r.prompts, "\n\n"))
	transcript := strings.Join(r.lines, "\n")
	if r.dropped > 0 {
		transcript = fmt.Sprintf("(the first %d lines are left out)\n%s", r.dropped, transcript)
	}
	section("caller_transcript", transcript)
	return strings.Join(sections, "\n\n")
}
