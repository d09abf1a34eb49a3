import assert from "node:assert/strict";
import { test } from "node:test";
import { slugify } from "./src/slugify.js";

test("a long title is cut at a hyphen", () => {
  const slug = slugify("word ".repeat(40));
  assert.equal(slug, Array(12).fill("word").join("-"));
  assert.ok(slug.length <= 60);
});

test("a long word is cut hard", () => assert.equal(slugify("x".repeat(100)), "x".repeat(60)));
test("nothing usable", () => assert.equal(slugify("?!"), "untitled"));
