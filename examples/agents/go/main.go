// An agent in a few lines: asks a model for a shell command, runs it, and tells fit by events.
package main

import (
	"bytes"
	"encoding/json"
	"io"
	"log"
	"net/http"
	"os"
	"os/exec"
)

type object = map[string]any

func tell(event object) { _ = json.NewEncoder(os.Stdout).Encode(event) }

func main() {
	prompt, _ := io.ReadAll(os.Stdin)
	body, _ := json.Marshal(object{"model": os.Getenv("FIT_MODEL"), "messages": []object{
		{"role": "system", "content": "Answer with one shell command that does the task, and nothing else."},
		{"role": "user", "content": string(prompt)},
	}})
	address := os.Getenv("OPENAI_BASE_URL") + "/chat/completions"
	request, _ := http.NewRequest(http.MethodPost, address, bytes.NewReader(body))
	request.Header.Set("Authorization", "Bearer "+os.Getenv("OPENAI_API_KEY"))
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		log.Fatal(err)
	}
	defer response.Body.Close()
	var reply struct {
		Choices []struct{ Message struct{ Content string } }
		Usage   struct {
			Input  int `json:"prompt_tokens"`
			Output int `json:"completion_tokens"`
		}
	}
	if err := json.NewDecoder(response.Body).Decode(&reply); err != nil || len(reply.Choices) == 0 {
		log.Fatalf("the model answered with status %s: %v", response.Status, err)
	}
	command := reply.Choices[0].Message.Content
	tell(object{"type": "usage", "input_tokens": reply.Usage.Input, "output_tokens": reply.Usage.Output})
	tell(object{"type": "tool_call", "id": "1", "name": "bash", "input": object{"command": command}})
	run := exec.Command("sh", "-c", command)
	output, err := run.CombinedOutput()
	tell(object{"type": "tool_result", "id": "1", "output": string(output), "exit_code": run.ProcessState.ExitCode()})
	tell(object{"type": "result", "success": err == nil, "text": "I ran: " + command})
}
