package experiment

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fit-eval/fit/internal/document"
)

const csvSkill = "---\nname: csv-tools\ndescription: For tables.\n---\nCount the columns.\n"

// names lists what was found as "kind name path".
func names(brings []Bring) []string {
	var all []string
	for _, b := range brings {
		all = append(all, strings.TrimSpace(b.Kind+" "+b.Name+" "+b.Path))
	}
	slices.Sort(all)
	return all
}

func TestSkillsAreFoundInAnyOfTheirForms(t *testing.T) {
	for name, test := range map[string]struct {
		files map[string]string
		dir   string
		want  []string
	}{
		"a skill": {map[string]string{"csv-tools/SKILL.md": csvSkill}, "csv-tools", []string{"skill csv-tools"}},
		"a skill in a directory of another name": {
			map[string]string{"v2/SKILL.md": csvSkill, "v2/.git/HEAD": "x"}, "v2", []string{"skill csv-tools"},
		},
		"several": {
			map[string]string{"a/SKILL.md": "x", "b/SKILL.md": csvSkill, "README.md": "x", "docs/x.md": "x"},
			".",
			[]string{"skill a", "skill b"},
		},
		"a project": {
			map[string]string{
				".claude/skills/a/SKILL.md": "x", ".claude/skills/shared/x.py": "x", ".claude/agents/tester.md": "x",
				".claude/settings.json": "{}", ".claude/commands/fix.md": "x", "CLAUDE.md": "x",
			},
			".",
			[]string{
				"agent tester .claude/agents/tester.md", "command fix .claude/commands/fix.md",
				"file settings.json .claude/settings.json", "file shared .claude/skills/shared", "skill a",
			},
		},
		"a project for other agents": {map[string]string{".agents/skills/a/SKILL.md": "x"}, ".", []string{"skill a"}},
		"a link between the two": {
			map[string]string{".agents/skills/a/SKILL.md": "x", ".claude/skills": "-> ../.agents/skills"},
			".",
			[]string{"skill a"},
		},
		"profiles alone": {
			map[string]string{".claude/agents/tester.md": "x"}, ".", []string{"agent tester .claude/agents/tester.md"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			writeLinked(t, dir, test.files)
			found, err := ReadSkills(filepath.Join(dir, test.dir))
			if diff := cmp.Diff(test.want, names(found)); err != nil || diff != "" {
				t.Errorf("%v %s", err, diff)
			}
		})
	}
}

// writeLinked makes files, and links for contents that begin with an arrow.
func writeLinked(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		target, isLink := strings.CutPrefix(content, "-> ")
		if !isLink {
			writeFiles(t, dir, map[string]string{name: content})
			continue
		}
		file := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.Symlink(target, file)); err != nil {
			t.Fatal(err)
		}
	}
}

