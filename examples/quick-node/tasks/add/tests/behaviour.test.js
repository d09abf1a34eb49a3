import assert from "node:assert/strict";
import { test } from "node:test";
import { add } from "./src/add.js";

test("example 1", () => assert.equal(add(2, 3), 5));
test("example 2", () => assert.equal(add(-4, 4), 0));
test("example 3", () => assert.equal(add(10, 7), 17));
