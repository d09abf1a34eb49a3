import assert from "node:assert/strict";
import { test } from "node:test";
import { clamp } from "./src/clamp.js";

test("example 1", () => assert.equal(clamp(-7, 1, 5), 1));
test("example 2", () => assert.equal(clamp(9, 1, 5), 5));
test("example 3", () => assert.equal(clamp(3, 1, 5), 3));
