import assert from "node:assert/strict";
import test from "node:test";

import { slug } from "./slug.js";

test("one blank", () => {
  assert.equal(slug("Hello World"), "hello-world");
});

test("several blanks", () => {
  assert.equal(slug("A day in May"), "a-day-in-may");
});
