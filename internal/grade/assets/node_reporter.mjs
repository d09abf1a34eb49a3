// Loaded before anything else in the process that runs one hidden test file; also that process's
// reporter.
//
// It reads one secret per test from standard input and prints a secret only when its test passed.
// The agent's code runs later in the same process and can import this module too. So everything
// that reports is captured now, what decides about tests can no longer be replaced, and each export
// works once: node takes the reporter, and node_main.mjs the rest, before the agent's code is loaded.
import assert from 'node:assert';
import { AsyncResource } from 'node:async_hooks';
import { EventEmitter } from 'node:events';
import fs from 'node:fs';
import Module from 'node:module';
import stream from 'node:stream';
import test, { after, beforeEach, mock } from 'node:test';
import guard from './guard.cjs';

const { defineProperty, freeze, getOwnPropertyDescriptor, getPrototypeOf, preventExtensions } = Object;
const { apply, ownKeys } = Reflect;
const { stringify } = JSON;
const { writeSync } = fs;
const { deny } = guard;
const slice = Function.prototype.call.bind(String.prototype.slice);
const text = String;

// What the agent's code starts with node's own options begins without us.
process.execArgv = [];

const given = JSON.parse(fs.readFileSync(0, 'utf8'));
const names = { __proto__: null };
const used = { __proto__: null };
for (const name of Object.keys(given.names)) {
  names[name] = given.names[name];
  used[name] = 0;
}
const spare = given.spare;
const { done, loaded } = given;
const files = { __proto__: null };
for (const file of given.files) files[file] = true;
let spent = 0;

function say(record) {
  const line = '\n\x1efit ' + stringify(record) + '\n';
  for (let tries = 0; tries < 1000; tries++) {
    try {
      writeSync(1, line);
      return;
    } catch (error) {
      if (error.code !== 'EAGAIN') return;
    }
  }
}

// Reports whether a test was defined in a file of the hidden suite. Older versions of node do not
// say where.
function hidden(file) {
  return file === undefined || file === null || files[file] === true;
}

// A secret for a test that has passed; undefined for a test nobody asked for.
function secretOf(name) {
  const list = names[name];
  if (list !== undefined && used[name] < list.length) return list[used[name]++];
  if (list === undefined && spent < spare.length) return spare[spent++];
  return undefined;
}

function report(status, name, own, file, suite, error) {
  if (names[name] === undefined && names[own] !== undefined) name = own;
  const record = { __proto__: null, status, name, suite };
  if (status === 'pass' && !hidden(file)) {
    record.status = 'extra';
  } else if (status === 'pass') {
    const pad = secretOf(name);
    if (pad === undefined) record.status = names[name] === undefined ? 'extra' : 'again';
    else record.pad = pad;
  } else if (error) {
    try {
      const ended = error.signal ? ' (' + text(error.signal) + ')' : ''; // of a process
      record.message = slice(text(error.message ?? error) + ended, 0, 8000); // the grader redacts it, and cuts it then
    } catch {
      record.message = 'an error that cannot be shown';
    }
  }
  say(record);
}

const parents = { __proto__: null };

// The name of the test with which we begin; nobody else knows it.
const first = 'fit ' + done;

function follow({ type, data }) {
  if (data !== undefined && data !== null && data.name === first) return;
  if (type === 'test:start') {
    parents[data.nesting] = text(data.name);
  } else if (type === 'test:pass' || type === 'test:fail') {
    let name = '';
    for (let i = 0; i < data.nesting; i++) name += parents[i] + ' > ';
    const own = text(data.name);
    name += own;
    const details = data.details;
    const suite = details !== undefined && details !== null && details.type === 'suite';
    let status = type === 'test:pass' ? 'pass' : 'fail';
    if (data.skip !== undefined && data.skip !== false) status = 'skip';
    if (data.todo !== undefined && data.todo !== false) status = 'todo';
    if (suite && status === 'pass') return;
    const cause = details && details.error && (details.error.cause ?? details.error);
    report(status, name, own, data.file, suite, cause);
  }
}

const finish = () => say({ __proto__: null, status: 'done', pad: done });

// Node puts events into a stream, whose parts the agent's code can reach or replace: its list, the
// function that runs things later, whatever it inherits. So events are taken at the entrance, from
// the moment that node connects the stream, and nothing but the end goes through it.
let taking = false;
const { on, push } = stream.Readable.prototype;
stream.Readable.prototype.on = function (...args) {
  if (!taking && typeof this.plan === 'function' && typeof this.fail === 'function') {
    taking = true;
    defineProperty(this, 'push', { value: take });
  }
  return apply(on, this, args);
};

function take(event) {
  if (event !== null) {
    follow(event);
    return true;
  }
  finish();
  return apply(push, this, [null]);
}

