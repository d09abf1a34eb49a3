package builtin

import (
	"context"
	"time"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/model"
)

// PromptOnce is Prompt with an id that identifies the prompt after a crash. If the conversation
// does not have the prompt yet, it is given now; otherwise the work continues after the last
// message that was saved: nothing is said twice, and repeated tool calls carry the ids they had.
func (c *conversation) PromptOnce(ctx context.Context, id, prompt string) (agent.Result, error) {
	if c.promptID != id || !c.wasAsked(prompt) {
		return c.prompt(ctx, id, prompt)
	}
	state := &turnState{begin: time.Now(), priced: true}
	c.announce()
	last := c.messages[len(c.messages)-1]
	calls := model.Response{Blocks: last.Blocks}.ToolCalls()
	switch {
	case last.Role == model.User:
		c.work(ctx, state)
	case len(calls) == 0: // it had answered; only the end was missing
		state.subtype, state.text = resultSuccess, model.Response{Blocks: last.Blocks}.Text()
	default:
		if state.err = c.callTools(ctx, calls, true); state.err != nil {
			state.subtype = resultExecution
			break
		}
		c.work(ctx, state)
	}
	return c.finish(ctx, state), nil
}

// wasAsked reports whether a prompt is the last thing that the user said in the conversation.
func (c *conversation) wasAsked(prompt string) bool {
	for i := len(c.messages) - 1; i >= 0; i-- {
		if m := c.messages[i]; m.Role == model.User && !hasResults(m) {
			return len(m.Blocks) == 1 && m.Blocks[0].Text == prompt
		}
	}
	return false
}
