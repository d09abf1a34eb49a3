import assert from "node:assert/strict";
import { test } from "node:test";
import { palindrome } from "./src/palindrome.js";

test("example 1", () => assert.equal(palindrome("Anna"), true));
test("example 2", () => assert.equal(palindrome("Ada"), true));
test("example 3", () => assert.equal(palindrome("Bob "), false));
