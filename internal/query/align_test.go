package query

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/fit-eval/fit/internal/jsonenc"
)

var update = flag.Bool("update", false, "write golden files")

func TestAlignmentOfTwoRecordings(t *testing.T) {
	a := open(t, filepath.Join("testdata", "transcripts", "stream-a", "a-happy.jsonl"), Options{})
	b := open(t, filepath.Join("testdata", "transcripts", "stream-a", "b-tool-failure.jsonl"), Options{})
	alignment, err := Align(context.Background(), a, b)
	if err != nil {
		t.Fatal(err)
	}
	got := string(jsonenc.Style{Indent: 2}.AppendJSON(nil, []byte(asJSON(t, alignment)))) + "\n"
	golden := filepath.Join("testdata", "align.golden.json")
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("alignment (-want +got):\n%s", diff)
	}
}

// drawActions makes sequences of few different actions, so that many are equal.
func drawActions(t *rapid.T, name string) []Action {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Action {
		return Action{
			Kind:   rapid.SampledFrom([]string{"read", "bash"}).Draw(t, "kind"),
			Target: rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "target"),
		}
	}), 0, 14).Draw(t, name)
}

// plainDistance is the textbook table.
func plainDistance(a, b []Action) int {
	table := make([][]int, len(a)+1)
	for i := range table {
		table[i] = make([]int, len(b)+1)
		for j := range table[i] {
			switch {
			case i == 0:
				table[i][j] = j * gapCost
			case j == 0:
				table[i][j] = i * gapCost
			default:
				table[i][j] = min(table[i-1][j]+gapCost, table[i][j-1]+gapCost,
					table[i-1][j-1]+pairCost(&a[i-1], &b[j-1]))
			}
		}
	}
	return table[len(a)][len(b)]
}

func TestAlignmentsAreCompleteAndCheapest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawActions(t, "a"), drawActions(t, "b")
		cost, i, j := 0, 0, 0
		for _, step := range appendAlignment(nil, a, b) {
			switch step.Op {
			case OpMatch, opChange:
				cost += pairCost(step.A, step.B)
			default:
				cost += gapCost
			}
			if step.A != nil {
				if step.A.Kind != a[i].Kind || step.A.Target != a[i].Target {
					t.Fatalf("step %+v is not action %d of a", step, i)
				}
				i++
			}
			if step.B != nil {
				j++
			}
		}
		if i != len(a) || j != len(b) {
			t.Fatalf("%d of %d and %d of %d actions were aligned", i, len(a), j, len(b))
		}
		if want := plainDistance(a, b); cost != want {
			t.Fatalf("cost %d, the cheapest is %d", cost, want)
		}
	})
}

func TestLoopsAndRereads(t *testing.T) {
	act := func(kind, target string) Action { return Action{Kind: kind, Target: target} }
	actions := []Action{
		act("read", "x"), act("read", "y"), act("read", "x"), act("edit", "x"), act("read", "x"),
		act("test", "go test"), act("test", "go test"), act("test", "go test"),
		act("edit", "z"), act("bash", "make"), act("edit", "z"), act("bash", "make"), act("edit", "z"),
		act("bash", "make"),
	}
	if diff := cmp.Diff([]Loop{{"test go test", 3, 0}, {"edit z → bash make", 3, 0}}, loops(actions)); diff != "" {
		t.Errorf("loops (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]Reread{{"x", 1}}, rereads(actions)); diff != "" {
		t.Errorf("re-reads (-want +got):\n%s", diff)
	}
}

// TestAFileReadThroughTheShellIsRead: one agent has a tool for reading, another calls the shell.
func TestAFileReadThroughTheShellIsRead(t *testing.T) {
	call := func(name, input string) string {
		return `{"type":"assistant","message":{"content":[{"type":"tool_use","id":"` + name + `","name":"` + name +
			`","input":` + input + `}]}}`
	}
	init := `{"type":"system","subtype":"init","cwd":"/work/repo"}`
	a := traceOf(t, init, call("Read", `{"file_path":"/work/repo/a.sh"}`), call("Bash", `{"command":"make all"}`))
	for _, read := range []string{
		`cat a.sh`, `bash -c \"cat a.sh\"`, `bash -lc 'cat ./a.sh'`,
		`/bin/bash -lc 'cat /work/repo/a.sh'`, `sed -n 1,200p a.sh`,
	} {
		b := traceOf(t, init, call("Bash", `{"command":"`+read+`"}`), call("Bash", `{"command":"bash -lc 'make all'"}`))
		alignment, err := Align(context.Background(), a, b)
		if err != nil {
			t.Fatal(err)
		}
		if alignment.Distance != 0 || len(alignment.Steps) != 2 {
			t.Errorf("%s: %+v and %+v", read, alignment.A.Actions, alignment.B.Actions)
		}
	}
	b := traceOf(t, init, call("Bash", `{"command":"cat b.sh"}`), call("Bash", `{"command":"make all"}`))
	if alignment, err := Align(context.Background(), a, b); err != nil || alignment.Distance != 1 {
		t.Errorf("another file: %+v, %v", alignment, err)
	}
}
