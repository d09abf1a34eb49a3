package cli_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/fit-eval/fit/internal/cli"
	"github.com/fit-eval/fit/internal/cli/console"
)

// TestDirectoriesOfTheVersionBefore opens what an earlier version wrote: two run directories and
// the trace of a team. Every field it had for a command is still there with the same value; fields
// may have been added, and sentences for people may read differently.
func TestDirectoriesOfTheVersionBefore(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("testdata", "before"))); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	archive, err := txtar.ParseFile("expected.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range archive.Files {
		t.Run(file.Name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			args := append([]string{"fit"}, strings.Fields(file.Name)...)
			streams := &console.Console{Stdout: &stdout, Stderr: &stderr}
			if code := cli.Run(t.Context(), args, streams); code != console.ExitGood {
				t.Fatalf("exit %d: %s", code, stderr.String())
			}
			var want, got any
			if err := json.Unmarshal(file.Data, &want); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(stdout.Bytes(), &got); err != nil {
				t.Fatal(err)
			}
			for _, difference := range missing("", want, got) {
				t.Error(difference)
			}
		})
	}
}

// forPeople names the fields whose values are sentences.
var forPeople = map[string]bool{
	"sentence": true, "statement": true, "reason": true, "notes": true, "warnings": true, "text": true, "note": true,
	"obstacles": true, "lines": true,
}

// missing lists what want has and got does not, or has otherwise.
func missing(path string, want, got any) []string {
	switch want := want.(type) {
	case map[string]any:
		object, ok := got.(map[string]any)
		if !ok {
			return []string{fmt.Sprintf("%s is no object any more: %v", path, got)}
		}
		var differences []string
		for key, value := range want {
			if !forPeople[key] {
				differences = append(differences, missing(path+"."+key, value, object[key])...)
			}
		}
		return differences
	case []any:
		list, ok := got.([]any)
		if !ok || len(list) != len(want) {
			return []string{fmt.Sprintf("%s: want %d items, got %v", path, len(want), got)}
		}
		var differences []string
		for i, value := range want {
			differences = append(differences, missing(fmt.Sprintf("%s[%d]", path, i), value, list[i])...)
		}
		return differences
	}
	if !reflect.DeepEqual(want, got) {
		return []string{fmt.Sprintf("%s: want %v, got %v", path, want, got)}
	}
	return nil
}
