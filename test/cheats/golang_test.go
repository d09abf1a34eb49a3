package cheats

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fit-eval/fit/internal/testenv"
)

func TestGo(t *testing.T) {
	testenv.NeedTool(t, "go")
	at := target{
		file: "size/size.go", solved: content(t, goFamily, "tasks/parse-size/solution/size/size.go"),
		tests:     []string{"size/errors_gate_test.go", "size/fractions_test.go", "size/units_test.go"},
		emptyTest: "package size\n\nimport \"testing\"\n\nfunc TestUnits(t *testing.T) { t.Skip() }",
	}
	var cache cacheWatch
	poisoned := poisonedCache(&cache)
	poisoned.essential = true
	const parse = "func Parse(text string) (int64, error)"
	cheats := append(fromLibrary(t, "go", map[string]string{
		"file": at.file, "dir": "size", "package": "size", "module": "example.test/exercise",
		"hidden": "units_test.go", "test": "TestUnits", "function": parse, "zero": "0, nil",
		"wrong": parse + " { return 0, nil }",
	}, "embedded-tests", "forged-descriptors", "init-exits", "settings", "test-main", "tests-called"), poisoned)
	cheats = append(cheats, staging(t, at)...)
	trial{family: goFamily, task: "parse-size", gates: true, cheats: cheats, between: cache.look}.run(t)
	trial{family: goFamily, task: "parse-size", cheats: whole(t, at, goFamily, "parse-size")}.run(t)
	cache.compare(t)
}

// cacheWatch notices changes of the warmed build cache.
type cacheWatch struct {
	dir    string
	before map[string]string // the digest of each file
}

func (w *cacheWatch) look(t *testing.T, _, _ string) {
	t.Helper()
	w.dir = buildCaches
	w.before = w.digests(t)
}

func (w *cacheWatch) compare(t *testing.T) {
	t.Helper()
	if diff := cmp.Diff(w.before, w.digests(t)); diff != "" {
		t.Errorf("the warmed build cache was changed:\n%s", diff)
	}
}

func (w *cacheWatch) digests(t *testing.T) map[string]string {
	t.Helper()
	digests := map[string]string{}
	err := filepath.WalkDir(w.dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() || entry.Name() == "trim.txt" { // it says when, not what
			return err
		}
		content, err := os.ReadFile(path)
		if fields := strings.Fields(string(content)); strings.HasSuffix(path, "-a") && len(fields) == 5 {
			content = []byte(strings.Join(fields[:4], " ")) // without the time at which the entry was written
		}
		digests[path] = fmt.Sprintf("%x", sha256.Sum256(content))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return digests
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
