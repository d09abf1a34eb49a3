package grade_test

import (
	"testing"

	"github.com/fit-eval/fit/internal/cheattest"
	"github.com/fit-eval/fit/internal/grade"
)

// Work that rewrites a protected test while the test runs it does not pass, however it goes about
// it.
func TestProtectedFilesStayAsTheyWereWhileACommandVerifies(t *testing.T) {
	all := newBench(t, files{
		"workdir/add.sh": "echo 1\n", "solution/add.sh": "echo 5\n",
		"workdir/test/add/check.sh":   "got=$(sh add.sh 2 3)\n. ./test/add/compare.sh\n",
		"workdir/test/add/compare.sh": "[ \"$got\" = 5 ]\n",
		"task.yaml":                   "protected: [test/**]\n",
		"hooks/invariants.sh":         "#!/bin/sh\necho '{\"test\":\"there\",\"pass\":true}' >&3\n",
	})
	verify := []grade.Command{{
		Name:   "verify",
		Argv:   []string{"sh", "test/add/check.sh"},
		Parser: "exit",
		Gate:   true,
	}}
	library := cheattest.All(t, "shell", map[string]string{
		"file": "add.sh", "wrong": "echo 1", "protected": "test/add/compare.sh", "dir": "test/add", "top": "test",
		"easy": "true",
	})
	for name, cheat := range library {
		t.Run(name, func(t *testing.T) {
			b := all.another(t).agent(cheat.Files)
			b.config.Verify = verify
			b.want(grade.VerdictFail, "")
		})
	}
	b := all.another(t).agent(files{"add.sh": "echo x >made; echo $(($1 + $2))\n"})
	b.config.Verify = verify
	b.want(grade.VerdictPass, "")
}
