import assert from "node:assert/strict";
import { test } from "node:test";
import { sumDigits } from "./src/sum-digits.js";

test("example 1", () => assert.equal(sumDigits(123), 6));
test("example 2", () => assert.equal(sumDigits(0), 0));
test("example 3", () => assert.equal(sumDigits(9009), 18));
