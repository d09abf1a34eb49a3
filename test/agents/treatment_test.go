package agents

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/fit-eval/fit/agent/agenttest"
	"github.com/fit-eval/fit/experiment"
	"github.com/fit-eval/fit/internal/cli"
	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/ledger"
	"github.com/fit-eval/fit/model/scripted"
	"github.com/fit-eval/fit/model/scripted/scriptedtest"
)

// experiments is a directory with a family of one task, arms that differ in what they bring, and a
// model that solves the task only if it was given the skill's description or the instructions.
type experiments struct {
	t     *testing.T
	dir   string
	url   string
	path  string
	asked atomic.Int64 // requests that reached the model
}

func newExperiments(t *testing.T) *experiments {
	t.Helper()
	e := &experiments{t: t, dir: t.TempDir()}
	bin, err := filepath.Abs("node_modules/.bin")
	if err != nil {
		t.Fatal(err)
	}
	e.path = agenttest.Path(bin)
	e.write("family/family.yaml",
		"tests: {language: other, files: [\"*.tap.sh\"], command: [sh, \"{file}\"], parser: tap}\n")
	e.write("family/tasks/greet/agent.task.md", "Write a greeting to greeting.txt.\n")
	e.write("family/tasks/greet/workdir/README.md", "Nothing here yet.\n")
	e.write("family/tasks/greet/tests/greet.tap.sh",
		"echo 1..1\ngrep -q hello greeting.txt && echo ok 1 || echo not ok 1\n")
	e.write("greetings/SKILL.md", "---\nname: greetings\ndescription: How a greeting is worded, by "+
		"the rules of zebrafinch.\n---\nA greeting is the word hello.\n")
	e.write("house.md", "A greeting is worded by the rules of zebrafinch.\n")
	e.url = scriptedtest.ServeAll(t, map[string]string{"": `{
		"scenarios": [{"name": "given", "when": {"request": "zebrafinch"}, "turns": [
			{"calls": [{"bash": "echo hello > greeting.txt"}]}, {"text": "Done."}]}],
		"turns": [{"text": "No."}]}`}, scripted.Options{OnRequest: func(scripted.Record) { e.asked.Add(1) }})
	return e
}

func (e *experiments) write(name, content string) string {
	e.t.Helper()
	path := filepath.Join(e.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		e.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		e.t.Fatal(err)
	}
	return path
}

// writeHook adds a task whose files make Claude Code run a program.
func (e *experiments) writeHook() {
	e.write("family/tasks/hooked/agent.task.md", "Write a greeting to greeting.txt.\n")
	e.write("family/tasks/hooked/workdir/.claude/settings.json",
		`{"hooks": {"SessionStart": [{"hooks": [{"type": "command", "command": "true"}]}]}}`)
	e.write("family/tasks/hooked/tests/greet.tap.sh", "echo 1..1\necho ok 1\n")
}

// run runs the benchmark and returns its exit code, its records and what it says.
func (e *experiments) run(args ...string) (code int, records []ledger.Record, said string) {
	e.t.Helper()
	var out, errs bytes.Buffer
	args = append([]string{
		"fit-benchmark", "run", "--family", "family", "--runs", "1", "--output", "results", "--no-probe", "--attempts",
		"2", "--model-url", e.url,
	}, args...)
	code = cli.Run(e.t.Context(), args, &console.Console{
		Stdin:   strings.NewReader(""),
		Stdout:  &out,
		Stderr:  &errs,
		Dir:     e.dir,
		Version: "test",
		Environ: []string{"PATH=" + e.path, "HOME=" + e.t.TempDir(), "LANG=C.UTF-8"},
	})
	file, err := os.Open(filepath.Join(e.dir, "results", experiment.LedgerFile))
	if err != nil {
		return code, nil, errs.String()
	}
	defer file.Close()
	decoder := json.NewDecoder(file)
	for decoder.More() {
		var r ledger.Record
		if err := decoder.Decode(&r); err != nil {
			e.t.Fatal(err)
		}
		records = append(records, r)
	}
	return code, records, errs.String()
}

// givenOf returns how much of a piece the model of a record was given.
func givenOf(r *ledger.Record, kind, name string) string {
	if r.Treatment == nil {
		return "no treatment"
	}
	for _, piece := range r.Treatment.Pieces {
		if piece.Kind == kind && piece.Name == name {
			return piece.Given
		}
	}
	return ""
}

// TestASkillOfAnArmReachesItsModel: the skill of one arm is given to its model and to no other, and
// the records prove it.
func TestASkillOfAnArmReachesItsModel(t *testing.T) {
	t.Parallel()
	e := newExperiments(t)
	code, records, said := e.run("--arm", "before=agent:codex", "--arm", "after=agent:codex,skills:greetings")
	if code != 0 || len(records) != 2 || !strings.Contains(said, "arms before and after differ in skill greetings") {
		t.Fatalf("exit code %d, %d records\n%s", code, len(records), said)
	}
	for i := range records {
		r := &records[i]
		verdict, want := ledger.Fail, ""
		if r.Arm == "after" {
			verdict, want = ledger.Pass, ledger.GivenWhole
		}
		if got := givenOf(r, ledger.PieceSkill, "greetings"); r.Verdict != verdict || got != want {
			t.Errorf("%s: %s (%s), the skill was given %q, want %s and %q", r.Arm, r.Verdict, r.ErrorMessage, got,
				verdict, want)
		}
	}
	kept, err := experiment.ReadRehearsal(filepath.Join(e.dir, "results"))
	if err != nil || kept == nil || len(kept.Arms) != 2 || len(kept.Pairs) != 1 || len(kept.Pairs[0].Differences) == 0 {
		t.Errorf("the run directory keeps %+v, %v", kept, err)
	}
}

