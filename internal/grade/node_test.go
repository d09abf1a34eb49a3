package grade_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fit-eval/fit/internal/grade"
)

const (
	addSource  = "exports.add = (a, b) => a + b;\n"
	addBroken  = "exports.add = (a, b) => a - b;\n"
	hiddenTest = `const test = require('node:test');
const assert = require('node:assert');
const { add } = require('../src/add.js');
test('adds', () => assert.strictEqual(add(2, 3), 5));
test.describe('numbers', () => {
  test.it('negative', () => { assert.equal(add(-1, -1), -2); });
});
`
)

// nodeTask is a task whose scaffold is wrong, with a hidden suite of one gate, one scored check and
// one support file.
func nodeTask(more ...files) files {
	content := files{
		"workdir/src/add.js":     addBroken,
		"solution/src/add.js":    addSource,
		"tests/test/add.test.js": hiddenTest,
		"tests/test/alive.gate.test.js": `const test = require('node:test');
const data = require('./fixture.json');
test('alive', (t) => { if (data.ok !== 1) throw new Error('no fixture'); require('../src/add.js'); });
`,
		"tests/test/fixture.json": `{"ok":1}`,
	}
	for _, m := range more {
		for name, text := range m {
			content[name] = text
		}
	}
	return content
}

// nodeCheck is the task with its scored check only, for tests of what a check does: each check is a
// process more, on the reference solution too.
func nodeCheck(more ...files) files {
	own := files{"tests/test/add.test.js": hiddenTest + "require('./fixture.json');\n"}
	content := nodeTask(append([]files{own}, more...)...)
	delete(content, "tests/test/alive.gate.test.js")
	return content
}

func TestNodeSuite(t *testing.T) {
	all := nodeBench(t, nodeTask())
	solved := all.agent(files{"src/add.js": addSource}).want(grade.VerdictPass, "")
	var names []string
	for _, raw := range solved.HiddenTests.Details {
		names = append(names, string(raw))
	}
	want := `{"pass":true,"test":"add"} {"gate":true,"pass":true,"test":"alive"}`
	if got := strings.Join(names, " "); got != want || *solved.Score != 1 {
		t.Errorf("the rows are %s, want %s", got, want)
	}
	failed := all.another(t).want(grade.VerdictFail, "adds failed")
	if !failed.Grade.GatesPass || *failed.Score != 0 {
		t.Errorf("the scaffold got %s", describe(failed))
	}
}

func TestNodeSuiteSeesAPlainEnvironmentAndLeavesNothing(t *testing.T) {
	t.Setenv("NODE_TEST_CONTEXT", "child-v8")
	t.Setenv("NODE_OPTIONS", "--require=/nowhere.js")
	b := nodeBench(t, nodeTask(files{"tests/test/env.test.js": `const test = require('node:test');
const fs = require('node:fs');
test('environment', () => {
  for (const name of ['TASK_DIR', 'HOOKS_DIR', 'FAMILY_DIR', 'TASK_ID', 'RESULTS_FD', 'AGENT_CWD', 'NODE_TEST_CONTEXT']) {
    if (process.env[name] !== undefined) throw new Error(name + ' is set');
  }
  if (process.env.NODE_OPTIONS) throw new Error('NODE_OPTIONS is set');
  if (!fs.existsSync('src/add.js')) throw new Error('wrong directory ' + process.cwd());
  if (fs.existsSync('test/add.test.js')) throw new Error('another check is there');
  let open = true;
  try { fs.fstatSync(3); } catch { open = false; }
  const rows = open && fs.fstatSync(3).isSocket();
  if (rows) throw new Error('the channel of rows is open');
});
`})).agent(files{"src/add.js": addSource})
	b.want(grade.VerdictPass, "")
	if _, err := os.Stat(filepath.Join(b.ws.Dir, "test")); err == nil {
		t.Error("hidden files were left in the agent's working directory")
	}
}

