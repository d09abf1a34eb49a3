package task

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/git"
)

// linkSecret is the content of a file that belongs to the user, outside every family.
const linkSecret = "belongs to the user, and to no model"

// outsideOf makes a directory of the user's that a family has no business with.
func outsideOf(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, map[string]string{
		"secret.md": linkSecret, "rows.jsonl": `{"input": "` + linkSecret + `", "instance_id": "x"}`,
		"settings.yaml": "name: " + linkSecret + "\n", "program.sh": "#!/bin/sh\n# " + linkSecret + "\n",
		"tree/secret.md": linkSecret, "tree/hooks/invariants.sh": "#!/bin/sh\n", "tree/test.sh": "#!/bin/sh\n",
		"tree/x.test.js": linkSecret, "tree/solve.sh": "#!/bin/sh\n", "tree/Dockerfile": "FROM scratch\n",
		"tree/one/agent.task.md": linkSecret, "tree/one/hooks/invariants.sh": "#!/bin/sh\n",
		"tree/agent.task.md": linkSecret, "tree/task.toml": "version = \"1.0\"\n", "tree/instruction.md": linkSecret,
	})
	return dir
}

// TestLinksOutOfAFamily puts a link to a file of the user's at every place that a family, a dataset
// or a Harbor task has for files. The family is refused, with the link and where it leads.
func TestLinksOutOfAFamily(t *testing.T) {
	harbor := map[string]string{
		"task.toml": "version = \"1.0\"\n", "instruction.md": "Do it.", "environment/Dockerfile": "FROM scratch\n",
		"tests/test.sh": "#!/bin/sh\n",
	}
	harborWith := func(more map[string]string) map[string]string {
		files := maps.Clone(harbor)
		maps.Copy(files, more)
		return files
	}
	dataset := map[string]string{
		"family.yaml": "dataset: rows.jsonl\nprompt: '{{input}}'\ngrade: [{equals: x}]\n",
		"rows.jsonl":  `{"input": "a"}`,
	}
	datasetWith := func(more map[string]string) map[string]string {
		files := maps.Clone(dataset)
		maps.Copy(files, more)
		return files
	}
	only := func(settings string) map[string]string { return map[string]string{"family.yaml": settings} }
	familyWith := func(settings string) map[string]string {
		files := maps.Clone(minimal)
		files["family.yaml"] = settings
		return files
	}
	for link, test := range map[string]struct {
		target string
		files  map[string]string // nil: those of the smallest family
	}{
		"family.yaml":                  {target: "settings.yaml"},
		"judge.md":                     {target: "secret.md"},
		".env":                         {target: "secret.md"},
		".env.local":                   {target: "secret.md"},
		"workdir":                      {target: "tree"},
		"specs":                        {target: "tree"},
		".claude":                      {target: "tree"},
		".claude/skills":               {target: "tree"},
		"apm_modules/a/b/agents":       {target: "tree"},
		"package.json":                 {target: "secret.md"},
		"apm.yml":                      {target: "secret.md"},
		"tasks/one/agent.task.md":      {target: "secret.md"},
		"tasks/one/judge.task.md":      {target: "secret.md"},
		"tasks/one/supervisor.task.md": {target: "secret.md"},
		"tasks/one/task.yaml":          {target: "settings.yaml"},
		"tasks/one/.env":               {target: "secret.md"},
		"tasks/one/workdir":            {target: "tree"},
		"tasks/one/specs":              {target: "tree"},
		"tasks/one/solution":           {target: "tree"},
		"tasks/one/tests":              {target: "tree"},
		"tasks/one/hooks":              {target: "tree/hooks"},
		"tasks/one/hooks/preflight.sh": {target: "program.sh"},
		"tasks/one/workdir/a/b":        {target: "secret.md"},
		"tasks/one/tests/x.test.js":    {target: "secret.md"},
		"tasks":                        {target: "tree", files: map[string]string{"family.yaml": "name: x\n"}},
		"rows.jsonl":                   {target: "rows.jsonl", files: only(dataset["family.yaml"])},
		"rows.json":                    {target: "rows.jsonl", files: only("swebench: rows.json\n")},
		"common": {target: "tree", files: datasetWith(map[string]string{
			"family.yaml": "dataset: rows.jsonl\ntask: common\ngrade: [{equals: x}]\n",
		})},
		"note.md": {target: "secret.md", files: datasetWith(map[string]string{
			"family.yaml": dataset["family.yaml"] + "attach: {note.md: note.md}\n",
		})},
		"check.sh": {target: "program.sh", files: datasetWith(map[string]string{
			"family.yaml": "dataset: rows.jsonl\nprompt: '{{input}}'\ngrade: [{command: [check.sh]}]\n",
		})},
		"shape.json": {target: "secret.md", files: datasetWith(map[string]string{
			"family.yaml": "dataset: rows.jsonl\nprompt: '{{input}}'\ngrade: [{schema: shape.json}]\n",
		})},
		"labels.jsonl": {target: "rows.jsonl", files: familyWith("calibration: labels.jsonl\n")},
		"Dockerfile":   {target: "tree/Dockerfile", files: familyWith("dockerfile: Dockerfile\n")},
		"task.toml":    {target: "tree/task.toml", files: map[string]string{"instruction.md": "Do it."}},
		"instruction.md": {target: "secret.md", files: map[string]string{
			"task.toml": harbor["task.toml"], "environment/Dockerfile": "FROM scratch\n",
			"tests/test.sh": "#!/bin/sh\n",
		}},
		"environment": {target: "tree", files: map[string]string{
			"task.toml": harbor["task.toml"], "instruction.md": "Do it.", "tests/test.sh": "#!/bin/sh\n",
		}},
		"tests": {target: "tree", files: map[string]string{
			"task.toml": harbor["task.toml"], "instruction.md": "Do it.", "environment/Dockerfile": "FROM scratch\n",
		}},
		"solution":                        {target: "tree", files: harbor},
		"environment/docker-compose.yaml": {target: "settings.yaml", files: harbor},
		"environment/data": {target: "tree", files: harborWith(map[string]string{
			"environment/docker-compose.yaml": "services: {main: {volumes: ['./data:/data']}}\n",
		})},
		"steps/s/workdir": {target: "tree", files: harborWith(map[string]string{
			"task.toml":              "version = \"1.0\"\n[[steps]]\nname = \"s\"\n",
			"steps/s/instruction.md": "Do it.", "steps/s/tests/test.sh": "#!/bin/sh\n",
		})},
	} {
		t.Run(link, func(t *testing.T) {
			outside := outsideOf(t)
			dir := t.TempDir()
			write(t, dir, test.files)
			if test.files == nil {
				write(t, dir, minimal)
			}
			target := filepath.Join(outside, test.target)
			if err := os.RemoveAll(filepath.Join(dir, link)); err != nil {
				t.Fatal(err)
			}
			write(t, dir, map[string]string{link: "-> " + target})
			family, err := Load(t.Context(), dir, Options{})
			if err == nil {
				t.Fatalf("loaded: %+v", family.Tasks)
			}
			if text := err.Error(); !strings.Contains(text, link) || !strings.Contains(text, target) ||
				!strings.Contains(text, "leads out of") || strings.Contains(text, linkSecret) {
				t.Errorf("%v", err)
			}
		})
	}
}

