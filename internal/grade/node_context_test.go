package grade_test

import (
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/cheattest"
	"github.com/fit-eval/fit/internal/grade"
)

// contextTest is a hidden test that uses what its context offers.
const contextTest = `const test = require('node:test');
const { add } = require('../src/add.js');
test('adds', (t) => { t.assert.strictEqual(add(2, 3), 5); });
test.describe('numbers', () => {
  test.it('negative', (t) => {
    const log = t.mock.fn();
    if (add(-1, -1) !== -2) log();
    t.assert.equal(log.mock.callCount(), 0);
  });
});
`

// The code under test cannot change what the context of a hidden test in Node offers.
func TestNodeAgentsCannotChangeTheContextOfATest(t *testing.T) {
	all := nodeBench(t, nodeCheck(files{"tests/test/add.test.js": contextTest}))
	for name, cheat := range cheattest.All(t, "node", map[string]string{"file": "src/add.js", "wrong": addBroken}) {
		if !strings.HasPrefix(name, "context-") && !strings.HasSuffix(name, "-replaced") {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all.another(t).agent(cheat.Files).want(grade.VerdictFail, "")
		})
	}
	t.Run("honest work", func(t *testing.T) {
		all.another(t).agent(files{"src/add.js": addSource}).want(grade.VerdictPass, "")
	})
}
