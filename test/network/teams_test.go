package network

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/agent/agenttest"
	"github.com/fit-eval/fit/internal/agent/catalog"
	"github.com/fit-eval/fit/internal/cli"
	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/model/scripted"
	"github.com/fit-eval/fit/internal/model/scripted/scriptedtest"
	"github.com/fit-eval/fit/internal/testenv"
)

// teamScript answers to nobody but those who have the key.
const teamScript = `{"key":"` + key + `","scenarios":[
	{"name":"discussion","when":{"tool":"orchestration/Adjourn"},"turns":[
		{"calls":[{"mcp":"orchestration/Ask","input":{"to":"one","question":"Look around."}}]},{"text":"Waiting."},
		{"calls":[{"mcp":"orchestration/Adjourn","input":{"verdict":"adjourned","summary":"Over."}}]},{"text":"Over."}]},
	{"name":"judge","when":{"system":"judge"},"turns":[
		{"calls":[{"bash":"env"}]},
		{"calls":[{"mcp":"orchestration/Conclude","input":{"verdict":"success","summary":"Over."}}]},{"text":"Over."}]},
	{"name":"facilitator","when":{"tool":"orchestration/Conclude"},"turns":[
		{"calls":[{"mcp":"orchestration/Ask","input":{"to":"one","question":"Look around."}}]},{"text":"Waiting."},
		{"calls":[{"mcp":"orchestration/Conclude","input":{"verdict":"success","summary":"Over."}}]},{"text":"Over."}]},
	{"name":"participant","when":{"tool":"orchestration/Answer"},"turns":[
		{"calls":[{"bash":"env"}]},
		{"calls":[{"mcp":"orchestration/Answer","input":{"message":"${last_result}"}}]},{"text":"Done."}]}],
	"turns":[{"calls":[{"bash":"env >done"}]},{"text":"Done."}]}`

// The model answers the teams of all modes, and the arms of a comparison, with the key of the user;
// no process has it meanwhile, and no file afterwards.
func TestTheKeyIsWithNobodyInATeam(t *testing.T) {
	git := testenv.NeedTool(t, "git")
	bin, err := filepath.Abs("../agents/node_modules/.bin")
	if err != nil {
		t.Fatal(err)
	}
	home, dir := t.TempDir(), t.TempDir()
	environ := []string{
		"PATH=" + agenttest.Path(bin), "HOME=" + home, "LANG=C.UTF-8",
		"OPENAI_API_KEY=" + key, "CODEX_API_KEY=" + key, "ANTHROPIC_API_KEY=" + key,
	}
	codex, err := catalog.Default().Get("codex") // the program that starts fastest
	if err != nil {
		t.Fatal(err)
	}
	agenttest.Find(t, codex, agent.Host{Environ: environ})
	url := scriptedtest.ServeAll(t, map[string]string{"": teamScript}, scripted.Options{})
	for name, content := range map[string]string{
		".claude/agents/one.md": "---\nname: one\n---\nYou are one.\n", "repo/a.txt": "a\n",
		"task.yaml": "id: write\nprompt: Write the file done.\nrepo: {path: repo, ref: main}\nverifyCommand: test -e done\n",
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(dir, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		})
	}
	for _, args := range []string{"init -q -b main", "add .", "-c user.name=x -c user.email=x@x commit -qm base"} {
		command := exec.Command(git, append([]string{"-C", filepath.Join(dir, "repo")}, strings.Fields(args)...)...)
		if out, err := command.CombinedOutput(); err != nil {
			t.Fatalf("git %s: %v\n%s", args, err, out)
		}
	}
	look := watchProcesses()
	var all sync.WaitGroup
	for _, command := range []string{
		"fit-harness facilitate --agent codex --model gpt-5.5 --lead-agent builtin --lead-model claude-sonnet-4-5 --agent-profiles one --task-text go --output f.ndjson",
		"fit-harness discuss --agent codex --model gpt-5.5 --lead-agent builtin --lead-model claude-sonnet-4-5 --agent-profiles one --task-text go --output d.ndjson",
		"fit-harness judge --agent codex --model gpt-5.5 --cwd repo --task-text go --output j.ndjson",
		"fit versus run task.yaml --arm a=agent:codex,model:gpt-5.5 --arm b=agent:codex,model:gpt-5 --runs 1 --output v",
	} {
		all.Go(func() {
			var said bytes.Buffer
			con := &console.Console{
				Stdin:   strings.NewReader(""),
				Stdout:  &said,
				Stderr:  &said,
				Environ: append(environ, "FIT_MODEL_URL="+url),
				Dir:     dir,
				Version: "test",
			}
			if code := cli.Run(t.Context(), strings.Fields(command), con); code != 0 {
				t.Errorf("%s: exit code %d\n%s", command, code, said.String())
			}
			if strings.Contains(said.String(), key) {
				t.Errorf("%s shows the key", command)
			}
		})
	}
	all.Wait()
	if holders, looked := look(); len(holders) > 0 || looked == 0 {
		t.Errorf("of %d processes, these have the key: %q", looked, holders)
	}
	noFileHolds(t, dir, key)
	for _, trace := range []string{"f.ndjson", "d.ndjson"} {
		seen, err := os.ReadFile(filepath.Join(dir, trace))
		if err != nil || !bytes.Contains(seen, []byte(`"type":"model_call","agent":"one"`)) {
			t.Errorf("%s: the participant made no call: %v", trace, err)
		}
	}
}
