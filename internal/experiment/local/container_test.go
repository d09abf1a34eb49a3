package local

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/containertest"
	"github.com/fit-eval/fit/internal/experiment"
	"github.com/fit-eval/fit/internal/sandbox"
	"github.com/fit-eval/fit/ledger"
)

// inImage is a family whose task runs in the small image.
func inImage(t *testing.T, settings string) map[string]string {
	t.Helper()
	containertest.Engine(t)
	return map[string]string{"family.yaml": "image: " + containertest.Image(t) + "\n" + settings}
}

// oneArm is the built-in agent on a model.
func oneArm(url string) []experiment.Arm {
	return []experiment.Arm{{
		Name:     "default",
		Agent:    "builtin",
		Model:    "claude-sonnet-4-5",
		ModelURL: url,
	}}
}

func TestATaskInAContainer(t *testing.T) {
	files := inImage(t, "network: {agent: none}\nlimits: {cpus: 1, memoryMB: 256, processes: 100}\n")
	files["tasks/answer/workdir/given.txt"] = "given\n"
	files["tasks/answer/hooks/invariants.sh"] = `#!/bin/sh
check() { if [ "$2" = "$3" ]; then p=true; else p=false; echo "$1: $2" >&2; fi; echo "{\"test\":\"$1\",\"pass\":$p}" >&3; }
check answer "$(cat answer.txt)" 42
check image "$IN_IMAGE$(cat image.txt)" "yesfrom the image"
check fresh "$(ls /etc/left 2>/dev/null)" ""
check workdir "$(cat /app/answer.txt)" 42
check untrusted "$(fit-untrusted sh -c 'echo $TASK_ID; cat answer.txt')" "
42"
`
	family := oneTask(t, files)
	script := `{"turns":[{"calls":[{"bash":"cat given.txt image.txt && echo $IN_IMAGE && pwd && touch /etc/left && cut -d: -f1 /proc/net/dev | tail -n +3"}]},` +
		`{"calls":[{"write":"/app/answer.txt","content":"4\n"}]},{"calls":[{"bash":"ls /etc/left && echo 42 > answer.txt"}]},{"text":"done"}]}`
	r, dir := attemptOf(t, family, script, experiment.Setup{})
	if r.Verdict != ledger.Pass {
		t.Fatalf("%s %s: %s %+v", r.Verdict, r.ErrorClass, r.ErrorMessage, r.Invariants)
	}
	if r.Isolation != sandbox.IsolationPodman || r.Container == nil || !strings.HasPrefix(r.Container.ID, "sha256:") ||
		r.Container.Version == "" || r.Network != sandbox.NetworkNone {
		t.Errorf("isolation %q, container %+v, network %q", r.Isolation, r.Container, r.Network)
	}
	patch, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(r.DiffPath)))
	if err != nil || !strings.Contains(string(patch), "+42") || strings.Contains(string(patch), "from the image") {
		t.Errorf("the diff is %s, %v", patch, err)
	}
	nothingLeft(t)
}

// nothingLeft makes sure that no container of this process is there.
func nothingLeft(t *testing.T) {
	t.Helper()
	if left, err := containertest.Left(); err != nil || left != "" {
		t.Errorf("containers are left: %s, %v", left, err)
	}
}

func TestAnImageThatIsNotThereIsFoundBeforeAnythingIsPaid(t *testing.T) {
	containertest.Engine(t)
	for settings, want := range map[string]string{
		"image: example.com/none:1\n":                  "podman pull example.com/none:1",
		"dockerfile: Dockerfile\n":                     "podman pull docker.io/library/none:2",
		"image: a\nimages: {a: example.com/other:1}\n": "podman pull example.com/other:1",
	} {
		t.Run(settings, func(t *testing.T) {
			family := oneTask(t, map[string]string{
				"family.yaml": settings,
				"Dockerfile":  "FROM docker.io/library/none:2 AS base\nFROM base\n",
			})
			_, err := Prepare(t.Context(), experiment.Setup{
				Family: family,
				Runs:   1,
				Arms:   oneArm("http://127.0.0.1:1"),
			}, testMachine())
			var missing *sandbox.MissingImageError
			if !errors.As(err, &missing) || !strings.Contains(err.Error(), want) {
				t.Error(err)
			}
		})
	}
}

// Cells have the same image, and a user of the image works in it. That ten share one build is shown
// in test/containers.
func TestCellsShareTheirImage(t *testing.T) {
	containertest.Engine(t)
	family := oneTask(t, map[string]string{
		"family.yaml": "dockerfile: env/Dockerfile\nimages: {\"ubuntu:24.04\": " + containertest.Image(t) +
			"}\nuser: agent\nworkdir: /home/agent/work\n",
		"env/Dockerfile": "FROM ubuntu:24.04\nCOPY made.txt /made.txt\n" +
			"RUN mkdir -p /home/agent/work && date +%N > /home/agent/work/built.txt\n",
		"env/made.txt": "made\n",
	})
	script := `{"turns":[{"calls":[{"bash":"cat /made.txt built.txt; id -un > who; mkdir x && echo 42 > answer.txt"}]},{"text":"done"}]}`
	_, _, records := execute(t, prepared(t, family, experiment.Setup{
		Runs: 3,
		Arms: oneArm(serveScript(t, script)),
	}), 3)
	if len(records) != 3 {
		t.Fatalf("%d records", len(records))
	}
	for _, r := range records {
		first := records[0]
		if r.Verdict != ledger.Pass || r.Container == nil || first.Container == nil ||
			r.Container.ID != first.Container.ID || r.Digests.Base != first.Digests.Base {
			t.Errorf("%s %s: %s %+v", r.Verdict, r.ErrorClass, r.ErrorMessage, r.Container)
		}
	}
	nothingLeft(t)
}
