// An agent in twenty lines: asks a model for a shell command, runs it, and tells fit by events.
package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
)

type object = map[string]any

var reply struct {
	Choices []struct{ Message struct{ Content string } }
	Usage   struct{ Prompt_tokens, Completion_tokens int }
}

func tell(event object) { _ = json.NewEncoder(os.Stdout).Encode(event) }

func main() {
	prompt, _ := io.ReadAll(os.Stdin)
	body, _ := json.Marshal(object{"model": os.Getenv("FIT_MODEL"), "messages": []object{
		{"role": "system", "content": "Answer with one shell command that does the task, and nothing else."},
		{"role": "user", "content": string(prompt)},
	}})
	request, _ := http.NewRequest(http.MethodPost, os.Getenv("OPENAI_BASE_URL")+"/chat/completions",
		bytes.NewReader(body))
	request.Header.Set("Authorization", "Bearer "+os.Getenv("OPENAI_API_KEY"))
	response, err := http.DefaultClient.Do(request)
	if err != nil || json.NewDecoder(response.Body).Decode(&reply) != nil || len(reply.Choices) == 0 {
		os.Exit(1)
	}
	response.Body.Close()
	command := reply.Choices[0].Message.Content
	used := reply.Usage
	tell(object{"type": "usage", "input_tokens": used.Prompt_tokens, "output_tokens": used.Completion_tokens})
	tell(object{"type": "tool_call", "id": "1", "name": "bash", "input": object{"command": command}})
	run := exec.Command("sh", "-c", command)
	output, err := run.CombinedOutput()
	tell(object{"type": "tool_result", "id": "1", "output": string(output), "exit_code": run.ProcessState.ExitCode()})
	tell(object{"type": "result", "success": err == nil, "text": "I ran: " + command})
}
