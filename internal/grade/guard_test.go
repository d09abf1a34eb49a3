package grade_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/fit-eval/fit/internal/grade"
	"github.com/fit-eval/fit/internal/testenv"
)

// rewriter is a program that, instead of answering, rewrites the failing branch of the script that
// has started it.
const rewriter = `#!/usr/bin/python3
import os, re
parent = os.getppid()
for _ in range(3):
    try:
        memory = open('/proc/%d/mem' % parent, 'r+b', 0)
        for line in open('/proc/%d/maps' % parent):
            if ' rw' not in line: continue
            start, end = [int(x, 16) for x in line.split()[0].split('-')]
            try:
                memory.seek(start)
                data = memory.read(end - start)
            except OSError:
                continue
            for old, new in ((b'not ok 1 - even', b'ok 1 - even    '), (b'pass=false', b'pass=true ')):
                for place in re.finditer(re.escape(old), data):
                    memory.seek(start + place.start())
                    memory.write(new)
    except OSError:
        pass
    try:
        parent = int(open('/proc/%d/stat' % parent).read().rsplit(')', 1)[1].split()[1])
    except OSError:
        break
print('odd')
`

const tapSuite = `echo "TAP version 13"
echo "1..1"
answer=$(./even 4)
if [ "$answer" = even ]; then
  echo "ok 1 - even"
else
  echo "not ok 1 - even"
fi
`

const evenHook = `#!/bin/sh
answer=$(./even 4)
if [ "$answer" = even ]; then
  pass=true
else
  pass=false
fi
echo "{\"test\":\"even\",\"pass\":$pass}" >&3
`

func TestATestedProgramCannotRewriteItsGrader(t *testing.T) {
	testenv.NeedTool(t, "/usr/bin/python3")
	const right, wrong = "#!/bin/sh\necho even\n", "#!/bin/sh\necho odd\n"
	for name, content := range map[string]files{
		"suite": {
			"tests/even.tap.sh": tapSuite, "workdir/even": wrong, "solution/even": right,
			"task.yaml": "tests:\n  language: other\n  command: [sh, \"{file}\"]\n  parser: tap\n  files: [\"*.tap.sh\"]\n",
		},
		"hook": {"hooks/invariants.sh": evenHook, "workdir/even": wrong, "solution/even": right},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, content)
			b.want(grade.VerdictFail, "even")
			b.another(t).agent(files{"even": right}).want(grade.VerdictPass, "")
			b.another(t).agent(files{"even": rewriter}).want(grade.VerdictFail, "even")
		})
	}
}

func TestGitInHooksRunsNothingThatTheAgentHasPlanted(t *testing.T) {
	testenv.NeedTool(t, "git")
	hook := "#!/bin/bash\ngit status >/dev/null 2>&1; git diff >/dev/null 2>&1; git log >/dev/null 2>&1\n" +
		"[ -e planted ] && pass=false || pass=true\necho \"{\\\"test\\\":\\\"clean\\\",\\\"pass\\\":$pass}\" >&3\n"
	const evil = "#!/bin/sh\ntouch planted\ncat\n"
	config := "[core]\n\tfsmonitor = ./evil\n\thooksPath = .\n[filter \"evil\"]\n\tclean = ./evil\n\tsmudge = ./evil\n" +
		"[diff]\n\texternal = ./evil\n[diff \"evil\"]\n\ttextconv = ./evil\n"
	repository := files{
		".git/HEAD": "ref: refs/heads/main\n", ".git/refs/heads/x": "", ".git/objects/x": "",
		".gitattributes": "* filter=evil diff=evil\n", "evil": evil, "README": "changed\n",
	}
	for name, planted := range map[string]files{
		"in .git": {".git/config": config},
		"in a common directory": {
			".git/commondir": "../elsewhere\n", "elsewhere/config": config,
			"elsewhere/objects/x": "", "elsewhere/refs/x": "",
		},
		"behind a .git file": {
			".git": "gitdir: elsewhere\n", "elsewhere/HEAD": "ref: refs/heads/main\n",
			"elsewhere/config": config, "elsewhere/objects/x": "", "elsewhere/refs/x": "",
		},
		"in a bare repository": {
			".git": "-> nowhere", "HEAD": "ref: refs/heads/main\n", "config": config,
			"objects/x": "", "refs/x": "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := hookBench(t, hook)
			if _, own := planted[".git"]; !own {
				b.agent(repository)
			} else {
				b.agent(files{".gitattributes": repository[".gitattributes"], "evil": evil, "README": "changed\n"})
			}
			if err := os.RemoveAll(filepath.Join(b.ws.Dir, ".git/refs/heads/x")); err != nil {
				t.Fatal(err)
			}
			b.agent(planted).want(grade.VerdictPass, "")
		})
	}
}
