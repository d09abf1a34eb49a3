#!/bin/sh
# An agent in twenty lines: asks a model for a shell command, runs it, and tells fit by events.
body=$(jq -n --arg model "$FIT_MODEL" --arg prompt "$(cat)" '{model: $model, messages: [
  {role: "system", content: "Answer with one shell command that does the task, and nothing else."},
  {role: "user", content: $prompt}]}')
reply=$(curl -sSf -d "$body" -H 'Content-Type: application/json' -H "Authorization: Bearer ${OPENAI_API_KEY:-none}" \
  "$OPENAI_BASE_URL/chat/completions") || exit 75
command=$(printf %s "$reply" | jq -r '.choices[0].message.content')
printf %s "$reply" | jq -c '{type: "usage", input_tokens: .usage.prompt_tokens, output_tokens: .usage.completion_tokens}'
jq -nc --arg command "$command" '{type: "tool_call", id: "1", name: "bash", input: {command: $command}}'
output=$(sh -c "$command" 2>&1)
code=$?
jq -nc --arg output "$output" --argjson code "$code" '{type: "tool_result", id: "1", output: $output, exit_code: $code}'
jq -nc --arg text "I ran: $command" --argjson code "$code" '{type: "result", success: ($code == 0), text: $text}'
