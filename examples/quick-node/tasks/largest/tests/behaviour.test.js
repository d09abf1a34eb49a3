import assert from "node:assert/strict";
import { test } from "node:test";
import { largest } from "./src/largest.js";

test("example 1", () => assert.equal(largest([3, 9, 4]), 9));
test("example 2", () => assert.equal(largest([-5, -2]), -2));
test("example 3", () => assert.equal(largest([7]), 7));
