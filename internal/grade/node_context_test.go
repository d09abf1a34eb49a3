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

// A hidden test may load its library after the code under test, and gets node's own.
func TestNodeTestsHaveTheLibraryOfNode(t *testing.T) {
	const late = `const { add } = require('../src/add.js');
const assert = require('assert');
const strict = require('assert/strict');
const { test } = require('node:test');
test('adds', () => { assert.strictEqual(add(2, 3), 5); strict.equal(add(-1, -1), -2); });
`
	all := nodeBench(t, nodeCheck(files{"tests/test/add.test.js": late}))
	library := cheattest.All(t, "node", map[string]string{"file": "src/add.js", "wrong": addBroken})
	all.another(t).agent(library["library-cached"].Files).want(grade.VerdictFail, "strictly equal")
	// Work may look into the cache of modules, and load others.
	all.another(t).agent(files{
		"src/add.js": "delete require.cache[require.resolve('./sum')];\nexports.add = require('./sum');\n",
		"src/sum.js": "const { equal } = require('assert');\nequal(Object.keys(require.cache).length > 0, true);\n" +
			"module.exports = (a, b) => a + b;\n",
	}).want(grade.VerdictPass, "")
}
