package grade_test

import (
	"testing"

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
	const fake = "const fake = new Proxy({}, { get: () => () => {} });\n"
	const hooks = "const test = require('node:test');\nconst { beforeEach, before, mock } = test;\n"
	all := nodeBench(t, nodeCheck(files{"tests/test/add.test.js": contextTest}))
	for name, code := range map[string]string{
		"a property of the context": `beforeEach((t) => { Object.defineProperty(t, 'assert', { value: fake }); });`,
		"an accessor of its prototype": `beforeEach((t) => {
  Object.defineProperty(Object.getPrototypeOf(t), 'assert', { configurable: true, get: () => fake });
});`,
		"another prototype": `beforeEach((t) => { Object.setPrototypeOf(t, { assert: fake, mock: fake }); });`,
		"functions of its assert": `beforeEach((t) => {
  for (const key of Object.keys(t.assert)) { try { t.assert[key] = () => {}; } catch {} }
});`,
		"the prototype, from a test of its own": `test('own', (t) => {
  const proto = Object.getPrototypeOf(t);
  Object.defineProperty(proto, 'assert', { get: () => fake });
});`,
		"the prototype, from a hook of the file": `before((t) => {
  try { Object.defineProperty(Object.getPrototypeOf(t), 'assert', { get: () => fake }); } catch {}
});`,
		"mocks": `const counted = Object.getPrototypeOf(mock.fn().mock);
Object.defineProperty(counted, 'callCount', { value: () => 0 });
Object.defineProperty(Object.getPrototypeOf(mock), 'fn', { value: () => Object.assign(() => {}, { mock: { callCount: () => 0 } }) });
beforeEach((t) => { Object.defineProperty(t, 'assert', { value: fake }); });`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wrong := files{"src/add.js": hooks + fake + "try {\n" + code + "\n} catch {}\n" + addBroken}
			all.another(t).agent(wrong).want(grade.VerdictFail, "")
		})
	}
	t.Run("honest work", func(t *testing.T) {
		all.another(t).agent(files{"src/add.js": addSource}).want(grade.VerdictPass, "")
	})
}
