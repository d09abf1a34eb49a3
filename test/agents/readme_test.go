package agents

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/fit-eval/fit/internal/agent"
	"github.com/fit-eval/fit/internal/agent/agenttest"
	"github.com/fit-eval/fit/internal/agent/catalog"
	"github.com/fit-eval/fit/internal/cli"
	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/model/scripted"
	"github.com/fit-eval/fit/internal/model/scripted/scriptedtest"
	"github.com/fit-eval/fit/internal/task"
	"github.com/fit-eval/fit/internal/testenv"
)

// readmeSkill is the skill that the README measures.
const readmeSkill = "examples/skills/edge-cases/SKILL.md"

// TestTheReadmeMeasuresASkill runs "Measure a change" of the README as it is printed, with the real
// Codex and a model that sees nothing but requests and solves a task only when it was given the
// skill. With the skill emptied, nothing is asked of the model at all.
func TestTheReadmeMeasuresASkill(t *testing.T) {
	t.Parallel()
	testenv.NeedTool(t, "node")
	codex, err := catalog.Default().Get("codex")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, part := range []string{"examples/quick-node", "examples/skills"} {
		if err := os.CopyFS(filepath.Join(dir, part), os.DirFS(filepath.Join("../..", part))); err != nil {
			t.Fatal(err)
		}
	}
	var asked atomic.Int64
	url := scriptedtest.ServeAll(t, map[string]string{"": needsTheSkill(t, dir)},
		scripted.Options{OnRequest: func(scripted.Record) { asked.Add(1) }})
	env := append(environ(t), "FIT_MODEL_URL="+url)
	agenttest.Find(t, codex, agent.Host{Environ: env, CacheDir: probeCache(t)})
	run := func(command string) (code int, output string) {
		var out bytes.Buffer
		con := &console.Console{
			Stdin: strings.NewReader(""), Stdout: &out, Stderr: &out, Environ: env, Dir: dir,
			Version: "test",
		}
		return cli.Run(t.Context(), strings.Fields(command), con), out.String()
	}
	commands, shown := measured(t)
	for i, command := range commands {
		code, output := run(command)
		if code != 0 {
			t.Fatalf("%s: exit code %d\n%s", command, code, output)
		}
		if i < len(commands)-1 {
			continue
		}
		for _, line := range append(shown, "Improved: ", "given in 36 of 36 runs of after and 0 of 36 of before") {
			if !strings.Contains(output, line) {
				t.Errorf("the README shows\n%s\nwhich is not in\n%s", line, output)
			}
		}
	}

	if err := os.WriteFile(filepath.Join(dir, readmeSkill), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	before := asked.Load()
	code, output := run(strings.Replace(commands[1], "--output results", "--output emptied", 1))
	if code != 2 || asked.Load() != before || !strings.Contains(output, "edge-cases") {
		t.Errorf("with the skill emptied: exit code %d after %d calls\n%s", code, asked.Load()-before, output)
	}
}

// measured is the section of the README that measures a change: its commands, and what it shows
// below the last.
func measured(t *testing.T) (commands, shown []string) {
	t.Helper()
	page, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "**Measure a change.**")
	section, _, _ = strings.Cut(section, "\n**")
	for line := range strings.SplitSeq(section, "\n") {
		text, indented := strings.CutPrefix(line, "    ")
		command, isCommand := strings.CutPrefix(text, "$ ")
		switch {
		case !indented || text == "…":
		case isCommand:
			commands, shown = append(commands, command), nil
		default:
			shown = append(shown, text)
		}
	}
	if len(commands) != 3 || len(shown) == 0 || !strings.Contains(commands[1], filepath.Dir(readmeSkill)) {
		t.Fatalf("the README has the commands %q and shows %q", commands, shown)
	}
	return commands, shown
}

// needsTheSkill is the script of a model that opens the skill where its request names it, and then
// solves the task; otherwise it gives up.
func needsTheSkill(t *testing.T, dir string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, readmeSkill))
	if err != nil {
		t.Fatal(err)
	}
	_, description, _ := strings.Cut(string(text), "description: ")
	description, _, _ = strings.Cut(description, "\n")
	family, err := task.Load(t.Context(), filepath.Join(dir, "examples/quick-node"), task.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var scenarios []turn
	for _, one := range family.Tasks {
		name := filepath.Join("src", one.ID+".js")
		solution, err := os.ReadFile(filepath.Join(one.Solution, name))
		if err != nil {
			t.Fatal(err)
		}
		opening, _, _ := strings.Cut(one.Prompt, " must")
		scenarios = append(scenarios, turn{
			"name": one.ID, "when": turn{"prompt": opening, "request": description},
			"turns": []turn{
				{"calls": []turn{{"bash": "cat .agents/skills/edge-cases/SKILL.md"}}},
				{"calls": []turn{{"write": name, "content": string(solution)}}},
				{"text": "It holds at the edges."},
			},
		})
	}
	script, err := json.Marshal(turn{"scenarios": scenarios, "turns": []turn{{"text": "I cannot find what is wrong."}}})
	if err != nil {
		t.Fatal(err)
	}
	return string(script)
}
