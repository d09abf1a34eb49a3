package grade_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/fit-eval/fit/internal/grade"
	"github.com/fit-eval/fit/internal/testenv"
	"github.com/fit-eval/fit/internal/tree"
	"github.com/fit-eval/fit/internal/workspace"
)

// commandTask has a hidden check in shell, run by a command of the family's own.
func commandTask(yaml, check string) files {
	return files{
		"workdir/answer": "1", "solution/answer": "42", "tests/check.sh": check,
		"task.yaml": "tests:\n  language: other\n  files: [check.sh]\n" + yaml,
	}
}

func TestFamiliesOwnCommands(t *testing.T) {
	for name, test := range map[string]struct{ yaml, check, failure string }{
		"TAP": {
			"  command: [bash, \"{file}\"]\n  parser: tap\n",
			"echo 1..2; echo 'ok 1 - there'; [ \"$(cat answer)\" = 42 ] && echo 'ok 2 - answer' || echo 'not ok 2 - answer'", "answer failed",
		},
		"JUnit in a file": {
			"  command: [bash, \"{file}\", \"{report}\"]\n  parser: junit\n  report: out/report.xml\n",
			"mkdir -p out; [ \"$(cat answer)\" = 42 ] && f= || f='<failure message=\"wrong\"/>'; echo \"<testsuite><testcase name='answer'>$f</testcase></testsuite>\" > \"$1\"", "answer failed (wrong)",
		},
		"exit status with a nonce": {
			"  command: [bash, \"{file}\", \"{nonce}\"]\n  parser: exit-nonce\n",
			"[ \"$(cat answer)\" = 42 ] || exit 1; echo \"$1\"", "exit 1",
		},
		"events of go test": {
			"  command: [bash, \"{file}\"]\n  parser: go-test-json\n",
			`[ "$(cat answer)" = 42 ] && a=pass || a=fail; echo '{"Action":"run","Test":"TestX"}'; echo "{\"Action\":\"$a\",\"Test\":\"TestX\"}"; echo "{\"Action\":\"$a\"}"`, "TestX failed",
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, commandTask(test.yaml, test.check))
			b.want(grade.VerdictFail, test.failure)
			b.another(t).agent(files{"answer": "42"}).want(grade.VerdictPass, "")
		})
	}
}

func TestAReportThatWasThereBeforeIsNotBelieved(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "report.xml")
	if err := os.WriteFile(outside, []byte("<testsuite><testcase name='answer'/></testsuite>"), 0o600); err != nil {
		t.Fatal(err)
	}
	all := newBench(t, commandTask("  command: [bash, \"{file}\"]\n  parser: junit\n  report: report.xml\n",
		"[ \"$(cat answer)\" = 42 ] && echo \"<testsuite><testcase name='answer'/></testsuite>\" > report.xml; exit 0"))
	for name, planted := range map[string]string{
		"file": "<testsuite><testcase name='answer'/></testsuite>",
		"link": "-> " + outside,
	} {
		t.Run(name, func(t *testing.T) {
			all.another(t).agent(files{"report.xml": planted}).want(grade.VerdictFail, "wrote no report")
		})
	}
}

func TestTheReportIsOutOfReachForWhatTheCommandStarts(t *testing.T) {
	b := newBench(t, commandTask("  command: [bash, \"{file}\"]\n  parser: tap\n",
		"echo 1..1; if [ \"$(bash answer 2>/dev/null)\" = 42 ]; then echo 'ok 1 - answer'; else echo 'not ok 1 - answer'; fi"))
	for name, answer := range map[string]string{
		"what comes next becomes a comment": "printf 'ok 1 - answer\\n# ' >/proc/$PPID/fd/1",
		"the test is replaced":              "printf 'echo 1..1; echo ok 1 - answer; exit 0\\n%500s\\n' '' >tests/check.sh; cp tests/check.sh check.sh",
	} {
		t.Run(name, func(t *testing.T) {
			b.another(t).agent(files{"answer": answer}).want(grade.VerdictFail, "answer failed")
		})
	}
}

