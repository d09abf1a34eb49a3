package grade_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/grade"
)

const (
	goRight = "package sum\n\nfunc Add(a, b int) int { return a + b }\n"
	goWrong = "package sum\n\nfunc Add(a, b int) int { return a - b }\n"
)

func goTask(more ...files) files {
	content := files{
		"workdir/go.mod":     "module example.com/sum\n\ngo 1.24\n",
		"workdir/sum/sum.go": goWrong,
		// A test that is there from the beginning, with a helper that the hidden one uses.
		"workdir/sum/helper_test.go": "package sum\n\nimport \"testing\"\n\nfunc equal(t *testing.T, got, want int) {\n\tt.Helper()\n\tif got != want {\n\t\tt.Fatalf(\"got %d, want %d\", got, want)\n\t}\n}\n",
		"solution/sum/sum.go":        goRight,
		"tests/sum/add_test.go": `package sum

import "testing"

func TestAdd(t *testing.T) { equal(t, Add(2, 3), 5) }

func TestNegative(t *testing.T) {
	t.Run("both", func(t *testing.T) { t.Parallel(); equal(t, Add(-1, -1), -2) })
}
`,
		"tests/sum/alive_gate_test.go": "package sum_test\n\nimport (\n\t\"testing\"\n\n\t\"example.com/sum/sum\"\n)\n\nfunc TestAlive(t *testing.T) { sum.Add(0, 0) }\n",
	}
	for _, m := range more {
		for name, text := range m {
			content[name] = text
		}
	}
	return content
}

// goCheck is the task with its scored check only, for tests of what a check does.
func goCheck(more ...files) files {
	content := goTask(more...)
	delete(content, "tests/sum/alive_gate_test.go")
	return content
}

func TestGoSuite(t *testing.T) {
	b := goBench(t, goTask())
	failed := b.want(grade.VerdictFail, "TestAdd")
	if !failed.Grade.GatesPass || *failed.Score != 0 || !strings.Contains(describe(failed), "got -1, want 5") {
		t.Errorf("the scaffold got %s", describe(failed))
	}
	b.another(t).agent(files{"sum/sum.go": goRight}).want(grade.VerdictPass, "")
}

// Each of these agents tries to pass without having solved the task.
func TestCheatingGoAgents(t *testing.T) {
	const fakeReport = "=== RUN   TestAdd\\n--- PASS: TestAdd (0.00s)\\n=== RUN   TestNegative\\n--- PASS: TestNegative (0.00s)\\n=== RUN   TestAlive\\n--- PASS: TestAlive (0.00s)\\nPASS\\n"
	all := goBench(t, goCheck())
	for name, test := range map[string]struct {
		agent  files
		reason string
	}{
		"os.Exit(0) in init": {
			files{"sum/evil.go": "package sum\n\nimport \"os\"\n\nfunc init() { os.Exit(0) }\n"},
			"did not pass",
		},
		"os.Exit(0) in a test": {
			files{"sum/sum.go": "package sum\n\nimport \"os\"\n\nfunc Add(a, b int) int { os.Exit(0); return 0 }\n"},
			"did not pass",
		},
		"faked output in init": {
			files{"sum/evil.go": "package sum\n\nimport (\"fmt\"; \"os\")\n\nfunc init() { fmt.Print(\"" + fakeReport +
				"\"); os.Exit(0) }\n"}, "did not pass",
		},
		"faked records in init": {
			files{"sum/evil.go": "package sum\n\nimport (\"fmt\"; \"os\")\n\nfunc init() { fmt.Print(\"\\n\\x1efit {\\\"status\\\":\\\"pass\\\",\\\"name\\\":\\\"TestAdd\\\",\\\"pad\\\":\\\"0\\\"}\\n\"); os.Exit(0) }\n"}, "forged",
		},
		"TestMain": {
			files{"sum/main_test.go": "package sum\n\nimport (\"os\"; \"testing\")\n\nfunc TestMain(m *testing.M) { os.Exit(0) }\n"}, "want 5",
		},
		"TestMain in no test file": {
			files{"sum/main.go": "package sum\n\nimport (\"os\"; \"testing\")\n\nfunc TestMain(m *testing.M) { os.Exit(0) }\n"}, "",
		},
		"arguments that run nothing": {
			files{"sum/evil.go": "package sum\n\nimport (\"fmt\"; \"os\")\n\nfunc init() { fmt.Print(\"" + fakeReport +
				"\"); os.Args = []string{os.Args[0], \"-test.run=^$\"} }\n"}, "did not pass",
		},
		"Goexit and an exit from beside": {
			files{"sum/sum.go": "package sum\n\nimport (\"os\"; \"runtime\")\n\nfunc Add(a, b int) int { go func() { for i := 0; i < 1000; i++ { runtime.Gosched() }; os.Exit(0) }(); runtime.Goexit(); return 0 }\n"}, "",
		},
		"tampered helper": {
			files{"sum/helper_test.go": "package sum\n\nimport \"testing\"\n\nfunc equal(t *testing.T, got, want int) {}\n"}, "want 5",
		},
		"tampered test": {
			files{"sum/add_test.go": "package sum\n\nimport \"testing\"\n\nfunc TestAdd(t *testing.T) {}\nfunc TestNegative(t *testing.T) {}\n"}, "want 5",
		},
		"hidden package in a vendor directory": {
			files{
				"vendor/modules.txt": "# example.com/x v1.0.0\n", "go.work": "go 1.24\n\nuse ./elsewhere\n",
				"elsewhere/go.mod": "module example.com/sum\n",
			}, "want 5",
		},
		"a replaced module": {
			files{"go.mod": "module example.com/sum\n\ngo 1.24\n\nreplace testing => ./testing\n"}, "replaces a module",
		},
		"a replaced module far down": {
			files{"go.mod": "module example.com/sum\n\ngo 1.24\n" + strings.Repeat("// …\n", 1<<18) +
				"replace testing => ./testing\n"}, "replaces a module",
		},
		"a replaced module behind a link": {
			files{"go.mod": "-> own.mod", "own.mod": "module example.com/sum\n\ngo 1.24\n\nreplace testing => ./testing\n"},
			"replaces a module",
		},
		"flags of the go command": {
			files{
				".config/go/env": "GOFLAGS=-run=^$\n", "go.env": "GOFLAGS=-toolexec=/bin/true\n",
				".env": "GOFLAGS=-toolexec=/bin/true\n",
			}, "want 5",
		},
		"a toolchain": {files{"go.mod": "module example.com/sum\n\ngo 1.24\n\ntoolchain go9.99.9\n"}, ""},
		"kills whatever runs it": {
			files{"sum/sum.go": "package sum\n\nimport \"syscall\"\n\nfunc Add(a, b int) int { syscall.Kill(syscall.Getppid(), 9); syscall.Kill(-1, 9); syscall.Kill(syscall.Getpid(), 9); select {} }\n"}, "was killed by",
		},
		"code that does not compile": {files{"sum/sum.go": "package sum\n"}, "do not compile"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all.another(t).agent(test.agent).want(grade.VerdictFail, test.reason)
		})
	}
}

