import assert from "node:assert/strict";
import { test } from "node:test";
import { report } from "./fake.mjs";

test("a refusal is told on standard error", async () => {
  const { stdout, stderr, code } = await report(401, {});
  assert.equal(stdout, "");
  assert.match(stderr, /401/);
  assert.equal(code, 1);
});
