import assert from "node:assert/strict";
import { test } from "node:test";
import { initials } from "./src/initials.js";

test("example 1", () => assert.equal(initials("ada lovelace"), "AL"));
test("example 2", () => assert.equal(initials("Grace  Brewster Hopper"), "GBH"));
test("example 3", () => assert.equal(initials("Plato"), "P"));
