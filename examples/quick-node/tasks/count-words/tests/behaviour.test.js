import assert from "node:assert/strict";
import { test } from "node:test";
import { countWords } from "./src/count-words.js";

test("example 1", () => assert.equal(countWords("a  b"), 2));
test("example 2", () => assert.equal(countWords(""), 0));
test("example 3", () => assert.equal(countWords(" one\ntwo three "), 3));
