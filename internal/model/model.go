// Package model talks to language models. One neutral conversation goes in, one neutral reply comes
// out, whichever of the protocols is between: Anthropic Messages, OpenAI Responses, OpenAI Chat
// Completions, which most local servers imitate, or Google's generateContent.
//
//	client, err := model.New(model.Config{Protocol: model.Anthropic, APIKey: key})
//	reply, err := client.Complete(ctx, model.Request{
//		Model:     "claude-sonnet-4-5",
//		MaxTokens: 4096,
//		Messages:  []model.Message{model.UserText("What does this repository do?")},
//	})
//
// To continue a conversation append Message{Role:
// Assistant, Blocks: reply.Blocks} and the next user message: signatures of thinking blocks are
// kept for that.
//
// Rate limits, overload, server errors and broken connections are retried with backoff; see Config.
// What remains comes back as an *Error, whose Kind distinguishes the causes. The wire formats live
// in the package wire, the scripted model that speaks them from the other side in the package
// scripted.
package model

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/fit-eval/fit/price"
)

// Client is a connection to one model endpoint. It may be used by many goroutines concurrently.
type Client interface {
	// Complete asks for the next reply. A refusal comes back as both a Response, because it was
	// paid for, and an *Error of KindRefusal.
	Complete(ctx context.Context, req Request) (Response, error)
}

// Request is a conversation, and what the model may do about it.
type Request struct {
	Model    string
	System   string
	Messages []Message
	Tools    []Tool
	// MaxTokens bounds the reply. Zero leaves it to the server, or to defaultMaxTokens where the
	// protocol demands a figure.
	MaxTokens   int
	Temperature *float64
	// Effort is the reasoning effort of the OpenAI protocols ("low", "medium", "high"); empty
	// leaves it to the server.
	Effort string
}

// defaultMaxTokens bounds replies where the request does not and the protocol demands it.
const defaultMaxTokens = 8192

// Role says who speaks.
type Role string

// The roles. Tool results are spoken by the user.
const (
	User      Role = "user"
	Assistant Role = "assistant"
)

// Message is one message of a conversation.
type Message struct {
	Role   Role    `json:"role"`
	Blocks []Block `json:"blocks"`
}

// UserText returns a user message of plain text.
func UserText(text string) Message {
	return Message{Role: User, Blocks: []Block{{Type: BlockText, Text: text}}}
}

// BlockType says what a block holds.
type BlockType string

// The types of blocks.
const (
	BlockText       BlockType = "text"
	BlockThinking   BlockType = "thinking"
	BlockToolCall   BlockType = "tool_call"
	BlockToolResult BlockType = "tool_result"
)

// Block is a part of a message. It can be stored as JSON and read back, so that a conversation
// survives its process.
type Block struct {
	Type BlockType `json:"type"`
	Text string    `json:"text,omitempty"`
	// ID, Signature and Hidden belong to thinking; they are opaque and must be sent back unchanged.
	// Hidden thinking has no readable text at all.
	ID        string      `json:"id,omitempty"`
	Signature string      `json:"signature,omitempty"`
	Hidden    bool        `json:"hidden,omitempty"`
	Call      *ToolCall   `json:"call,omitempty"`
	Result    *ToolResult `json:"result,omitempty"`
}

// Tool is a function the model may call.
type Tool struct {
	Name        string
	Description string
	// Schema is the JSON Schema of the input, an object.
	Schema json.RawMessage
}

// ToolCall is the model's wish to call a tool.
type ToolCall struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	// Input is always valid JSON: an empty object where the model produced none.
	Input json.RawMessage `json:"input"`
	// InvalidInput is what the model wrote where that was not a JSON object.
	InvalidInput string `json:"invalid_input,omitempty"`
}

// ToolResult answers a tool call.
type ToolResult struct {
	CallID  string `json:"call_id"`
	Text    string `json:"text"`
	IsError bool   `json:"is_error,omitempty"`
}

// StopReason says why the model stopped.
type StopReason string

// The reasons to stop. Servers may have others, which are passed on as they are.
const (
	StopEndTurn   StopReason = "end_turn"
	StopToolUse   StopReason = "tool_use"
	StopMaxTokens StopReason = "max_tokens"
	StopRefusal   StopReason = "refusal"
)

// Response is a whole reply.
type Response struct {
	ID         string
	Blocks     []Block
	StopReason StopReason
	Usage      price.TokenUsage
	// Attempts is the number of requests it took.
	Attempts int
}

// Text joins the text blocks of the reply.
func (r Response) Text() string {
	var parts []string
	for _, b := range r.Blocks {
		if b.Type == BlockText {
			parts = append(parts, b.Text)
		}
	}
	return strings.Join(parts, "\n")
}

// ToolCalls lists the tools the reply wants called, in order.
func (r Response) ToolCalls() []ToolCall {
	var calls []ToolCall
	for _, b := range r.Blocks {
		if b.Type == BlockToolCall && b.Call != nil {
			calls = append(calls, *b.Call)
		}
	}
	return calls
}
