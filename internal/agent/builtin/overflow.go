package builtin

import (
	"fmt"

	"github.com/fit-eval/fit/internal/display"
	"github.com/fit-eval/fit/internal/model"
)

const (
	// keepResults is how many of the latest tool results are never dropped: the model is still
	// working with them.
	keepResults = 2
	droppedText = "[left out to save space; run the tool again if this is needed]"
)

// makeRoom shortens a conversation that no longer fits: it drops the text of the older half of the
// tool results that are still there, which fill a conversation up. It returns how many it dropped;
// none means that nothing more can be done.
func makeRoom(messages []model.Message) (shorter []model.Message, dropped int) {
	var candidates []*model.ToolResult
	shorter = make([]model.Message, len(messages))
	for i, m := range messages {
		blocks := make([]model.Block, len(m.Blocks))
		copy(blocks, m.Blocks)
		for j := range blocks {
			if blocks[j].Result == nil {
				continue
			}
			result := *blocks[j].Result
			blocks[j].Result = &result
			if len(result.Text) > len(droppedText) {
				candidates = append(candidates, blocks[j].Result)
			}
		}
		shorter[i] = model.Message{Role: m.Role, Blocks: blocks}
	}
	if len(candidates) <= keepResults {
		return messages, 0
	}
	dropped = max(1, (len(candidates)-keepResults+1)/2)
	for _, result := range candidates[:dropped] {
		result.Text = droppedText
	}
	return shorter, dropped
}

// clip shortens one tool result from the middle, where it matters least. The text is redacted
// before it is cut, for the model too: the trace shows the same text, and half a secret is not
// recognised there.
func (c *conversation) clip(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	text = c.cfg.Redactor.String(text)
	head, tail := display.FirstBytes(text, limit/2), display.LastBytes(text, limit/2)
	return fmt.Sprintf("%s\n[… %d bytes left out …]\n%s", head, len(text)-len(head)-len(tail), tail)
}
