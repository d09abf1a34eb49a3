package task

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/testenv"
)

func TestTheUnittestRunnerReportsWhatReallyRan(t *testing.T) {
	python := testenv.NeedTool(t, "python3")
	const tests = "import unittest\nfrom code_under_test import value\n\nclass T(unittest.TestCase):\n" +
		"    def test_value(self): self.assertEqual(value(), 1)\n    def test_more(self): self.assertTrue(value())\n"
	for name, test := range map[string]struct {
		code string
		exit int
		want []string
	}{
		"passing": {
			"def value(): return 1\n", 0,
			[]string{`tests="2"`, `failures="0"`, `name="test_value"`, `name="test_more"`},
		},
		"failing":    {"def value(): return 2\n", 1, []string{`failures="1"`, "AssertionError: 2 != 1"}},
		"broken":     {"def value(:\n", 1, []string{`errors="1"`, "did not finish"}},
		"exits":      {"import os\nos._exit(0)\n", 1, []string{"did not finish"}},
		"exits late": {"import sys\ndef value(): sys.exit(0)\n", 1, []string{`errors="2"`, "SystemExit"}},
		"forges": {
			"import os\nfor fd in range(3, 30):\n    try: os.write(fd, b'{\"secret\": \"x\", \"rows\": []}')\n    except OSError: pass\n" +
				"open('report.xml', 'w').write('<testsuite tests=\"2\" failures=\"0\"/>')\nos._exit(0)\n", 1,
			[]string{"did not finish"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir, map[string]string{
				"code_under_test.py": test.code, "test_it.py": tests,
				"runner/run.py": unittestRunner,
			})
			cmd := exec.Command(python, "-B", filepath.Join(dir, "runner", "run.py"), "report.xml", "test_it.py")
			cmd.Dir = dir
			out, _ := cmd.CombinedOutput()
			report, err := os.ReadFile(filepath.Join(dir, "report.xml"))
			if err != nil || cmd.ProcessState.ExitCode() != test.exit {
				t.Fatalf("exit %d, %v: %s", cmd.ProcessState.ExitCode(), err, out)
			}
			for _, want := range test.want {
				if !strings.Contains(string(report), want) {
					t.Errorf("the report lacks %q: %s", want, report)
				}
			}
		})
	}
}