// nodeForger prints every secret that a text holds as that of a test that has passed.
const nodeForger = `const fs = require('fs');
function forge(text) {
  const found = new Set(text.match(/\b[0-9a-f]{32}\b/g));
  if (found.size === 0) return;
  for (const name of ['adds', 'numbers > negative', 'alive']) for (const pad of found) fs.writeSync(1, '\n\x1efit ' + JSON.stringify({ status: 'pass', name, pad }) + '\n');
  exports.add = (a, b) => a + b;
}
`

// Each of these agents tries to pass without having solved the task.
func TestCheatingNodeAgents(t *testing.T) {
	all := nodeBench(t, nodeCheck())
	for name, test := range map[string]struct {
		agent  files
		reason string
	}{
		"process.exit(0) when loaded": {files{"src/add.js": "process.exit(0);\n"}, "did not finish"},
		"process.exit(0) within a test": {
			files{"src/add.js": "exports.add = () => process.exit(0);\n"}, "did not finish",
		},
		"exit status rewritten at the end": {
			files{"src/add.js": addBroken +
				"process.on('exit', () => { process.exitCode = 0; process.reallyExit(0); });\n"}, "adds failed",
		},
		"printed TAP and exit": {
			files{"src/add.js": `console.log('TAP version 13\nok 1 - adds\nok 2 - numbers\n1..2\n# pass 2\n# fail 0'); process.exit(0);`}, "did not finish",
		},
		"printed records": {
			files{"src/add.js": `const fs = require('fs');
for (const name of ['adds', 'numbers > negative', 'alive']) fs.writeSync(1, '\n\x1efit ' + JSON.stringify({status: 'pass', name, pad: '0'.repeat(32)}) + '\n');
fs.writeSync(1, '\n\x1efit ' + JSON.stringify({status: 'done', pad: ''}) + '\n'); process.exit(0);`}, "forged",
		},
		"kills the test process": {files{"src/add.js": "process.kill(process.pid, 'SIGKILL');\n"}, "was killed by"},
		"kills its parent": {
			files{"src/add.js": "try { process.kill(process.ppid, 'SIGKILL'); } catch {}\n" + addBroken}, "",
		},
		"replaced assertions": {
			files{"src/add.js": `const assert = require('assert');
for (const key of Object.keys(assert)) { try { assert[key] = () => {}; } catch {} }
try { require('module').syncBuiltinESMExports(); } catch {}
` + addBroken}, "adds failed",
		},
		"replaced loader": {
			files{"src/add.js": `const Module = require('module');
try { Module._load = () => () => {}; } catch {}
try { Module.register('./x.mjs', 'file:///'); } catch {}
` + addBroken}, "adds failed",
		},
		"replaced stream of events": {
			files{"src/add.js": `const { Readable } = require('stream'); const { EventEmitter } = require('events');
const push = Readable.prototype.push;
try { Readable.prototype.push = function (e) { if (e && e.type === 'test:fail') e.type = 'test:pass'; return push.call(this, e); }; } catch {}
const emit = EventEmitter.prototype.emit;
try { EventEmitter.prototype.emit = function (t, ...a) { return emit.call(this, t === 'test:fail' ? 'test:pass' : t, ...a); }; } catch {}
` + addBroken}, "adds failed",
		},
		"poisoned prototypes": {
			files{"src/add.js": `Object.prototype.toJSON = () => ({status: 'pass'}); Object.prototype.skip = undefined;
Array.prototype.toJSON = () => 'x'; JSON.stringify = () => '{}'; Map.prototype.get = () => 1;
` + addBroken}, "adds failed",
		},
		"secrets from the heap": {
			files{"src/add.js": `const fs = require('fs'); let found = new Set();
try { const file = require('v8').writeHeapSnapshot(); for (const m of fs.readFileSync(file, 'utf8').matchAll(/[0-9a-f]{32}/g)) found.add(m[0]); } catch {}
try { const { Session } = require('inspector'); new Session().connect(); } catch {}
for (const pad of found) for (const name of ['adds', 'numbers > negative', 'alive']) fs.writeSync(1, '\n\x1efit ' + JSON.stringify({status: 'pass', name, pad}) + '\n');
for (const pad of found) fs.writeSync(1, '\n\x1efit ' + JSON.stringify({status: 'done', pad}) + '\n');
process.exit(0);`}, "",
		},
		"secrets from the heap, by a thread": {
			files{"src/add.js": nodeForger + `const { Worker } = require('worker_threads');
function steal() {
  const fs = require('fs'); let text = '';
  try {
    const session = new (globalThis.early ?? require('inspector').Session)();
    session.on('HeapProfiler.addHeapSnapshotChunk', (m) => { text += m.params.chunk; });
    session.connectToMainThread();
    session.post('HeapProfiler.takeHeapSnapshot', () => fs.writeFileSync('heap', text));
    setTimeout(() => {}, 1500);
  } catch { fs.writeFileSync('heap', ''); }
}
const early = ['--require', __dirname + '/early.js'];
for (const options of [{ execArgv: [] }, { execArgv: early }, { env: { NODE_OPTIONS: early.join(' ') }, execArgv: [] }]) {
  new Worker('(' + steal + ')()', { eval: true, ...options }).on('error', () => {});
  for (const end = Date.now() + 1500; Date.now() < end && !fs.existsSync('heap'););
  try { forge(fs.readFileSync('heap', 'utf8')); fs.rmSync('heap'); } catch {}
}
exports.add ??= (a, b) => a - b;
`, "src/early.js": "globalThis.early = require('inspector').Session;\n"}, "adds failed",
		},
		"secrets from the debugger": {
			files{"src/add.js": nodeForger + `process.kill(process.pid, 'SIGUSR1'); const end = Date.now() + 200; while (Date.now() < end);
const { execFileSync } = require('child_process');
try { execFileSync(process.execPath, ['-e', "require('http').get('http://127.0.0.1:9229/json', () => process.exit(0)).on('error', () => process.exit(1))"]); exports.add = (a, b) => a + b; } catch {}
exports.add ??= (a, b) => a - b;
`}, "adds failed",
		},
		"the stream of events from a replaced nextTick": {
			files{"src/add.js": `const was = process.nextTick;
process.nextTick = function (fn, ...args) {
  for (const s of args) if (s && typeof s.fail === 'function') s.push = function (e) { if (e && e.type === 'test:fail') { e.type = 'test:pass'; e.data.details = {}; } return Object.getPrototypeOf(s).push.call(s, e); };
  return was.call(process, fn, ...args);
};
` + addBroken}, "adds failed",
		},
		"events changed in the list of a stream": {
			files{"src/add.js": `const list = Object.getPrototypeOf(new (require('stream').Readable)({ read() {} })._readableState.buffer); const was = list.push;
list.push = function (e) { if (e && e.type === 'test:fail') { e.type = 'test:pass'; e.data.details = {}; } return was.call(this, e); };
` + addBroken}, "adds failed",
		},
		"settings of node and npm": {
			files{
				".npmrc": "node-options=--require=./evil.js\n", "evil.js": "process.exit(0)", "src/add.js": addBroken,
				".node-version": "0",
				"package.json":  `{"scripts":{"test":"true","pretest":"true"},"type":"commonjs"}`,
				".env":          "NODE_OPTIONS=--require=./evil.js\n",
			}, "adds failed",
		},
		"tests of its own in the place of the hidden ones": {
			files{"test/add.test.js": "require('node:test')('adds', () => {});\n", "test/fixture.json": "{}"},
			"adds failed",
		},
		"own tests of the same names": {
			files{"src/add.js": "const test = require('node:test'); test('adds', () => {}); test.describe('numbers', () => test.it('negative', () => {}));\n" + addBroken}, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all.another(t).agent(test.agent).want(grade.VerdictFail, test.reason)
		})
	}
}

