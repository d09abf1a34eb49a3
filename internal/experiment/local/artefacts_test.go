package local

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/experiment"
	"github.com/fit-eval/fit/internal/glob"
	"github.com/fit-eval/fit/ledger"
)

func TestTracesArePackedAndTheRecordVouchesForThem(t *testing.T) {
	family := oneTask(t, nil)
	r, path := attemptOf(t, family, solves, experiment.Setup{})
	if !strings.HasSuffix(r.AgentTracePath, "agent.ndjson"+packedSuffix) || filepath.IsAbs(r.AgentTracePath) {
		t.Fatalf("the trace is %s", r.AgentTracePath)
	}
	content, err := readPacked(t, filepath.Join(path, r.AgentTracePath))
	if err != nil || !strings.Contains(string(content), "The answer is written.") {
		t.Errorf("%v: %s", err, content)
	}
	if left := glob.Below(filepath.Join(path, r.RunDir), "*.ndjson*"); len(left) != 1 {
		t.Errorf("%v", left)
	}
	for _, name := range []string{r.AgentTracePath, r.DiffPath} {
		if !slices.ContainsFunc(r.Artifacts,
			func(a ledger.Artifact) bool { return a.Path == name && len(a.SHA256) == 64 && a.Bytes > 0 }) {
			t.Errorf("%s is not among %v", name, r.Artifacts)
		}
	}
	if looked, problems := CheckArtefacts(path, []ledger.Record{r}); looked != len(r.Artifacts) || len(problems) > 0 {
		t.Errorf("%d files: %v", looked, problems)
	}
	if err := os.WriteFile(filepath.Join(path, r.DiffPath), []byte("nothing"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(path, r.AgentTracePath)); err != nil {
		t.Fatal(err)
	}
	if _, problems := CheckArtefacts(path, []ledger.Record{r}); len(problems) != 2 {
		t.Errorf("a file that was changed and one that was removed: %v", problems)
	}
	escape := ledger.Record{Artifacts: []ledger.Artifact{{Path: "../../etc/hostname"}}}
	if _, problems := CheckArtefacts(path, []ledger.Record{escape}); len(problems) != 1 ||
		!strings.Contains(problems[0], "inside") {
		t.Errorf("%v", problems)
	}
}

func TestTracesCanBeKeptAsTheyAre(t *testing.T) {
	r, path := attemptOf(t, oneTask(t, nil), solves, experiment.Setup{KeepRaw: true})
	content, err := os.ReadFile(filepath.Join(path, r.AgentTracePath))
	if err != nil || !bytes.HasPrefix(content, []byte("{")) || !strings.HasSuffix(r.AgentTracePath, ".ndjson") {
		t.Errorf("%s %v: %.40s", r.AgentTracePath, err, content)
	}
}

// Whenever the process dies while a trace is packed, one complete trace is there, and what the
// attempt cost is known.
func TestATraceSurvivesADeathWhileItIsPacked(t *testing.T) {
	p := prepared(t, oneTask(t, nil),
		experiment.Setup{Arms: []experiment.Arm{{
			Name: "default", Agent: "builtin", Model: "claude-sonnet-4-5",
			ModelURL: serveScript(t, solves),
		}}})
	path, _, records := execute(t, p, 1)
	r := records[0]
	packed := filepath.Join(path, r.AgentTracePath)
	plain := strings.TrimSuffix(packed, packedSuffix)
	whole, err := os.ReadFile(packed)
	if err != nil {
		t.Fatal(err)
	}
	text, err := readPacked(t, packed)
	if err != nil {
		t.Fatal(err)
	}
	for name, files := range map[string]map[string][]byte{
		"before it was begun":      {plain: text},
		"while it was written":     {plain: text, packed + ".new": whole[:len(whole)/2]},
		"after it got its name":    {plain: text, packed: whole},
		"after the plain one went": {packed: whole},
	} {
		t.Run(name, func(t *testing.T) {
			for _, file := range []string{plain, packed, packed + ".new"} {
				_ = os.Remove(file) // it may not be there
			}
			for file, content := range files {
				if err := os.WriteFile(file, content, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			_, executor := p.open(t, path)
			got := executor.Recover(t.Context(), experiment.Cell{Arm: "default", TaskID: "answer"}, 1)
			if got.Turns != r.Turns || got.Tokens.Total() != r.Tokens.Total() ||
				got.AgentTracePath != r.AgentTracePath {
				t.Errorf("%d turns, %d tokens, %s", got.Turns, got.Tokens.Total(), got.AgentTracePath)
			}
			if content, err := readPacked(t, packed); err != nil || !bytes.Equal(content, text) {
				t.Errorf("%v, %d bytes", err, len(content))
			}
		})
	}
}