// What would reach no agent is refused, with what was expected.
func TestArmsThatBringNothingAreRefused(t *testing.T) {
	dir, secret := t.TempDir(), t.TempDir()
	writeLinked(t, dir, map[string]string{
		"none/README.md": "x", "empty/SKILL.md": " \n", "settings/.claude/settings.json": "{}",
		"some/a/SKILL.md": "x", "some/b/SKILL.md": "", "twice/a/SKILL.md": "x",
		"out/a": "-> " + secret, "AGENTS.md": "", "nothing/x": "", "servers.json": "{}",
		"both.json":  `{"mcpServers": {"a": {"command": "x", "url": "https://x"}}}`,
		"wrong.json": `{"mcpServers": {"a": {"comand": "x"}}}`,
	})
	writeFiles(t, secret, map[string]string{"SKILL.md": "x"})
	if err := os.Remove(filepath.Join(dir, "nothing", "x")); err != nil {
		t.Fatal(err)
	}
	in := func(name string) string { return filepath.Join(dir, name) }
	for _, test := range []struct {
		arm  Arm
		want string
	}{
		{Arm{Skills: in("none")}, "there is no SKILL.md; name the directory of a skill"},
		{Arm{Skills: in("settings")}, "there is no SKILL.md"},
		{Arm{Skills: in("empty")}, "SKILL.md is empty"},
		{Arm{Skills: in("some")}, "SKILL.md is empty"},
		{Arm{Skills: in("gone")}, "no such file"},
		{Arm{Skills: in("out")}, "leads out of"},
		{Arm{Skills: in("twice") + "+" + in("twice/a")}, "two of the name a"},
		{Arm{Instructions: in("AGENTS.md")}, "AGENTS.md is empty"},
		{Arm{Instructions: dir}, "is not a file"},
		{Arm{Files: in("nothing")}, "is empty"},
		{Arm{Files: in("gone")}, "no such file"},
		{Arm{MCP: in("servers.json")}, "mcpServers"},
		{Arm{MCP: in("both.json")}, "either a command or a url"},
		{Arm{MCP: in("wrong.json")}, "comand"},
		{Arm{Settings: in("gone.json")}, "no such file"},
	} {
		if found, err := test.arm.Contents(); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%+v: %v, want %q (%v)", test.arm, err, test.want, names(found))
		}
	}
	for _, arm := range []Arm{
		{Skills: "x"}, {Instructions: "x"}, {Files: "x"}, {MCP: "x"}, {Settings: "x"},
	} {
		arm.Name, arm.Context = "a", contextNone
		if err := CheckArms([]Arm{arm}); err == nil || !strings.Contains(err.Error(), "context: none") {
			t.Errorf("%+v: %v", arm, err)
		}
	}
	if err := CheckArms([]Arm{{Name: "a", Context: contextNone, Prompt: "x", Model: "x", Effort: "high"}}); err != nil {
		t.Errorf("what arrives under both is refused: %v", err)
	}
}

// The hash of an arm is of contents, wherever they are; earlier versions had no context.
func TestContentsDecideTheHash(t *testing.T) {
	content := map[string]string{
		"x/SKILL.md": csvSkill, "AGENTS.md": "Be brief.", "files/a.txt": "a", "set.json": "{}",
		"mcp.json": `{"mcpServers": {"a": {"command": "x"}}}`,
	}
	arm := func(dir string) Arm {
		writeFiles(t, dir, content)
		return Arm{
			Name:         "a",
			Skills:       filepath.Join(dir, "x"),
			Instructions: filepath.Join(dir, "AGENTS.md"),
			Files:        filepath.Join(dir, "files"),
			MCP:          filepath.Join(dir, "mcp.json"),
			Settings:     filepath.Join(dir, "set.json"),
		}
	}
	want := sealed(t, arm(t.TempDir()))
	if got := sealed(t, arm(t.TempDir())); got != want {
		t.Error("another place gives another hash")
	}
	for name := range content {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			changed := arm(dir)
			text := content[name] + " "
			if name == "mcp.json" {
				text = strings.ReplaceAll(text, `"x"`, `"y"`)
			}
			writeFiles(t, dir, map[string]string{name: text})
			if sealed(t, changed) == want {
				t.Errorf("another %s gives the same hash", name)
			}
		})
	}
	if sealed(t, Arm{Context: contextProject}) != sealed(t, Arm{}) ||
		sealed(t, Arm{Context: contextNone}) == sealed(t, Arm{}) {
		t.Error("the default context is not project")
	}
}

// An experiment whose agents read nothing is not continued with agents that read their project.
func TestPlansFromBeforeTheContextAreNotContinued(t *testing.T) {
	old := PlannedArm{Arm: Arm{Name: "a", Hash: "sha256:old"}}
	now := PlannedArm{Arm: Arm{Name: "a", Hash: "sha256:new", Context: contextProject}}
	if got := old.changed(now); got != "context: none, now project" {
		t.Errorf("got %q", got)
	}
	old = PlannedArm{Arm: now.Arm, Brings: []Brought{{Kind: "skill", Name: "csv-tools", Digest: "1"}}}
	now.Brings, now.Hash = []Brought{{Kind: "skill", Name: "csv-tools", Digest: "2"}}, "sha256:newer"
	if got := old.changed(now); got != "the content of skill csv-tools has changed" {
		t.Errorf("got %q", got)
	}
}

