import assert from "node:assert/strict";
import { test } from "node:test";
import { rangeSum } from "./src/range-sum.js";

test("example 1", () => assert.equal(rangeSum(1, 4), 10));
test("example 2", () => assert.equal(rangeSum(5, 5), 5));
test("example 3", () => assert.equal(rangeSum(3, 2), 0));
