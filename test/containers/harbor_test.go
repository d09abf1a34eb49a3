package containers

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/cli"
	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/containertest"
	"github.com/fit-eval/fit/internal/model/scripted"
	"github.com/fit-eval/fit/internal/model/scripted/scriptedtest"
	"github.com/fit-eval/fit/internal/sandbox"
	"github.com/fit-eval/fit/ledger"
)

// harborSet copies the Harbor tasks of testdata, whose Dockerfiles then build on the test's image.
// Without the name of a directory it copies none.
func harborSet(t *testing.T, name string) string {
	t.Helper()
	dir := t.TempDir()
	if name != "" {
		if err := os.CopyFS(dir, os.DirFS(filepath.Join("testdata", name))); err != nil {
			t.Fatal(err)
		}
	}
	text := "images: {\"debian:bookworm-slim\": " + containertest.Image(t) + "}\n"
	if err := os.WriteFile(filepath.Join(dir, "family.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// fit runs a command in this process, in a directory.
func fit(t *testing.T, dir string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	con := &console.Console{
		Stdin:  strings.NewReader(""),
		Stdout: &out,
		Stderr: &errs,
		Environ: []string{
			"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "ANTHROPIC_API_KEY=a-key-that-nobody-sees",
			"HARBOR_TEST_KEY=" + harborKey, sandbox.HelperVariable + "=" + containertest.Helper(t),
		},
		Dir:     dir,
		Version: "test",
	}
	code = cli.Run(t.Context(), append([]string{"fit-benchmark"}, args...), con)
	return code, out.String(), errs.String()
}

// harborKey is what a verifier prints and nobody may keep.
const harborKey = "sk-of-the-verifier-0123456789"

// Every fixture passes with its solution and fails untouched.
func TestLintIsTheOracleAndNullCheckOfAHarborSet(t *testing.T) {
	t.Parallel()
	containertest.Engine(t)
	code, out, errs := fit(t, t.TempDir(), "lint", "--repeat", "1", "--family", harborSet(t, "harbor"))
	if code != 0 || !strings.Contains(out, "0 errors") {
		t.Errorf("exit code %d\n%s\n%s", code, errs, out)
	}
}

// harborRun runs tasks with one arm for each script, and returns the records by task and arm.
func harborRun(t *testing.T, dir, set string, scripts map[string]string, more ...string) map[string]ledger.Record {
	t.Helper()
	files := map[string]string{}
	for name, command := range scripts {
		text, err := json.Marshal(command)
		if err != nil {
			t.Fatal(err)
		}
		files[name] = fmt.Sprintf(`{"turns":[{"calls":[{"bash":%s}]},{"text":"Done."}]}`, text)
	}
	url := scriptedtest.ServeAll(t, files, scripted.Options{})
	args := []string{
		"run", "--family", set, "--output", "out", "--no-probe", "--format", "json", "--runs", "1",
		"--attempts", "1", "--concurrency", "4",
	}
	for _, name := range slices.Sorted(maps.Keys(scripts)) {
		args = append(args, "--arm",
			fmt.Sprintf("%s=agent:builtin,model:claude-sonnet-4-5,modelUrl:%s/s/%s", name, url, name))
	}
	_, out, errs := fit(t, dir, append(args, more...)...)
	records := map[string]ledger.Record{}
	for line := range strings.Lines(out) {
		var r ledger.Record
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err, errs)
		}
		records[r.TaskID+" "+r.Arm] = r
	}
	if len(records) == 0 {
		t.Fatal(errs)
	}
	return records
}

// solveAll does what the instructions of all fixtures ask for.
const solveAll = `echo hello > hello.txt; echo "$(id -un) $PLACE" > who.txt; echo noted > /logs/artifacts/note
cp input.txt output.txt; echo 5 > count.txt; echo yes > answer.txt; echo $COLOUR > colour.txt
for name in first second third half whole; do echo done > $name.txt; done
echo ready > /var/state.txt; mkdir -p /srv /data/numbers; echo result > /srv/result.txt; echo 1 > /data/numbers/one; touch /tmp/promised
setsid bash -c '` + pause + `until [ -e /tmp/question ]; do pause 0.05; done
echo yes > /tmp/answers; sleep 100' > /dev/null 2>&1 < /dev/null &`

// An agent solves every fixture, in several sessions where the task has steps. What is exported has
// all rewards, and nothing that is kept has the verifier's secret.
func TestAnAgentSolvesHarborTasksInContainers(t *testing.T) {
	t.Parallel()
	containertest.Engine(t)
	dir := t.TempDir()
	records := harborRun(t, dir, harborSet(t, "harbor"), map[string]string{"solve": solveAll})
	for name, r := range records {
		if r.Verdict != ledger.Pass || r.Container == nil || r.Network != sandbox.NetworkModel {
			t.Errorf("%s: %s, network %s, %s %s %+v", name, r.Verdict, r.Network, r.ErrorClass, r.ErrorMessage,
				r.HiddenTests)
		}
	}
	if r := records["steps solve"]; r.Turns != 6 {
		t.Errorf("three steps took %d turns", r.Turns)
	}
	if len(records) != 8 {
		t.Errorf("%d records", len(records))
	}
	code, out, errs := fit(t, dir, "report", "--input", "out", "--format", "harbor")
	var job struct {
		Trials []struct {
			Name     string                               `json:"task_name"`
			Verifier struct{ Rewards map[string]float64 } `json:"verifier_result"`
			Steps    []struct {
				Name     string                               `json:"step_name"`
				Verifier struct{ Rewards map[string]float64 } `json:"verifier_result"`
			} `json:"step_results"`
		} `json:"trial_results"`
	}
	if err := json.Unmarshal([]byte(out), &job); err != nil || code != 0 || len(job.Trials) != 8 {
		t.Fatalf("exit code %d, %v\n%s%s", code, err, errs, out)
	}
	for _, trial := range job.Trials {
		switch {
		case trial.Name == "image" && !maps.Equal(trial.Verifier.Rewards, map[string]float64{"text": 1, "count": 1}),
			trial.Name == "steps" && (len(trial.Steps) != 3 || trial.Steps[1].Verifier.Rewards["style"] != 1),
			trial.Name == "final" && (len(trial.Steps) != 2 || trial.Steps[0].Verifier.Rewards["reward"] != 0.5):
			t.Errorf("%+v", trial)
		}
	}
	if err := filepath.WalkDir(filepath.Join(dir, "out"), func(path string, entry os.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		if bytes.Contains(content, []byte(harborKey)) {
			t.Errorf("%s has the verifier's secret", path)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	kept, err := filepath.Glob(filepath.Join(dir, "out/runs/separate/solve/0/1/grading/artifacts/*"))
	if err != nil || len(kept) != 4 {
		t.Errorf("kept artifacts: %v, %v", kept, err)
	}
}