func TestNodeTestsThatHangFail(t *testing.T) {
	wantTimeout(t, "test", func(t *testing.T, yaml files) *bench {
		return nodeBench(t, nodeCheck(yaml))
	}, files{"src/add.js": "for (;;) {}\n"})
}

func TestHiddenTestsAreStagedWhateverIsInTheirWay(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "outside.js")
	if err := os.WriteFile(outside, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	all := nodeBench(t, nodeCheck())
	for name, agent := range map[string]files{
		"a link in the place of the test":          {"test/add.test.js": "-> " + outside},
		"a dangling link in the place of the test": {"test/add.test.js": "-> " + outside + ".new"},
		"a link in the place of the directory":     {"test": "-> " + filepath.Dir(outside)},
		"a link to a directory inside":             {"test": "-> src"},
		"a file in the place of the directory":     {"test": "I am a file"},
		"a directory in the place of the test":     {"test/add.test.js/file": "x"},
	} {
		t.Run(name, func(t *testing.T) {
			b := all.another(t).agent(agent)
			b.want(grade.VerdictFail, "adds failed")
			b.agent(files{"src/add.js": addSource}).want(grade.VerdictPass, "")
			entries, err := os.ReadDir(filepath.Dir(outside))
			if content, readErr := os.ReadFile(outside); err != nil || readErr != nil ||
				string(content) != "precious" || len(entries) != 1 {
				t.Errorf("something outside was touched: %q, %v", content, entries)
			}
		})
	}
}

