package benchmarkcli

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/grade"
	"github.com/fit-eval/fit/internal/jsonenc"
	"github.com/fit-eval/fit/internal/task"
	"github.com/fit-eval/fit/internal/workspace"
)

// inspectCase is a sample, and what Inspect's own code makes of it.
type inspectCase struct {
	Name    string            `json:"name"`
	Scorer  string            `json:"scorer"`
	Row     json.RawMessage   `json:"row"`
	Fields  map[string]string `json:"fields"`
	Input   string            `json:"input"`
	Choices []string          `json:"choices"`
	Answers []struct {
		Text    string `json:"text"`
		Correct bool   `json:"correct"`
	} `json:"answers"`
}

// noWorkspace is where answers are graded that are text.
type noWorkspace struct{}

func (noWorkspace) Copy(context.Context, workspace.CopyConfig) (*workspace.Copy, error) {
	return nil, errors.New("there is no workspace")
}
func (noWorkspace) Hook(string) workspace.Place            { return workspace.Place{} }
func (noWorkspace) Grader(*workspace.Copy) workspace.Place { return workspace.Place{} }

// importSample imports one sample of Inspect and loads the dataset.
func importSample(t *testing.T, c inspectCase) *task.Task {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "samples.jsonl")
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(string(c.Row), "\n", " ")), 0o600); err != nil {
		t.Fatal(err)
	}
	made := &imported{name: "samples"}
	opts := &importOptions{scorer: console.Choice{Value: c.Scorer}, fields: c.Fields}
	if err := made.inspect(file, opts); err != nil {
		t.Fatal(err)
	}
	target := filepath.Join(dir, "made")
	if err := made.write(target); err != nil {
		t.Fatal(err)
	}
	family, err := task.Load(t.Context(), target, task.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return &family.Tasks[0]
}

func passes(t *testing.T, of *task.Task, answer string) bool {
	t.Helper()
	result, err := grade.Run(t.Context(), grade.Config{
		Task:   of,
		Source: noWorkspace{},
		Answer: &grade.Answer{Text: answer},
	})
	if err != nil {
		t.Fatal(err)
	}
	return result.Grade.Verdict == "pass"
}

// Samples mean what they mean in Inspect, and its scorers and the checks that stand for them agree.
func TestImportedSamplesAreScoredAsByInspect(t *testing.T) {
	content, err := os.ReadFile("testdata/inspect.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Samples []inspectCase `json:"samples"`
	}
	if err := json.Unmarshal(content, &file); err != nil || len(file.Samples) < 25 {
		t.Fatal(len(file.Samples), err)
	}
	for _, c := range file.Samples {
		t.Run(c.Name, func(t *testing.T) {
			made := importSample(t, c)
			if !strings.HasPrefix(made.Prompt, c.Input) {
				t.Errorf("the prompt is %q, want %q", made.Prompt, c.Input)
			}
			if c.Choices != nil {
				if diff := cmp.Diff(c.Choices, made.Sample.Checks[0].Choices); diff != "" {
					t.Error(diff)
				}
			}
			if !passes(t, made, *made.Sample.Reference) {
				t.Errorf("the reference %q does not pass", *made.Sample.Reference)
			}
			for _, answer := range c.Answers {
				if got := passes(t, made, answer.Text); got != answer.Correct {
					t.Errorf("%s passes: %v, Inspect says %v", jsonenc.String(answer.Text), got, answer.Correct)
				}
			}
		})
	}
}

// A file whose columns have other names says how to name them.
func TestASampleWithoutInputNamesItsColumns(t *testing.T) {
	file := filepath.Join(t.TempDir(), "samples.jsonl")
	if err := os.WriteFile(file, []byte(`{"question": "a", "target": "b"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	err := (&imported{}).inspect(file, &importOptions{})
	if err == nil || !strings.Contains(err.Error(), "it has question, target: name the column with --field input=COLUMN") {
		t.Error(err)
	}
}

// A file whose columns nobody knows takes time in proportion to their number.
func TestManyUnknownColumns(t *testing.T) {
	row := map[string]any{"input": "a"}
	for i := range 200_000 {
		row["unknown"+strconv.Itoa(i)] = 1
	}
	made := &imported{}
	_, err := made.inspectSample(row, map[string]string{"input": "input"})
	if err != nil || len(made.losses) != 200_000 {
		t.Errorf("%d columns are named as lost: %v", len(made.losses), err)
	}
}
