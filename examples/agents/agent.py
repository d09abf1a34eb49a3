#!/usr/bin/env python3
"""An agent in twenty lines: asks a model for a shell command, runs it, and tells fit by events."""
import json, os, subprocess, sys, urllib.request

def tell(**event):
    print(json.dumps(event), flush=True)

body = {"model": os.environ["FIT_MODEL"], "messages": [
    {"role": "system", "content": "Answer with one shell command that does the task, and nothing else."},
    {"role": "user", "content": sys.stdin.read()}]}
headers = {"Content-Type": "application/json", "Authorization": "Bearer " + os.environ.get("OPENAI_API_KEY", "none")}
request = urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions", json.dumps(body).encode(), headers)
reply = json.load(urllib.request.urlopen(request))
command, usage = reply["choices"][0]["message"]["content"], reply["usage"]
tell(type="usage", input_tokens=usage["prompt_tokens"], output_tokens=usage["completion_tokens"])
tell(type="tool_call", id="1", name="bash", input={"command": command})
done = subprocess.run(command, shell=True, capture_output=True, text=True)
tell(type="tool_result", id="1", output=done.stdout + done.stderr, exit_code=done.returncode)
tell(type="result", success=done.returncode == 0, text="I ran: " + command)