// Follows what comes out of the stream, where a version of node did not let us in at its entrance.
async function* followAll(source) {
  begin();
  for await (const event of source) follow(event);
  if (!taking) finish();
}

let begin;
let following = false;
let announced = false;

// Resolves when node has taken the reporter.
export const taken = new Promise((resolve) => {
  begin = resolve;
});

// The reporter. It follows the first stream that it is given, which is node's.
export default (source) => {
  if (following) deny();
  following = true;
  return followAll(source);
};

// Returns the function that says that the test file was loaded to its end, or what kept it from that: node says the
// latter to nobody.
export function announcer() {
  if (announced) deny();
  announced = true;
  return (...errors) => {
    if (errors.length === 0) say({ __proto__: null, status: 'loaded', pad: loaded });
    else report('fail', 'the test file', 'the test file', undefined, false, errors[0]);
  };
}

// Keeps a function of an object as it is. Objects that inherit it may still have one of their own.
function keep(object, key) {
  const was = getOwnPropertyDescriptor(object, key);
  if (was === undefined || !was.configurable || typeof was.value !== 'function') return;
  const value = was.value;
  defineProperty(object, key, {
    configurable: false,
    enumerable: was.enumerable,
    get() {
      return value;
    },
    set(replacement) {
      if (this === object) deny();
      defineProperty(this, key, { value: replacement, configurable: true, enumerable: true, writable: true });
    },
  });
}

for (const key of ownKeys(test)) keep(test, key);
freeze(assert);
freeze(assert.strict);
const { Stream, Readable, Writable, Duplex, Transform, PassThrough } = stream;
for (const type of [EventEmitter, Stream, Readable, Writable, Duplex, Transform, PassThrough]) {
  for (const key of ownKeys(type.prototype)) if (key !== 'constructor') keep(type.prototype, key);
}
// A test may load node's library after the agent's code, which can put something else into the cache of modules, or
// where names are resolved. Names with this prefix go through neither.
const { _load, isBuiltin } = Module;
Module._load = function (name, parent, main) {
  const bare = typeof name === 'string' && isBuiltin(name) && slice(name, 0, 5) !== 'node:';
  return apply(_load, this, [bare ? 'node:' + name : name, parent, main]);
};
for (const key of ['_load', 'syncBuiltinESMExports']) keep(Module, key);
// Node's tests are objects of a class that derives from AsyncResource. Whoever gets hold of one makes
// it pass: as the resource of a hook, as "this" of an inherited method or of an accessor that was
// added to what it inherits from, as an element for which arrays were given an accessor, or by
// settling the promises that node waits for.
const asyncGenerator = getPrototypeOf(getPrototypeOf((async function* () {})()));
const generator = getPrototypeOf(getPrototypeOf((function* () {})()));
const arrayIterator = getPrototypeOf([][Symbol.iterator]());
const inherited = [AsyncResource.prototype, Promise.prototype, asyncGenerator, generator, arrayIterator,
  getPrototypeOf(asyncGenerator), getPrototypeOf(generator), Promise];
for (const object of inherited) for (const key of ownKeys(object)) if (key !== 'constructor') keep(object, key);
defineProperty(Promise.prototype, 'constructor', { configurable: false, writable: false });
// Nothing looks for more on promises than they have: work may add to them, such as Promise.withResolvers.
const extensible = [Promise, Promise.prototype];
for (const object of [...inherited, Object.prototype, Array.prototype]) {
  if (!extensible.includes(object)) preventExtensions(object);
}
keep(Module.prototype, 'require');
Module.syncBuiltinESMExports();

// Keeps everything that objects inherit from a prototype as it is.
function keepAll(prototype) {
  if (prototype === Object.prototype) return;
  for (const key of ownKeys(prototype)) {
    const was = getOwnPropertyDescriptor(prototype, key);
    if (was.get !== undefined || was.set !== undefined) defineProperty(prototype, key, { configurable: false });
    else if (was.configurable) defineProperty(prototype, key, { configurable: false, writable: false });
  }
  preventExtensions(prototype);
}

// Keeps what contexts of tests offer. Functions for assertions are made for each context when it is
// asked for them, and are frozen then.
function keepContext(context) {
  const prototype = getPrototypeOf(context);
  const offered = getOwnPropertyDescriptor(prototype, 'assert');
  if (offered !== undefined && offered.get !== undefined && offered.configurable) {
    const { get } = offered;
    defineProperty(prototype, 'assert', { get() { return freeze(apply(get, this, [])); } });
  }
  keepAll(prototype);
}

keepAll(getPrototypeOf(mock));
keepAll(getPrototypeOf(mock.fn().mock));
// The first hook of all: a context is closed before anybody else has it.
beforeEach((context) => {
  freeze(context);
});
// A first test shows us the prototype of contexts, before the agent's code is loaded. It also asks
// for the reporter, before anybody else could.
export const closed = test(first, keepContext);
after(() => {});
