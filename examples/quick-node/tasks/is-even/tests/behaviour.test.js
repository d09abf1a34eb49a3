import assert from "node:assert/strict";
import { test } from "node:test";
import { isEven } from "./src/is-even.js";

test("example 1", () => assert.equal(isEven(4), true));
test("example 2", () => assert.equal(isEven(7), false));
test("example 3", () => assert.equal(isEven(-3), false));
