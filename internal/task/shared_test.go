package task

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestNearCopiesShareWhatGradesThem: another text makes no other test, whatever does the grading;
// other files, tests, commands or solutions do.
func TestNearCopiesShareWhatGradesThem(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	files := map[string]string{}
	for name, file := range map[string][2]string{
		"base": {"agent.task.md", "Do."}, "text": {"agent.task.md", "Do it."}, "file": {"workdir/x", "2"},
		"graded": {"hooks/invariants.sh", "#!/bin/sh\nexit 1\n"},
	} {
		for path, content := range map[string]string{
			"agent.task.md": "Do.", "workdir/x": "1", "hooks/invariants.sh": "#!/bin/sh\n", file[0]: file[1],
		} {
			files["tasks/"+name+"/"+path] = content
		}
	}
	write(t, dir, files)
	shared := map[string]string{}
	for _, one := range mustLoad(t, dir).Tasks {
		shared[one.ID] = one.Shared()
	}
	if shared["base"] == "" || shared["base"] != shared["text"] || shared["base"] == shared["file"] ||
		shared["base"] == shared["graded"] {
		t.Errorf("graded by hooks: %q", shared)
	}

	const spec = "id: a\nprompt: do\nrepo: { path: base }\nverifyCommand: make\nreference: { patch: a.patch }\n"
	of := func(text string) string {
		dir := t.TempDir()
		writeAll(t, dir, map[string]string{
			"task.yaml": text, "base/x": "1\n", "a.patch": "--- a/x\n", "b.patch": "--- a/y\n",
		})
		family, err := LoadSpecs(t.Context(), []string{filepath.Join(dir, "task.yaml")}, SpecOptions{CacheDir: dir})
		if err != nil {
			t.Fatal(err)
		}
		return family.Tasks[0].Shared()
	}
	base := of(spec)
	if base == "" || of(strings.Replace(spec, "do", "do it", 1)+"title: another\n") != base {
		t.Error("another prompt is graded in another way")
	}
	for _, change := range [][2]string{{"make", "make test"}, {"a.patch", "b.patch"}} {
		if of(strings.Replace(spec, change[0], change[1], 1)) == base {
			t.Errorf("%s is the same task", change[1])
		}
	}
}

// A row with another id and another statement has the same tests on the same commit.
func TestNearCopiesOfAnInstance(t *testing.T) {
	t.Parallel()
	row := func(change func(*Task)) string {
		one := Task{ID: "a__b-1", Prompt: "Do.", Instance: &Instance{
			Repo: "a/b", BaseCommit: "c", Gold: "g", TestPatch: "t", EvalScript: "e", LogParser: "p",
			FailToPass: []string{"x"}, PassToPass: []string{"y", "z"},
		}}
		change(&one)
		return one.Shared()
	}
	base := row(func(*Task) {})
	if base == "" || row(func(one *Task) { one.ID, one.Prompt = "a__b-2", "Do it." }) != base {
		t.Error("another statement makes another test")
	}
	for name, change := range map[string]func(*Task){
		"commit": func(one *Task) { one.Instance.BaseCommit = "d" },
		"tests":  func(one *Task) { one.Instance.TestPatch = "u" },
		"names":  func(one *Task) { one.Instance.FailToPass = []string{"x", "y"} },
		"gold":   func(one *Task) { one.Instance.Gold = "h" },
	} {
		if row(change) == base {
			t.Errorf("another %s is the same task", name)
		}
	}
}