// TestLinksInsideAFamily keeps what families share by links.
func TestLinksInsideAFamily(t *testing.T) {
	dir := newFamily(t, map[string]string{
		"common/prompt.md": "Do it well.", "common/work/file": "content",
		"tasks/two/agent.task.md":       "-> ../../common/prompt.md",
		"tasks/two/workdir":             "-> ../../common/work",
		"tasks/two/hooks/invariants.sh": "#!/bin/sh\n",
	})
	family := mustLoad(t, dir)
	two := family.Tasks[1]
	if two.Prompt != "Do it well." || len(two.Overlays) != 1 ||
		two.Overlays[0].From != filepath.Join(family.Dir, "common/work") {
		t.Errorf("%+v", two)
	}
	before := two.Digest.Visible
	write(t, dir, map[string]string{"common/work/file": "other content"})
	if mustLoad(t, dir).Tasks[1].Digest.Visible == before {
		t.Error("a file behind a link changed, and the task is the same")
	}
}

// TestLinksOfAFamilyFromGit clones a family whose directory is a link, and one with a link to the
// machine that it is cloned to.
func TestLinksOfAFamilyFromGit(t *testing.T) {
	outside := outsideOf(t)
	for name, files := range map[string]map[string]string{
		"family": {"family": "-> " + outside + "/tree"},
		"family/tasks/one/agent.task.md": {
			"family/tasks/one/agent.task.md":       "-> " + outside + "/secret.md",
			"family/tasks/one/hooks/invariants.sh": "#!/bin/sh\n",
		},
		"repo of the user": {
			"family/tasks/one/agent.task.md": "Do it.", "family/tasks/one/hooks/invariants.sh": "#!/bin/sh\n",
			"family/family.yaml": "repo: " + outside + "\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir, files)
			for _, args := range [][]string{
				{"init", "--quiet"}, {"add", "--all"}, {"commit", "--quiet", "--message=family"},
			} {
				if err := git.Run(t.Context(), git.Command{Dir: dir, Args: args}); err != nil {
					t.Fatal(err)
				}
			}
			_, err := Load(t.Context(), "file://"+dir+"//family", Options{CacheDir: t.TempDir()})
			if err == nil || !strings.Contains(err.Error(), outside) || strings.Contains(err.Error(), linkSecret) {
				t.Errorf("%v", err)
			}
		})
	}
}

// TestLinksOutOfATaskFile: what a task file names in its directory stays in it.
func TestLinksOutOfATaskFile(t *testing.T) {
	outside := outsideOf(t)
	for link, target := range map[string]string{"repo": outside + "/tree", "fix.patch": outside + "/secret.md"} {
		t.Run(link, func(t *testing.T) {
			dir := t.TempDir()
			file := filepath.Join(dir, "task.yaml")
			write(t, dir, map[string]string{
				"task.yaml": "id: a\nprompt: x\nrepo: { path: repo }\nverifyCommand: y\nreference: { patch: fix.patch }\n",
				link:        "-> " + target,
			})
			if link != "repo" {
				write(t, dir, map[string]string{"repo/a": ""})
			}
			_, err := LoadSpecs(t.Context(), []string{file}, SpecOptions{CacheDir: t.TempDir()})
			if err == nil || !strings.Contains(err.Error(), link) || !strings.Contains(err.Error(), target) {
				t.Errorf("%v", err)
			}
		})
	}
}