func TestACommandCannotReportLessThanTheReferenceDoes(t *testing.T) {
	b := newBench(t, commandTask("  command: [bash, \"{file}\"]\n  parser: tap\n",
		"if [ -e hide ]; then echo 'ok 1 - there'; echo 1..1; else echo 'ok 1 - there'; echo 'ok 2 - more'; echo 1..2; fi"))
	b.agent(files{"hide": ""}).want(grade.VerdictFail, `the test "more" was not reported`)
}

func TestVerifyCommand(t *testing.T) {
	b := newBench(t, files{"workdir/answer": "1", "hooks/invariants.sh": "#!/bin/bash\necho '{\"pass\":true}' >&3\n"})
	b.config.Verify = []grade.Command{{
		Name: "verify", Argv: []string{"bash", "-c", "grep -q 42 answer && echo {nonce}"}, Parser: "exit-nonce",
		Gate: true,
	}}
	failed := b.want(grade.VerdictFail, `"test": "verify"`)
	if failed.Grade.GatesPass {
		t.Error("a failed command of a gate let it pass")
	}
	b.agent(files{"answer": "42"}).want(grade.VerdictPass, "")
	b.config.Verify[0].Argv = []string{"no-such-program"}
	if broken := b.want(grade.VerdictError, "could not be started"); broken.Score != nil {
		t.Errorf("nothing was measured, and the score is %v", *broken.Score)
	}
}

func TestAnAgentThatRemovesWhatIsToBeRunIsNotExcused(t *testing.T) {
	b := newBench(t, files{
		"workdir/program":     "#!/bin/bash\necho \"$1\"\n",
		"hooks/invariants.sh": "#!/bin/bash\necho '{\"pass\":true}' >&3\n",
	})
	b.config.Verify = []grade.Command{{Name: "verify", Argv: []string{"./program", "{nonce}"}, Parser: "exit-nonce"}}
	b.want(grade.VerdictPass, "")
	if err := os.Remove(filepath.Join(b.ws.Dir, "program")); err != nil {
		t.Fatal(err)
	}
	b.want(grade.VerdictFail, "")
}

// editor is a source whose working directory is changed by a daemon as soon as a copy was made.
type editor struct {
	*workspace.Workspace
	edit func()
}

func (e editor) Copy(ctx context.Context, cfg workspace.CopyConfig) (*workspace.Copy, error) {
	copied, err := e.Workspace.Copy(ctx, cfg)
	e.edit()
	return copied, err
}

func TestADaemonThatEditsDuringGradingEditsNothingThatIsGraded(t *testing.T) {
	b := newBench(t, files{"workdir/answer": "1", "hooks/invariants.sh": answerHook})
	b.config.Source = editor{b.ws, func() { b.agent(files{"answer": "42"}) }}
	b.want(grade.VerdictFail, "")
}

func TestADirectoryThatCannotBeCopiedFailsItsAgent(t *testing.T) {
	b := newBench(t, files{"workdir/answer": "1", "hooks/invariants.sh": answerHook})
	b.config.Source = refuser{b.ws}
	b.want(grade.VerdictFail, "cannot be copied")
}

// refuser cannot copy what the agent left, as if it were too large.
type refuser struct{ *workspace.Workspace }

func (r refuser) Copy(ctx context.Context, cfg workspace.CopyConfig) (*workspace.Copy, error) {
	if !cfg.FromBase {
		return nil, &tree.LimitError{What: "files", Limit: 1}
	}
	return r.Workspace.Copy(ctx, cfg)
}

func TestGradersHaveNoNetworkUnlessTheTaskSaysSo(t *testing.T) {
	script := "#!/bin/bash\nip=$(cat /proc/net/dev | grep -vc 'lo:\\|Inter\\|face')\n[ \"$ip\" = 0 ] && p=true || p=false\necho \"{\\\"test\\\":\\\"alone\\\",\\\"pass\\\":$p}\" >&3\n"
	b := hookBench(t, script)
	if b.ws.Isolation != "bwrap" {
		testenv.Missing(t, "there is no isolation on this machine")
	}
	b.want(grade.VerdictPass, "")
}