func TestCodeUnderTestMayUseThreadsAndProcesses(t *testing.T) {
	nodeBench(t, nodeCheck(files{"tests/test/add.test.js": `const test = require('node:test');
const assert = require('node:assert');
const { add, double } = require('../src/add.js');
test('adds', async () => assert.strictEqual(await add(2, 3), 5));
test('doubles', async () => assert.strictEqual(await double(2), 4));
`})).agent(files{"src/add.js": `const { Worker, isMainThread, parentPort, workerData } = require('worker_threads');
class Adder extends Worker {}
if (!isMainThread) parentPort.postMessage(workerData[0] + workerData[1] + (process.env.MORE ?? 0) * 1);
if (process.send) process.on('message', (n) => process.send(2 * n, () => process.exit()));
exports.double = (n) => new Promise((resolve) => {
  const child = require('child_process').fork(__filename);
  child.on('message', resolve).on('exit', () => resolve(NaN));
  child.send(n);
});
exports.add = (a, b) => new Promise((resolve, reject) => {
  const nested = new Adder(__filename, { workerData: [a, b], env: { MORE: '0' } });
  nested.on('message', (sum) => resolve(nested instanceof Worker && nested.constructor === Adder ? sum : NaN)).on('error', reject);
});
`}).want(grade.VerdictPass, "")
}

// A hidden test that proves nothing is not passed by anybody; lint finds it by the reference
// solution.
func TestEmptyAndSkippedTestFilesProveNothing(t *testing.T) {
	for name, source := range map[string]string{
		"empty":   "\n",
		"skipped": "require('node:test').skip('later', () => {});\n",
		"to do":   "require('node:test').todo('later', () => {});\n",
		"suite":   "require('node:test').describe('nothing', () => {});\n",
		"skipped inside": `const test = require('node:test'); test('outer', async (t) => { await t.test('inner', (t) => t.skip()); });
`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			nodeBench(t, nodeCheck(files{"tests/test/add.test.js": source})).agent(
				files{"src/add.js": addSource}).want(grade.VerdictFail, "")
		})
	}
}

func TestAnAgentCannotSkipWhatTheReferenceRuns(t *testing.T) {
	source := `const test = require('node:test');
const { add, cases } = require('../src/add.js');
for (const c of cases ?? [[1, 1, 2], [2, 2, 4]]) test('case ' + c.join(), { skip: add.skip }, () => { if (add(c[0], c[1]) !== c[2]) throw new Error('wrong'); });
`
	all := nodeBench(t, nodeCheck(files{"tests/test/add.test.js": source}))
	all.another(t).agent(files{"src/add.js": addSource}).want(grade.VerdictPass, "")
	all.another(t).agent(files{"src/add.js": addBroken + "exports.cases = [[0, 0, 0]];\n"}).want(
		grade.VerdictFail, "no test ran")
	all.another(t).agent(files{"src/add.js": addSource + "exports.cases = [[1, 1, 2]];\n"}).want(
		grade.VerdictFail, "was not reported")
	all.another(t).agent(files{"src/add.js": addBroken + "exports.add.skip = true;\n"}).want(grade.VerdictFail,
		"skipped")
}

