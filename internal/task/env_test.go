package task

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLinesOfEnvironmentFiles(t *testing.T) {
	for text, want := range map[string][]pair{
		"A=1\nB=two":               {{"A", "1"}, {"B", "two"}},
		"# c\n\n  # d\nA=1\n":      {{"A", "1"}},
		`A="x y"` + "\n" + `B='z'`: {{"A", "x y"}, {"B", "z"}},
		`A="x'`:                    {{"A", `"x'`}},
		`A="`:                      {{"A", `"`}},
		`A=""x""`:                  {{"A", `"x"`}},
		"A=":                       {{"A", ""}},
		"URL=a=b==c":               {{"URL", "a=b==c"}},
		"no equals\n=x\n":          nil,
		" A = 1 \r\n":              {{"A", "1"}},
		"export A=1":               {{"export A", "1"}},
	} {
		t.Run(text, func(t *testing.T) {
			if diff := cmp.Diff(want, parseEnv(text)); diff != "" {
				t.Errorf("%q: %s", text, diff)
			}
		})
	}
}

func FuzzParseEnv(f *testing.F) {
	for _, seed := range []string{"A=1\n", "A='x'\n#\nB==\n", "=\n\x00=\n", "A=\"\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var variables []Variable
		for _, pair := range parseEnv(text) {
			if pair.Name == "" || strings.ContainsAny(pair.Name, "=\n\x00") ||
				strings.ContainsAny(pair.Value, "\n\x00") {
				t.Fatalf("bad pair %q", pair)
			}
			variables = append(variables, Variable{Name: pair.Name, Value: pair.Value, File: ".env"})
		}
		if again := parseEnv(RenderEnv(variables, ".env")); len(again) != len(variables) {
			t.Fatalf("%d variables became %d", len(variables), len(again))
		}
	})
}

// envOf loads the environment of the files given by name.
func envOf(t *testing.T, environ []string, files map[string]string) ([]Variable, []string) {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, files)
	variables, warnings, err := loadEnv(os.ReadFile, []string{dir, filepath.Join(dir, "task")}, environ,
		secretNames{secret: []string{"MARKED"}, public: []string{"PUBLIC_TOKEN"}})
	if err != nil {
		t.Fatal(err)
	}
	return variables, warnings
}

func TestTheFirstDefinitionWinsAndTheProcessWinsOverAll(t *testing.T) {
	variables, _ := envOf(t, []string{"CI_VALUE=real"}, map[string]string{
		".env.local": "A=family-local\n", ".env": "A=family\nB=family\nCI_VALUE=placeholder\n",
		"task/.env": "B=task\nC=task\n", "task/.env.local": "C=task-local\n",
	})
	got := map[string]string{".env": RenderEnv(variables, ".env"), ".env.local": RenderEnv(variables, ".env.local")}
	want := map[string]string{
		".env":       "A=family-local\nB=family\nCI_VALUE=real\nC=task-local\n",
		".env.local": "A=family-local\nC=task-local\n",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if variables, _ := envOf(t, []string{"X=1"}, nil); len(variables) != 0 || RenderEnv(variables, ".env") != "" {
		t.Errorf("without files there are %v", variables)
	}
	if value, there := os.LookupEnv("CI_VALUE"); there {
		t.Errorf("the process has CI_VALUE=%s now", value)
	}
}

func TestVariablesWithoutAValueAreNamed(t *testing.T) {
	_, warnings := envOf(t, nil, map[string]string{".env": "A=\nB=1\nC=''\n", "task/.env.local": "D=\n"})
	if diff := cmp.Diff([]string{".env: no value for A, C", ".env.local: no value for D"}, warnings); diff != "" {
		t.Error(diff)
	}
}

func TestSecretsAreMarkedLongAndNotTooMany(t *testing.T) {
	variables, _ := envOf(t, nil, map[string]string{
		".env": "MARKED=long-enough\nGITHUB_TOKEN=ghp_abcdef\nSHORT_TOKEN=1\nPUBLIC_TOKEN=not-secret\nLOG_LEVEL=verbose\nOPENAI_API_KEY=abcdefgh\nKEYBOARD=qwertzu\nMONKEY=abcdefg\n",
	})
	var secret []string
	for _, v := range variables {
		if v.Secret {
			secret = append(secret, v.Name)
		}
	}
	if diff := cmp.Diff([]string{"MARKED", "GITHUB_TOKEN", "OPENAI_API_KEY"}, secret); diff != "" {
		t.Error(diff)
	}
}
