import assert from "node:assert/strict";
import { test } from "node:test";
import { slugify } from "./src/slugify.js";

test("words are joined with hyphens, in lower case", () => {
  assert.equal(slugify("Hello World"), "hello-world");
  assert.equal(slugify("  A -- B?!  "), "a-b");
});

test("digits stay", () => assert.equal(slugify("Top 10 of 2024"), "top-10-of-2024"));
