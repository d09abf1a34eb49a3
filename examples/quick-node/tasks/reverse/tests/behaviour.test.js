import assert from "node:assert/strict";
import { test } from "node:test";
import { reverse } from "./src/reverse.js";

test("example 1", () => assert.equal(reverse("abc"), "cba"));
test("example 2", () => assert.equal(reverse("ab"), "ba"));
test("example 3", () => assert.equal(reverse(""), ""));