func TestGoTestsThatHangFail(t *testing.T) {
	wantTimeout(t, "test", func(t *testing.T, yaml files) *bench {
		return goBench(t, goCheck(yaml))
	}, files{"sum/sum.go": "package sum\n\nfunc Add(a, b int) int { for {} }\n"})
}

func TestOwnTestsDoNotBreakHiddenOnes(t *testing.T) {
	goBench(t, goCheck()).agent(files{
		"sum/sum.go":       goRight,
		"sum/mine_test.go": "package sum\n\nimport \"testing\"\n\nfunc TestAdd(t *testing.T) {}\n\nfunc equal(t *testing.T, a, b int) {}\n",
	}).want(grade.VerdictPass, "")
}

func TestOneFileThatDoesNotCompileDoesNotTakeTheOthersWithIt(t *testing.T) {
	content := goTask(files{
		"tests/sum/mul_test.go": "package sum\n\nimport \"testing\"\n\nfunc TestMul(t *testing.T) { equal(t, Mul(2, 3), 6) }\n",
		"solution/sum/mul.go":   "package sum\n\nfunc Mul(a, b int) int { return a * b }\n",
	})
	result := goBench(t, content).agent(files{"sum/sum.go": goRight}).want(grade.VerdictFail, "undefined: Mul")
	if *result.Score != 0.5 || !result.Grade.GatesPass {
		t.Errorf("the grade is %s", describe(result))
	}
}

func TestSkippedGoTestProvesNothing(t *testing.T) {
	content := goCheck(files{"tests/sum/add_test.go": "package sum\n\nimport \"testing\"\n\nfunc TestAdd(t *testing.T) { t.Skip(\"later\") }\n"})
	goBench(t, content).agent(files{"sum/sum.go": goRight}).want(grade.VerdictFail, "did not pass")
}

func TestPoisonedBuildCacheIsNotUsed(t *testing.T) {
	b := goBench(t, goCheck())
	// The agent compiles the right code into a cache at the usual places, then leaves the wrong
	// code with the same times.
	for _, home := range []string{b.ws.Home, b.ws.Dir} {
		cache := filepath.Join(home, ".cache", "go-build")
		b.agent(files{"sum/sum.go": goRight})
		build := exec.CommandContext(t.Context(), "go", "list", "-export", "./sum")
		build.Dir = b.ws.Dir
		build.Env = append(os.Environ(), "GOCACHE="+cache, "GOFLAGS=-mod=mod", "GOPROXY=off")
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	b.agent(files{"sum/sum.go": goWrong}).want(grade.VerdictFail, "want 5")
}