func TestDifferencesNameEverything(t *testing.T) {
	half := 0.5
	skill := Brought{Kind: "skill", Name: "csv-tools", Digest: "sha256:0123456789"}
	newer := Brought{Kind: "skill", Name: "csv-tools", Digest: "sha256:9876543210"}
	base := PlannedArm{
		Arm:          Arm{Agent: "codex", Context: "project", Prompt: "x", Env: map[string]string{"A": "1"}},
		AgentVersion: "1",
	}
	for _, test := range []struct {
		change func(*PlannedArm)
		want   []string
	}{
		{func(*PlannedArm) {}, nil},
		{func(a *PlannedArm) { a.Model, a.Lead, a.LeadVersion = "gpt-5", "pi", "2" }, []string{
			"model gpt-5",
			"lead pi 2",
		}},
		{func(a *PlannedArm) { a.Brings = []Brought{skill} }, []string{"skill csv-tools"}},
		{func(a *PlannedArm) { a.Context = "" }, []string{"context none"}},
		{func(a *PlannedArm) { a.Prompt, a.Temperature, a.Effort = "", &half, "high" }, []string{
			"effort high", "temperature 0.5", "no prompt",
		}},
		{func(a *PlannedArm) { a.Env = map[string]string{"B": "2"} }, []string{"no env", "env B=…"}},
		{func(a *PlannedArm) { a.AllowedTools, a.MaxTurns = []string{"Read", "Edit"}, 3 }, []string{
			"tools Read+Edit",
			"maxTurns 3",
		}},
		{func(a *PlannedArm) { a.AgentVersion = "2" }, []string{"agent codex 2"}},
	} {
		arm := base
		test.change(&arm)
		if diff := cmp.Diff(test.want, Differences(base, arm)); diff != "" {
			t.Error(diff)
		}
	}
	if got := broughtDifferences([]Brought{skill}, []Brought{newer}); len(got) != 1 ||
		got[0] != "skill csv-tools (98765432, not 01234567)" {
		t.Errorf("got %q", got)
	}
	if got := broughtDifferences([]Brought{skill}, nil); len(got) != 1 || got[0] != "no skill csv-tools" {
		t.Errorf("got %q", got)
	}
}

// A file of tool servers need not hold secrets.
func TestServersTakeVariablesFromTheEnvironment(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "mcp.json")
	writeFiles(t, dir, map[string]string{"mcp.json": `{"mcpServers": {
		"b": {"command": "./run", "args": ["--at", "${HOST:-local}"], "env": {"TOKEN": "${TOKEN}", "MODE": "x"}},
		"a": {"type": "http", "url": "https://x/${TOKEN}", "headers": {"Authorization": "Bearer ${TOKEN}"}}}}`})
	servers, err := ReadServers(file)
	if err != nil || len(servers) != 2 || servers[0].Name != "a" {
		t.Fatalf("%+v %v", servers, err)
	}
	if _, err := servers[0].Expand(func(string) string { return "" }); err == nil ||
		!strings.Contains(err.Error(), "TOKEN") {
		t.Errorf("a missing variable: %v", err)
	}
	filled, err := servers[1].Expand(func(name string) string { return map[string]string{"TOKEN": "s3cret"}[name] })
	if err != nil || filled.Env["TOKEN"] != "s3cret" || filled.Args[1] != "local" ||
		servers[1].Env["TOKEN"] != "${TOKEN}" {
		t.Errorf("%+v %v", filled, err)
	}
	if diff := cmp.Diff([]string{"TOKEN"}, servers[1].Variables()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]string{"MODE": "x"}, servers[1].Literal()); diff != "" {
		t.Error(diff)
	}
}

// A key that is written twice would be one of two values, nobody knows which.
func TestArmsFilesWithAKeyTwiceAreRefused(t *testing.T) {
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{"arms.yaml": "arms:\n  - name: a\n    model: x\n    model: y\n"})
	_, err := LoadArms(filepath.Join(dir, "arms.yaml"))
	if wrong, ok := errors.AsType[*document.Error](err); !ok || wrong.Line != 4 {
		t.Errorf("got %v", err)
	}
}
