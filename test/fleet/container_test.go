package fleet

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fit-eval/fit/internal/containertest"
	"github.com/fit-eval/fit/internal/sandbox"
	"github.com/fit-eval/fit/internal/testenv"
	"github.com/fit-eval/fit/ledger"
)

// A task with a Dockerfile runs in a container of the worker, which builds the image from what
// travelled.
func TestAContainerOnAFleet(t *testing.T) {
	containertest.Engine(t)
	w := newWorld(t)
	w.family(1)
	for name, content := range map[string]string{
		"family/family.yaml": "dockerfile: image/Dockerfile\n" +
			"tests: {language: other, files: [\"*.tap.sh\"], command: [sh, \"{file}\"], parser: tap}\n",
		"family/image/Dockerfile": "FROM " + containertest.Image(t) + "\nCOPY built.txt /app/built.txt\n",
		"family/image/built.txt":  "for a fleet\n",
		"script.json": `{"turns":[{"calls":[{"bash":"grep -q 'for a fleet' built.txt && echo 42 > answer.txt"}]},` +
			`{"text":"Done."}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(w.dir, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		})
	}
	m := &machine{name: "w1", tmp: filepath.Join(w.dir, "w1")} // the engine's networks are those of this machine
	w.serveModel(m)
	w.serveHub(testenv.FreePort(t), 30*time.Second)
	w.work(m, sandbox.HelperVariable+"="+containertest.Helper(t))
	coordinator := w.benchmark(nil, size{runs: 1}, "fleet", "--fleet", w.url)
	<-coordinator.over
	records, _ := w.counted("fleet")
	if len(records) != 2 {
		t.Errorf("%d cells count", len(records))
	}
	for _, r := range records {
		if r.Verdict != ledger.Pass || r.Worker != "w1" || !strings.HasPrefix(r.Isolation, sandbox.IsolationPodman) {
			t.Errorf("%s on %s with isolation %s: %s %s", r.Key(), r.Worker, r.Isolation, r.Verdict, r.ErrorMessage)
		}
	}
}
