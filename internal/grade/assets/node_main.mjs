// Runs one hidden test file, and says when its body has run to the end. Code that the test file
// imports can register tests of its own and keep the file from ever getting to its tests; without
// the announcement nothing counts.
import { pathToFileURL } from 'node:url';
import { announcer, closed, taken } from './reporter.mjs';

const loaded = announcer();
await taken;
await closed;
try {
  await import(pathToFileURL(process.argv[2]));
} catch (error) {
  loaded(error);
  throw error;
}
loaded();
