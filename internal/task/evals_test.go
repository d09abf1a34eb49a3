package task_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/skill"
	"github.com/fit-eval/fit/internal/task"
)

// writeSkill writes a skill into a repository and returns its directory.
func writeSkill(t *testing.T, files map[string]string) string {
	t.Helper()
	repo := t.TempDir()
	files[".git/HEAD"] = "ref: refs/heads/main\n"
	for name, text := range files {
		path := filepath.Join(repo, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(repo, "tables")
}

const skillText = "---\nname: tables\ndescription: Use it for tables.\n---\nMake tables.\n"

// TestTestCasesOfASkillAreTasks: files are put where the prompt looks for them, those of the skill
// are not given without it, and a negative case asks that the skill stays unopened.
func TestTestCasesOfASkillAreTasks(t *testing.T) {
	t.Parallel()
	dir := writeSkill(t, map[string]string{
		"tables/SKILL.md":            skillText,
		"tables/assets/template.md":  "template",
		"tables/tests/unrelated.sh":  "exit 1",
		"tables/evals/files/a/1.csv": "1",
		"tables/evals/files/b.csv":   "2",
		"data/shared.csv":            "3",
		"tables/evals/evals.json": `{"skill_name":"tables","evals":[
			{"id":1,"prompt":"p","files":["evals/files/a","evals/files/b.csv","data/shared.csv","assets/template.md"],
			 "checks":[{"exists":"out.md"},{"contains":["x"],"file":"out.md"},{"matches":"y"}],"assertions":["s"]},
			{"id":"two","prompt":"Read evals/files/b.csv.","files":["evals/files/b.csv"],"expected_output":"e"},
			{"id":3,"prompt":"p","category":"negative"}]}`,
	})
	family, err := task.Load(t.Context(), dir, task.Options{})
	if err != nil || len(family.Tasks) != 3 || family.Name != "tables" {
		t.Fatalf("%+v, %v", family, err)
	}
	first, second, third := family.Tasks[0], family.Tasks[1], family.Tasks[2]
	paths := func(of *task.Task) (list []string) {
		for _, f := range of.Sample.Files {
			list = append(list, f.Path)
		}
		return list
	}
	if got := paths(&first); !slices.Equal(got, []string{"a/1.csv", "b.csv", "data/shared.csv"}) {
		t.Errorf("the files of the first case are %v", got)
	}
	if got := paths(&second); !slices.Equal(got, []string{"evals/files/b.csv"}) {
		t.Errorf("the files of the second case are %v", got)
	}
	if len(family.Warnings) != 1 || !strings.Contains(family.Warnings[0], "assets/template.md is part of the skill") {
		t.Errorf("warnings: %v", family.Warnings)
	}
	if len(first.Sample.Checks) != 3 || first.Sample.Checks[1].File != "out.md" || len(first.Sample.Statements) != 1 {
		t.Errorf("the first case: %+v", first.Sample)
	}
	if len(second.Sample.Checks) != 0 || !slices.Equal(second.Sample.Statements, []task.Statement{{Text: "e"}}) {
		t.Errorf("the second case: %+v", second.Sample)
	}
	if !third.Sample.Silent || len(third.Sample.Checks) != 1 || third.Sample.Checks[0].Kind != task.CheckUnopened ||
		third.Sample.Checks[0].Pattern != "tables" {
		t.Errorf("the third case: %+v", third.Sample)
	}
	if first.Suite != nil || first.Hooks.Invariants != "" || len(first.Overlays) > 0 {
		t.Errorf("other files of the skill count: %+v", first)
	}
	if err := family.CheckUnchanged(&first); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "evals/files/b.csv"), []byte("4"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := family.CheckUnchanged(&first); err == nil {
		t.Error("a changed file of a case is not noticed")
	}
}

// TestWhatIsWrongWithTestCasesIsSaidAtOnce: with file and line.
func TestWhatIsWrongWithTestCasesIsSaidAtOnce(t *testing.T) {
	t.Parallel()
	dir := writeSkill(t, map[string]string{
		"tables/SKILL.md": skillText,
		"tables/evals/evals.json": "{\"evals\":[\n" +
			"{\"id\":1,\"prompt\":\"p\",\"assertions\":[\"a\"],\"files\":[\"gone.csv\", \"../x\"]},\n" +
			"{\"id\":2,\"prompt\":\"p\",\"checks\":[{\"contanis\":[\"x\"]}]},\n" +
			"{\"id\":3,\"prompt\":\"p\",\"checks\":[{\"contains\":[\"x\"],\"file\":\"/etc/passwd\"}]},\n" +
			"{\"id\":4,\"prompt\":\"p\",\"checks\":[{\"exits\":\"a\"},\n{\"command\":\"x\"},\n{\"contains\":\"x\"},\n" +
			"{\"matches\":\"(\"},\n{\"exists\":\"../../../etc/passwd\"}]},\n" +
			"{\"id\":\"" + strings.Repeat("x", 300) + "\",\"prompt\":\"p\",\"checks\":[{\"exists\":\"a\"}]}]}",
	})
	_, err := task.Load(t.Context(), dir, task.Options{})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{
		"evals/evals.json:2: case 1: files: gone.csv is neither in the skill nor in its repository",
		"evals/evals.json:2: case 1: files: ../x leads out of the skill",
		"evals/evals.json:3: case 2: ", "contanis",
		"evals/evals.json:4: case 3: ", "/etc/passwd is not a path inside the working directory",
		"evals/evals.json:5: case 4: check 1: exits: ",
		"evals/evals.json:6: case 4: check 2: command: ",
		"evals/evals.json:7: case 4: check 3: contains: ",
		"evals/evals.json:8: case 4: check 4: matches: ",
		"evals/evals.json:9: case 4: check 5: ",
		"evals/evals.json:10: the id ",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v\ndoes not say %q", err, want)
		}
	}
	if strings.Contains(err.Error(), "column grade") || strings.Contains(err.Error(), ": 0.") {
		t.Errorf("%v\nspeaks of a column, or counts from 0", err)
	}
}

// A test case takes nothing that is private to the user of its repository: what belongs to git,
// what programs keep keys in, and what a link leads to elsewhere. Its own fixtures may have any
// name.
func TestATestCaseTakesNoPrivateFilesOfItsRepository(t *testing.T) {
	t.Parallel()
	outside := filepath.Join(t.TempDir(), "kept")
	if err := os.WriteFile(outside, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, says := range map[string]string{
		".env": "private", "deploy/.env.production": "private", "deploy": "deploy/.env.production is private",
		".git/config": "private", ".git": "private", "sub/.GIT/config": "private", ".ssh/id_ed25519": "private",
		"keys/server.pem": "private", ".npmrc": "private", "link/kept": "leads out",
		"tables/evals/link/kept": "leads out", "evals/link/kept": "leads out", "evals/files/.git/config": "private",
		".env.example": "", "evals/files/.env": "", "data/env.csv": "", "data": "",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := writeSkill(t, map[string]string{
				"tables/SKILL.md": skillText, ".env": "x", "deploy/.env.production": "x", ".git/config": "x",
				"sub/.GIT/config": "x", ".ssh/id_ed25519": "x", "keys/server.pem": "x", ".npmrc": "x",
				".env.example":            "x",
				"tables/evals/files/.env": "x", "tables/evals/files/.git/config": "x", "data/env.csv": "x",
				"tables/evals/evals.json": `{"skill_name":"tables","evals":[{"id":1,"prompt":"p","files":["` + name +
					`"],"assertions":["s"]}]}`,
			})
			for _, link := range []string{"../link", "evals/link"} {
				if err := os.Symlink(filepath.Dir(outside), filepath.Join(dir, link)); err != nil {
					t.Fatal(err)
				}
			}
			_, err := task.Load(t.Context(), dir, task.Options{})
			if (err == nil) != (says == "") || err != nil && !strings.Contains(err.Error(), says) {
				t.Errorf("%s: %v, want %q", name, err, says)
			}
		})
	}
}

// TestATestCaseHasEveryCheckOfADataset: commands and schemas may be files of the skill.
func TestATestCaseHasEveryCheckOfADataset(t *testing.T) {
	t.Parallel()
	dir := writeSkill(t, map[string]string{
		"tables/SKILL.md":         skillText,
		"tables/evals/check.sh":   "true\n",
		"tables/evals/table.json": `{"type":"object"}`,
		"tables/evals/evals.json": `{"evals":[{"id":1,"prompt":"p","checks":[
			{"command":["sh","evals/check.sh"]},{"schema":"evals/table.json","file":"out.json"}]}]}`,
	})
	family, err := task.Load(t.Context(), dir, task.Options{})
	if err != nil {
		t.Fatal(err)
	}
	checks := family.Tasks[0].Sample.Checks
	if len(checks) != 2 || checks[0].Command[1] != filepath.Join(family.Dir, "evals", "check.sh") {
		t.Errorf("%+v", checks)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for _, f := range skill.Lint(root, "tables", task.CheckCase(root)) {
		if strings.Contains(f.Message, "check") {
			t.Errorf("lint says %+v", f)
		}
	}
}
