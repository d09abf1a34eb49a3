package session

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
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
		t.Run(command, func(t *testing.T) {
			if diff := cmp.Diff(want, new(refiner).refine(command), cmp.AllowUnexported(refined{})); diff != "" {
				t.Errorf("%s (-want +got):\n%s", command, diff)
			}
		})
	}
}

func TestCanonicalNames(t *testing.T) {
	for name, want := range map[string]string{
		"Read": ToolRead, "MultiEdit": ToolEdit, "Glob": ToolSearch, "bash": ToolBash, "exec_command": ToolBash,
		"WebFetch": ToolWeb, "Agent": ToolTask,
		"TodoWrite": ToolPlan, "mcp__web__fetch": ToolOther, "webSomething": ToolWeb, "NoSuchTool": ToolOther,
	} {
		t.Run(name, func(t *testing.T) {
			if got := CanonicalTool(name); got != want {
				t.Errorf("%s is %s, want %s", name, got, want)
			}
		})
	}
}

func FuzzRefineShell(f *testing.F) {
	for _, seed := range []string{"cat a", "bash -c 'x", "a && b || c; d | e", `"\`, "sed -n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, command string) {
		if r := new(refiner).refine(command); r.derived == neutral {
			t.Errorf("%q is %q", command, r.derived)
		}
	})
}

var (
	testExpression = regexp.MustCompile(`(?:^|[;&|\s(])(go test|npm (?:run )?test|npx (?:jest|vitest)|pnpm (?:run )?test|yarn test|bun test|pytest|` +
		`python3? -m (?:pytest|unittest)|cargo test|mvn test|gradle test|make (?:test|check)|ctest|rspec)\b`)
	buildExpression = regexp.MustCompile(`(?:^|[;&|\s(])(go (?:build|vet|install)|tsc|npx tsc|cargo (?:build|check)|npm run build|pnpm (?:run )?build|` +
		`yarn build|mvn (?:compile|package)|gradle (?:build|assemble)|make(?: all| build)?$|cmake --build)(?:\s|$|[;&|)])`)
)

// TestPhrasesAreFoundAsByExpressions compares the search for phrases with regular expressions that
// mean the same.
func TestPhrasesAreFoundAsByExpressions(t *testing.T) {
	pieces := []string{
		" ", " ", ";", "&&", "|", "(", ")", "\n", "\t", "\v", "x", "_", "-", "/", "é", "cd a", "run ",
		"CI=1",
	}
	for _, table := range [][26][]phrase{testPhrases, buildPhrases} {
		for _, phrases := range table {
			for _, p := range phrases {
				pieces = append(pieces, p.text, strings.ToUpper(p.text[:1])+p.text[1:])
			}
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		command := strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 6).Draw(t, "pieces"), "")
		if got, want := runsTests(command), testExpression.MatchString(command); got != want {
			t.Errorf("%q runs tests: %t instead of %t", command, got, want)
		}
		if got, want := builds(command), buildExpression.MatchString(command); got != want {
			t.Errorf("%q builds: %t instead of %t", command, got, want)
		}
	})
}
