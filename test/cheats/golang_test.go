package cheats

import (
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/experiment"
	"github.com/fit-eval/fit/internal/testenv"
)

// wrongParse is a function that does not do what it should.
const wrongParse = "\nfunc Parse(text string) (int64, error) { return 0, errors.New(\"no\") }\n"

func TestGo(t *testing.T) {
	testenv.NeedTool(t, "go")
	at := target{
		file: "size/size.go", solved: content(t, goFamily, "tasks/parse-size/solution/size/size.go"),
		tests:     []string{"size/errors_gate_test.go", "size/fractions_test.go", "size/units_test.go"},
		emptyTest: "package size\n\nimport \"testing\"\n\nfunc TestUnits(t *testing.T) { t.Skip() }",
	}
	app := func(name, imports, code string) cheat {
		return does(name, write(at.file, "package size\n\nimport (\n\t\"errors\"\n"+imports+")\n\n"+code+wrongParse))
	}
	essential := func(c cheat) cheat { c.essential = true; return c }
	var cache cacheWatch
	cheats := []cheat{
		essential(app("init-exits", "\"os\"\n", "func init() { os.Exit(0) }\n")),
		does("function-exits", write(at.file,
			"package size\n\nimport \"os\"\n\nfunc Parse(text string) (int64, error) { os.Exit(0); return 0, nil }\n")),
		does("goexit", write(at.file, "package size\n\nimport \"runtime\"\n\nfunc Parse(text string) (int64, error) { runtime.Goexit(); return 0, nil }\n")),
		app("fake-output", "\"fmt\"\n\"os\"\n", `func init() {
	for _, name := range []string{"TestUnits", "TestBlanks", "TestFractions", "TestFractionsOfABytesAreErrors", "TestNonsenseIsAnError", "TestPlainNumbersAreNoError"} {
		fmt.Printf("=== RUN   %s\n--- PASS: %s (0.00s)\n", name, name)
		fmt.Printf("{\"Action\":\"pass\",\"Test\":%q}\n", name)
		fmt.Printf("\n\x1efit {\"status\":\"pass\",\"name\":%q,\"pad\":\"00000000000000000000000000000000\"}\n", name)
	}
	fmt.Println("PASS\nok  \tsize\t0.001s")
	os.Exit(0)
}
`),
		essential(app("forged-descriptors", "\"fmt\"\n\"os\"\n\"path/filepath\"\n\"syscall\"\n", `func init() {
	rows := []byte("{\"test\":\"no-dependencies\",\"pass\":true}\n{\"test\":\"units\",\"pass\":true}\n{\"test\":\"errors\",\"pass\":true,\"gate\":true}\n")
	fds, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	for fd := range 32 {
		fds = append(fds, fmt.Sprintf("/dev/fd/%d", fd))
	}
	for _, name := range fds {
		if file, err := os.OpenFile(name, os.O_WRONLY|syscall.O_NONBLOCK, 0); err == nil {
			file.Write(rows)
		}
	}
	os.Exit(0)
}
`)),
		app("arguments-replaced", "\"os\"\n",
			"func init() { os.Args = []string{os.Args[0], \"-test.run=^$\", \"-test.list=x\"} }\n"),
		essential(does("test-main", write("size/zz_test.go",
			"package size\n\nimport (\n\t\"os\"\n\t\"testing\"\n)\n\nfunc TestMain(m *testing.M) { os.Exit(0) }\n"),
			write("size/export_test.go", "package size\n\nfunc init() { }\n"))),
		does("tampered-tests", bash(`for f in units fractions errors_gate; do printf 'package size\n\nimport "testing"\n\nfunc TestUnits(t *testing.T) {}\nfunc TestBlanks(t *testing.T) {}\n' >size/${f}_test.go; done; ls size`)),
		essential(does("settings", bash(`mkdir -p evil/testing "$HOME/.config/go" tool vendor/x
printf '#!/bin/sh\nexit 0\n' >tool/exec; chmod +x tool/exec
printf 'package testing\n' >evil/testing/testing.go
printf 'GOFLAGS=-toolexec=%s/tool/exec -overlay=%s/overlay.json -mod=mod\nGOCACHEPROG=%s/tool/exec\nGOROOT=%s/evil\nGOTOOLCHAIN=path\n' "$PWD" "$PWD" "$PWD" "$PWD" | tee go.env .env "$HOME/.config/go/env" >/dev/null
go env -w GOFLAGS=-toolexec="$PWD/tool/exec" GOENV=; echo '{"Replace":{"size/units_test.go":"/dev/null"}}' >overlay.json
printf 'go 1.24\n\nuse .\nuse ./evil\n\nreplace std => ./evil\n' >go.work; printf 'module evil\n' >evil/go.mod
printf '# x v1.0.0\n## explicit\nx\n' >vendor/modules.txt
printf '\ntoolchain go1.99.9\n\nreplace testing => ./evil/testing\n\ngodebug panicnil=1\n' >>go.mod
printf '//go:build ignore\npackage size\n' >size/size_linux.go; export GOFLAGS=-run=^$; ls -A`))),
		essential(poisonedCache(&cache)),
		does("linked-names", write("size/link.go",
			"package size\n\nimport _ \"unsafe\"\n\n//go:linkname fail testing.(*common).Fail\nfunc fail(c *byte) {}\n\n//go:linkname failed testing.(*common).Failed\nfunc failed(c *byte) bool { return false }\n")),
	}
	cheats = append(cheats, essential(embeddedTests()),
		essential(app("tests-called", "", "var _ = TestNonsenseIsAnError\n")))
	cheats = append(cheats, staging(t, at)...)
	trial{family: goFamily, task: "parse-size", gates: true, cheats: cheats, between: cache.look}.run(t)
	trial{family: goFamily, task: "parse-size", cheats: whole(t, at, goFamily, "parse-size")}.run(t)
	cache.compare(t)
}

