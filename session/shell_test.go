package session

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWhatShellCommandsAreFor(t *testing.T) {
	for command, want := range map[string]refined{
		`cat a.go`:                               {derived: ToolRead, head: "cat", paths: []string{"a.go"}},
		`bash -lc 'sed -n 1,20p src/a.go'`:       {derived: ToolRead, head: "sed", paths: []string{"src/a.go"}},
		`/bin/bash -c "head -n 5 'my file.txt'"`: {derived: ToolRead, head: "head", paths: []string{"my file.txt"}},
		`cd /repo && cat a.go b.go`:              {derived: ToolRead, head: "cat", paths: []string{"a.go", "b.go"}},
		`cat a.go | grep Add`:                    {derived: ToolRead, head: "cat", paths: []string{"a.go"}},
		`ls && cat a.go`:                         {derived: ToolRead, head: "ls", paths: []string{"a.go"}},
		`cat a.go 2>/dev/null`:                   {derived: ToolRead, head: "cat", paths: []string{"a.go"}},
		`cat > a.go <<'EOF'`:                     {head: "cat"},
		`cat a.go > b.go`:                        {head: "cat"},
		`sed -i s/a/b/ a.go`:                     {head: "sed"},
		`rg -n TODO src | head -20`:              {derived: ToolSearch, head: "rg"},
		`git grep foo`:                           {derived: ToolSearch, head: "git grep"},
		`find . -name '*.go'`:                    {derived: ToolSearch, head: "find"},
		`find . -name '*.o' -delete`:             {head: "find"},
		`ls -la`:                                 {derived: ToolList, head: "ls"},
		`go test ./...`:                          {derived: ToolTest, head: "go test"},
		`cd sub; FOO=1 npm test -- --watch`:      {derived: ToolTest, head: "npm test"},
		`python -m pytest -q`:                    {derived: ToolTest, head: "python"},
		`make check`:                             {derived: ToolTest, head: "make check"},
		`go build ./... && ./app`:                {derived: ToolBuild, head: "go build"},
		`go build ./... && go test ./...`:        {derived: ToolTest, head: "go build"},
		`echo 'go test is a command'`:            {},
		`git commit -m "x"`:                      {head: "git commit"},
		`echo "a; cat b" | tee c`:                {},
		``:                                       {},
		`rm -rf x; cat y`:                        {head: "rm"},
	} {
		if diff := cmp.Diff(want, refineShell(command), cmp.AllowUnexported(refined{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", command, diff)
		}
	}
}

func TestCanonicalNames(t *testing.T) {
	for name, want := range map[string]string{
		"Read": ToolRead, "MultiEdit": ToolEdit, "Glob": ToolSearch, "bash": ToolBash, "exec_command": ToolBash, "WebFetch": ToolWeb, "Agent": ToolTask,
		"TodoWrite": ToolPlan, "mcp__web__fetch": ToolOther, "webSomething": ToolWeb, "NoSuchTool": ToolOther,
	} {
		if got := CanonicalTool(name); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
}

func FuzzRefineShell(f *testing.F) {
	for _, seed := range []string{"cat a", "bash -c 'x", "a && b || c; d | e", `"\`, "sed -n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, command string) {
		if r := refineShell(command); r.derived == neutral {
			t.Errorf("%q is %q", command, r.derived)
		}
	})
}
