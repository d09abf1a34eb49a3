// Loaded before the agent's code in the process that runs hidden tests, and in each of its threads:
// a thread has modules of its own, and could look into the others with a debugger.
'use strict';
const asyncHooks = require('node:async_hooks');
const inspector = require('node:inspector');
const Module = require('node:module');
const v8 = require('node:v8');
const threads = require('node:worker_threads');

const { defineProperty, getOwnPropertyDescriptor } = Object;
const { construct } = Reflect;

function deny() {
  throw new Error('not available while hidden tests run');
}

function forbid(object, keys) {
  for (const key of keys) {
    const was = object && getOwnPropertyDescriptor(object, key);
    if (was === undefined || !was.configurable) continue;
    defineProperty(object, key, { value: deny, configurable: false, enumerable: was.enumerable, writable: false });
  }
}

forbid(asyncHooks, ['createHook', 'executionAsyncResource']);
forbid(v8, ['promiseHooks', 'getHeapSnapshot', 'writeHeapSnapshot', 'setFlagsFromString', 'queryObjects',
  'setHeapSnapshotNearHeapLimit']);
forbid(Module, ['register', 'registerHooks']);
forbid(process, ['binding', '_linkedBinding', '_debugProcess', '_startProfilerIdleNotifier']);
forbid(inspector, ['open', 'Session']);
// Without a listener this signal opens the debugger's port.
if (threads.isMainThread) process.on('SIGUSR1', () => {});

// Threads begin with this file, and with no options that could load something before it.
const { Worker } = threads;
const guarded = new Proxy(Worker, {
  construct(target, [file, given], newTarget) {
    const options = { ...given, execArgv: ['--require', __filename] };
    delete process.env.NODE_OPTIONS;
    if (typeof options.env === 'object' && options.env !== null) {
      options.env = { ...options.env };
      delete options.env.NODE_OPTIONS;
    }
    return construct(target, [file, options], newTarget);
  },
});
defineProperty(Worker.prototype, 'constructor', { value: guarded, configurable: false, writable: false });
defineProperty(threads, 'Worker', { value: guarded, configurable: false, enumerable: true, writable: false });
Module.syncBuiltinESMExports();

module.exports = { deny };
