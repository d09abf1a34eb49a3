import assert from "node:assert/strict";
import { test } from "node:test";
import { report } from "./fake.mjs";

test("one line per person, sorted by name", async () => {
  const { stdout, code, seen } = await report(200, [
    { who: "Zoe", what: "x", done: true },
    { who: "Ann", what: "y", done: false },
    { who: "Zoe", what: "z", done: true },
  ]);
  assert.equal(stdout.trim(), "Ann: 1 open, 0 done\nZoe: 0 open, 2 done");
  assert.equal(code, 0);
  assert.equal(seen[0].url, "/todos");
  assert.equal(seen[0].authorization, "Bearer another-token");
});
