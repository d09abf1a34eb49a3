package grade_test

import (
	"testing"

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
	const easy = "echo true >test/add/compare.sh\n"
	for name, work := range map[string]string{
		"writes to it":          "echo true >test/add/compare.sh 2>/dev/null; echo 1\n",
		"replaces it":           "rm -f test/add/compare.sh; " + easy + "echo 1\n",
		"moves another over it": "echo true >mine; mv -f mine test/add/compare.sh; echo 1\n",
		"moves its directory":   "mv test/add test/old; mkdir test/add; " + easy + "echo 1\n",
		"moves all of it":       "mv test old; mkdir -p test/add; " + easy + "echo 1\n",
		"makes it writable":     "chmod u+w test/add/compare.sh; " + easy + "echo 1\n",
	} {
		t.Run(name, func(t *testing.T) {
			b := all.another(t).agent(files{"add.sh": work})
			b.config.Verify = verify
			b.want(grade.VerdictFail, "")
		})
	}
	b := all.another(t).agent(files{"add.sh": "echo x >made; echo $(($1 + $2))\n"})
	b.config.Verify = verify
	b.want(grade.VerdictPass, "")
}