// Work that cannot be loaded is told why, and work may extend what node's runner does not look at.
func TestWhyWorkCannotBeLoadedIsSaid(t *testing.T) {
	all := nodeBench(t, nodeCheck())
	for work, reason := range map[string]string{
		"throw new RangeError('no such table');\n": "no such table",
		"const x = ;\n":                                    "Unexpected token",
		"require('./not-there');\n":                        "Cannot find module './not-there'",
		"Array.prototype.last = () => 0;\n":                "",
		"'use strict';\nArray.prototype.last = () => 0;\n": "Cannot add property last, object is not extensible",
		"require('async_hooks').createHook({});\n":         "not available while hidden tests run",
		"require('events').prototype.emit = () => {};\n":   "not available while hidden tests run",
	} {
		verdict := map[bool]string{true: grade.VerdictPass, false: grade.VerdictFail}[reason == ""]
		all.another(t).agent(files{"src/add.js": work + addSource}).want(verdict, reason)
	}
	all.another(t).agent(files{"src/add.js": `'use strict';
Promise.withResolvers ??= function () { const made = {}; made.promise = new this((resolve) => { made.resolve = resolve; }); return made; };
Promise.prototype.tap = function (look) { return this.then((value) => { look(value); return value; }); };
String.prototype.shout = function () { return this.toUpperCase(); };
Promise.withResolvers().promise.tap(() => {});
` + addSource}).want(grade.VerdictPass, "")
}

func TestNamesAreReadInTheSourceWhereNothingElseTells(t *testing.T) {
	content := nodeCheck(files{"workdir/src/add.js": "", "tests/test/add.test.js": `const test = require('node:test');
const { add } = require('../src/add.js');
if (add(1, 1) === 2) {
  test('one', () => {});
}
test('two', () => {});
`})
	delete(content, "solution/src/add.js")
	b := nodeBench(t, content).agent(files{"src/add.js": "exports.add = () => 3;\n"})
	b.want(grade.VerdictFail, `the test "one" was not reported`)
}

func TestMissingRunnerIsAnErrorAndNotAFail(t *testing.T) {
	b := nodeBench(t, nodeTask()).agent(files{"src/add.js": addSource})
	t.Setenv("PATH", "/nowhere")
	b = benchOf(t, b.family)
	if b.ws.Isolation == "bwrap" {
		// The sandbox's own directories are always searched there.
		b.task.Suite.Runner.Language, b.task.Suite.Runner.Command = "other", []string{"no-such-program", "{file}"}
	}
	b.want(grade.VerdictError, "could not be started")
}

func TestEvidenceIsKeptForPeople(t *testing.T) {
	b := nodeBench(t, nodeCheck()).agent(files{"src/add.js": "console.log('said on the way');\n" + addBroken})
	result := b.want(grade.VerdictFail, "")
	all := ""
	for _, name := range result.Artifacts {
		content, err := os.ReadFile(filepath.Join(b.artifacts, name))
		if err != nil {
			t.Fatal(err)
		}
		all += string(content)
	}
	if !strings.Contains(all, "said on the way") {
		t.Errorf("the artefacts %v do not hold what was printed", result.Artifacts)
	}
}

func TestResultReadsAsTheRecordDoes(t *testing.T) {
	result := nodeBench(t, nodeCheck()).grade()
	text, err := json.Marshal(result)
	if err != nil {
		t.Fatal(err)
	}
	for _, field := range []string{
		`"grade":{"verdict":"fail","gatesPass":true,"score":0,"healthy":true`,
		`"invariants":{"details":[],"exitCode":0}`, `"hiddenTests":{"details":[`,
	} {
		if !strings.Contains(string(text), field) {
			t.Errorf("%s is not in %s", field, text)
		}
	}
}
