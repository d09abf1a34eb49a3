package acp

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/cli"
	"github.com/fit-eval/fit/internal/cli/console"
	"github.com/fit-eval/fit/internal/model/scripted/scriptedtest"
	"github.com/fit-eval/fit/ledger"
)

// TestTwoArmsOfABenchmark: one agent does what its model says, and the model of the other does
// nothing. The benchmark says who was better, and what it cost by the wire.
func TestTwoArmsOfABenchmark(t *testing.T) {
	t.Parallel()
	bin, err := filepath.Abs("node_modules/.bin")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, content := range map[string]string{
		"family.yaml":                    "tests: {language: other, files: [\"*.tap.sh\"], command: [sh, \"{file}\"], parser: tap}\n",
		"tasks/greet/agent.task.md":      "Write hello to greeting.txt.\n",
		"tasks/greet/workdir/README.md":  "Nothing here yet.\n",
		"tasks/greet/tests/greet.tap.sh": "echo 1..1\ngrep -q hello greeting.txt && echo ok 1 || echo not ok 1\n",
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(dir, "family", name)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		})
	}
	url := scriptedtest.Serve(t, `{"scenarios":[{"name":"idle","when":{"model":"idle-model"},"turns":[{"text":"No."}]}],
		"turns":[{"calls":[{"bash":"echo hello > greeting.txt"}]},{"text":"Done."}]}`)
	var out, errs bytes.Buffer
	code := cli.Run(t.Context(), []string{
		"fit-benchmark", "run", "--family", "family", "--runs", "1", "--output", "results", "--no-probe",
		"--format", "json", "--attempts", "1", "--concurrency", "2",
		"--arm", "good=agent:gemini,model:scripted-model,modelUrl:" + url,
		"--arm", "idle=agent:qwen-code,model:idle-model,modelUrl:" + url,
	}, &console.Console{
		Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs, Dir: dir, Version: "test",
		Environ: []string{
			"PATH=" + bin + string(os.PathListSeparator) + os.Getenv("PATH"), "HOME=" + t.TempDir(),
			"LANG=C.UTF-8", "OPENAI_API_KEY=" + realKey, "GEMINI_API_KEY=" + realKey,
		},
	})
	verdicts := map[string]string{}
	for line := range bytes.Lines(out.Bytes()) {
		var r ledger.Record
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatal(err)
		}
		verdicts[r.Arm] = r.Verdict
		if r.Turns == 0 || r.Tokens.Total() == 0 {
			t.Errorf("%s: %d turns, tokens %+v", r.Arm, r.Turns, r.Tokens)
		}
	}
	if code != 0 || verdicts["good"] != "pass" || verdicts["idle"] != "fail" {
		t.Errorf("exit code %d, verdicts %v\n%s\n%s", code, verdicts, errs.String(), out.String())
	}
}
