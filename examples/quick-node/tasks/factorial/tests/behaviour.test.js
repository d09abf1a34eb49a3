import assert from "node:assert/strict";
import { test } from "node:test";
import { factorial } from "./src/factorial.js";

test("example 1", () => assert.equal(factorial(5), 120));
test("example 2", () => assert.equal(factorial(0), 1));
test("example 3", () => assert.equal(factorial(1), 1));
