package redact

import (
	"strings"
	"sync"
)

// vocabulary lists the names of fields and the fixed values of events, envelopes and records, which
// are in every trace. A secret that happens to be one of these words is not given away where such a
// word belongs, and a trace in which they were replaced could not be read any more. Words shorter
// than a secret may be are left out.
const vocabulary = `
AgentMessage Bash CommandExecution Edit FileChange Glob Grep Read Task UserMessage Write _meta aborted
aborted_tools active additionalProperties agent agentId agentMessage agent_end agent_message agent_start agents
aggregated_output answer api_error api_retry apikey apply_patch args arguments assistant assistantMessageEvent
attachment attempt auto_retry_end auto_retry_start available bash behavior budget budget_exhausted
bypassPermissions cacheCreationInputTokens cacheReadInputTokens cache_creation cache_creation_input_tokens
cache_read_input_tokens cached_input_tokens callId call_id cancel cancelled canonical changes choices
claude_code_version command commandExecution command_execution commands compact_boundary compaction
compaction_end compaction_start completed completed_at connected content contentIndex content_block
content_block_delta content_block_start content_block_stop content_index content_type contextWindow
control_request control_response cost costUSD costUsd cost_usd count created createdAt custom custom_tool_call
custom_tool_call_output data decision default delayMs delivery delta description details developer diff document
dropped duration durationMs duration_api_ms duration_ms edit edits emittedAtMs end_turn enum ephemeral error
errorMessage error_during_execution error_max_budget_usd error_max_turns error_status errors event event_msg
events exec_command exitCode exit_code expired fail failed file fileChange filePath file_change file_path files
final finish_reason function function_call function_call_output hash hooks idle image inProgress in_progress
index info init initialize input inputSchema inputTokens input_json_delta input_schema input_text input_tokens
interrupt interrupted isError isSidechain is_error item item.completed item.started item.updated
item/agentMessage/delta item/completed item/started itemId item_id items jsonrpc judge kind label language
last_token_usage lead_turn_limit length level limit lines list maxTokens max_tokens max_turns mcpToolCall
mcp_servers mcp_tool_call message messageId message_delta message_end message_id message_start message_stop
message_update messages meta metadata method mode model modelId modelUsage model_change
model_usage_since_last_result models name namespace newString newText new_string no_result none
notifications/initialized null num_turns object oldString oldText old_string open operation orchestrator outcome
output outputTokens output_index output_text output_tokens output_tokens_details params parent parentId
parentUuid parent_tool_use_id partial participant pass passed path paths pattern payload pending permissionMode
permission_denials permission_denied phase ping plan plugins prefix prev previous_response_id process_id prompt
promptId properties protocol protocol_violation provider question questions queue-operation rate_limits reason
reasoning reasoning_effort reasoning_output_tokens recovered redacted_thinking refusal reminder request
requestId request_id required response response.completed response.created responseId response_id response_item
result results retry_delay_ms role runtime schema search server server_tool_use session sessionId session_id
session_meta session_start settings signature skills skipped slash_commands source standard started started_at
status stderr stdout stop stopReason stop_details stop_reason stop_sequence stream streamIndex stream_event
string structuredContent structured_content subscription subtype success summary summaryIndex summary_index
summary_text supervise system system_prompt task_complete task_started terminal_reason text text_delta text_end
text_start thinking thinkingSignature thinking_delta thinking_end thinking_level_change thinking_start
thinking_tokens thread thread.started thread/started thread/tokenUsage/updated threadId thread_id timeout
timestamp timestampMs title tokenUsage token_count tokens tool toolCall toolCallId toolName toolResult
toolResults toolUseResult tool_calls tool_choice tool_execution_end tool_execution_start tool_execution_update
tool_name tool_result tool_use tool_use_id tool_use_result toolcall_delta toolcall_end toolcall_start tools
total totalTokens total_cost_usd total_token_usage total_tokens trigger turn turn.completed turn.failed
turn.started turn/completed turn/diff/updated turn/started turnId turnIndex turn_context turn_end turn_id
turn_start turns type unknown updated updatedAt usage user uuid value values verdict version warning web_search
willRetry
`

var knownWords = sync.OnceValue(func() map[string]bool {
	words := map[string]bool{}
	for word := range strings.FieldsSeq(vocabulary) {
		words[word] = true
	}
	return words
})

// enumerations are the fields whose values are among a few fixed ones.
var enumerations = map[string]bool{
	"type": true, "subtype": true, "role": true, "method": true, "kind": true, "status": true, "source": true,
	"stop_reason": true, "stopReason": true, "finish_reason": true, "terminal_reason": true, "runtime": true,
	"protocol": true, "mode": true, "outcome": true, "reason": true, "verdict": true, "canonical": true,
	"permissionMode": true, "phase": true, "object": true,
}

// isStructure reports whether a scalar of a JSON text belongs to the form of the text and not to
// what it says: the name of a field, or one of the fixed values of one.
func (s scalar) isStructure(text []byte) bool {
	return (s.isKey || enumerations[string(s.key)]) && text[s.start] == '"' &&
		knownWords()[string(text[s.start+1:s.end-1])]
}

// Word redacts the name of something that is in the form of a trace, such as a source. A word
// that traces use anyway stays as it is.
func (r *Redactor) Word(word string) string {
	if knownWords()[word] {
		return word
	}
	return r.String(word)
}
