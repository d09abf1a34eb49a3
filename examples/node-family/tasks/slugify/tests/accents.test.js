import assert from "node:assert/strict";
import { test } from "node:test";
import { slugify } from "./src/slugify.js";

test("accents are dropped", () => assert.equal(slugify("Crème Brûlée"), "creme-brulee"));
test("letters that do not fall apart are spelled", () => assert.equal(slugify("Straße Øst"), "strasse-ost"));
