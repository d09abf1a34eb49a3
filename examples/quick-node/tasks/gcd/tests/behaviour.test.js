import assert from "node:assert/strict";
import { test } from "node:test";
import { gcd } from "./src/gcd.js";

test("example 1", () => assert.equal(gcd(12, 18), 6));
test("example 2", () => assert.equal(gcd(7, 5), 1));
test("example 3", () => assert.equal(gcd(9, 3), 3));