// TestWhatDoesNotArriveCostsNothing: mistakes in the arms are found before the first request reaches
// the arm's model.
func TestWhatDoesNotArriveCostsNothing(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		prepare func(e *experiments)
		args    []string
		code    int
		said    string
	}{
		"an empty skill": {
			func(e *experiments) { e.write("greetings/SKILL.md", "") },
			[]string{"--arm", "before=agent:codex", "--arm", "after=agent:codex,skills:greetings"},
			console.ExitUsage, "greetings",
		},
		"a skill without a description": {
			func(e *experiments) { e.write("greetings/SKILL.md", "---\nname: greetings\n---\nSay hello.\n") },
			[]string{"--arm", "before=agent:codex", "--arm", "after=agent:codex,skills:greetings"},
			console.ExitUsage, "codex was not given the skill greetings; it reads .agents/skills",
		},
		"the same arm twice": {
			nil, []string{"--arm", "a=agent:builtin,prompt:Be kind.", "--arm", "b=agent:builtin,prompt:Be kind."},
			console.ExitUsage, "--allow same",
		},
		"the same arm twice on purpose": {
			nil,
			[]string{
				"--arm", "a=agent:builtin,prompt:Be kind.", "--arm", "b=agent:builtin,prompt:Be kind.", "--allow", "same",
				"--dry-run",
			},
			0, "nothing in their first requests differs",
		},
		"a variable that changes the request beside what is declared": {
			nil,
			[]string{
				"--arm", "before=agent:claude-code", "--arm",
				"after=agent:claude-code,skills:greetings,env:BASH_MAX_TIMEOUT_MS=900000",
			},
			console.ExitUsage, "the variables BASH_MAX_TIMEOUT_MS differ",
		},
		"a variable that is all that is compared": {
			nil,
			[]string{
				"--arm", "before=agent:claude-code", "--arm", "after=agent:claude-code,env:BASH_MAX_TIMEOUT_MS=900000",
				"--dry-run",
			},
			0, "arms before and after differ in env BASH_MAX_TIMEOUT_MS; tools",
		},
		"programs of a later task, without isolation": {
			(*experiments).writeHook,
			[]string{"--arm", "a=agent:claude-code", "--sandbox", "none"},
			console.ExitUsage, "the files of task hooked bring: .claude/settings.json",
		},
		"programs of a task that are accepted": {
			(*experiments).writeHook,
			[]string{"--arm", "a=agent:claude-code,context:project", "--sandbox", "none", "--dry-run"},
			0, "",
		},
		"a dry run": {
			nil, []string{"--arm", "before=agent:codex", "--arm", "after=agent:codex,skills:greetings", "--dry-run"},
			0, "arms before and after differ in skill greetings",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newExperiments(t)
			if test.prepare != nil {
				test.prepare(e)
			}
			code, _, said := e.run(test.args...)
			if code != test.code || !strings.Contains(said, test.said) {
				t.Errorf("exit code %d, want %d and %q\n%s", code, test.code, test.said, said)
			}
			if asked := e.asked.Load(); asked > 0 {
				t.Errorf("%d requests reached the model", asked)
			}
		})
	}
}

// TestARunWithoutItsTreatmentIsMissingData: an agent that stops reading what its arm brings, after
// the rehearsal, is not measured with it.
func TestARunWithoutItsTreatmentIsMissingData(t *testing.T) {
	t.Parallel()
	e := newExperiments(t)
	real := ""
	for _, dir := range filepath.SplitList(e.path) {
		if _, err := os.Stat(filepath.Join(dir, "codex")); err == nil {
			real = filepath.Join(dir, "codex")
			break
		}
	}
	wrapper := e.write("bin/codex", "#!/bin/sh\ncase $PWD in\n*/rehearsal.*) exec "+real+" \"$@\" ;;\n"+
		"*) exec "+real+" -c project_doc_max_bytes=0 \"$@\" ;;\nesac\n")
	if err := os.Chmod(wrapper, 0o755); err != nil {
		t.Fatal(err)
	}
	e.path = filepath.Dir(wrapper) + string(os.PathListSeparator) + e.path
	code, records, said := e.run("--arm", "after=agent:codex,instructions:house.md", "--sandbox", "none")
	if code != console.ExitIncomplete || len(records) != 2 {
		t.Fatalf("exit code %d, %d records\n%s", code, len(records), said)
	}
	for i := range records {
		r := &records[i]
		if r.Verdict != ledger.Error || r.ErrorClass != ledger.ErrorNotDelivered ||
			!strings.Contains(r.ErrorMessage, "codex was not given the instructions AGENTS") ||
			!strings.Contains(r.ErrorMessage, "; it reads ") || r.Treatment == nil ||
			len(r.Treatment.Pieces) != 1 || r.Treatment.Pieces[0].Given != ledger.GivenAbsent {
			t.Errorf("%s (%s): %s", r.Verdict, r.ErrorClass, r.ErrorMessage)
		}
	}
}