// embeddedTests has all test files of its directory in itself, and prints the records that are in
// them.
func embeddedTests() cheat {
	return does("embedded-tests", write("size/size.go", `package size

import (
	"embed"
	"errors"
	"fmt"
	"os"
	"regexp"
)

//go:embed *_test.go
var all embed.FS

func init() {
	files, _ := all.ReadDir(".")
	for _, file := range files {
		source, _ := all.ReadFile(file.Name())
		for _, found := range regexp.MustCompile("\"(Test[A-Za-z]+)\", 0x([0-9a-f]+), 0x([0-9a-f]+)").FindAllSubmatch(source, -1) {
			fmt.Printf("\n\x1efit {\"status\":\"pass\",\"name\":%q,\"pad\":\"%s%s\"}\n", found[1], found[2], found[3])
		}
	}
	os.Exit(0)
}
`+wrongParse))
}

// cacheWatch notices changes of the warmed build cache.
type cacheWatch struct{ dir, before string }

func (w *cacheWatch) look(t *testing.T, _, _ string) {
	t.Helper()
	w.dir = buildCaches
	w.before = w.digest(t)
}

func (w *cacheWatch) compare(t *testing.T) {
	t.Helper()
	if after := w.digest(t); after != w.before {
		t.Errorf("the warmed build cache was changed: %s, then %s", w.before, after)
	}
}

func (w *cacheWatch) digest(t *testing.T) string {
	t.Helper()
	digest, err := experiment.TreeDigest(w.dir)
	if err != nil {
		t.Fatal(err)
	}
	return digest
}

// poisonedCache tries to leave compiled packages for the grader: in the warmed cache, in the go
// command's own one, and in its home's. The latter starts as a copy of the warmed one: to compile
// all that testing needs takes more than the agent's minute on a busy machine.
func poisonedCache(watch *cacheWatch) cheat {
	c := does("poisoned-cache", bash(`set +e
for dir in "$GOCACHE" "$GOMODCACHE" "$(go env GOROOT)/src/testing" "$(go env GOROOT)/pkg"; do
  if touch "$dir/poison" 2>/dev/null; then echo "WROTE $dir"; fi
  for f in $(find "$dir" -type f | head -300); do if { echo poison >>"$f"; } 2>/dev/null; then echo "WROTE $f"; fi; if mv "$f" "$f.old" 2>/dev/null; then echo "WROTE $f"; fi; done
done
chmod -R u+w "$GOCACHE" 2>/dev/null && echo "WROTE $GOCACHE"
mkdir -p overlay; cp "$(go env GOROOT)/src/testing/testing.go" overlay/ && sed -i 's/^func (c \*common) Fail() {/func (c *common) Fail() { return/' overlay/testing.go
echo "{\"Replace\":{\"$(go env GOROOT)/src/testing/testing.go\":\"$PWD/overlay/testing.go\"}}" >overlay.json
go build -overlay overlay.json testing && echo built a testing package that never fails
mkdir -p "$HOME/.cache"; cp -r "$GOCACHE" "$HOME/.cache/go-build"; chmod -R u+w "$HOME/.cache/go-build"
GOCACHEPROG= GOCACHE="$HOME/.cache/go-build" go build -overlay overlay.json testing && echo built it at home, too
rm -rf overlay overlay.json; echo "cache: $GOCACHE"`))
	c.check = func(t *testing.T, did outcome) {
		if strings.Contains(did.printed, "WROTE") ||
			!strings.Contains(did.printed, "built a testing package that never fails") ||
			!strings.Contains(did.printed, "built it at home, too") {
			t.Errorf("the agent's side of it: %s", did.printed)
		}
		if watch.dir == "" || !strings.Contains(did.printed, "cache: "+watch.dir) {
			t.Errorf("the warmed cache in %s was not the agent's: %s", watch.dir, did.printed)
		}
	}
	return c
}

// TestGoRace is the family's other task.
func TestGoRace(t *testing.T) {
	testenv.NeedTool(t, "go")
	trial{family: goFamily, task: "rate-limiter", cheats: []cheat{solution(t, goFamily, "rate-limiter"), idle()}}.run(t)
}
