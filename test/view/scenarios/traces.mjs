// Traces: search, filters, permanent links, growth, and what hostile agents write.
import { accessible, check, contrast, equal, open, reads, together } from "./common.mjs";

async function openTrace(page, args, query = "") {
  await open(page, args);
  const link = page.locator("a[href*='#/trace/']").first();
  await link.waitFor();
  const hash = await link.getAttribute("href");
  await page.evaluate((to) => (location.hash = to), hash + query);
  await page.waitForSelector(".entry .said");
  return hash;
}

export async function search(page, args) {
  await openTrace(page, args);
  await page.keyboard.press("/");
  await page.keyboard.type(args.word);
  await reads(page, args.hits);
  await page.keyboard.press("Enter");
  await page.waitForSelector(".entry.chosen mark");
  check((await page.locator(".hit-marks").getAttribute("d")).length > 0, "hits are marked on the lanes");
  await page.keyboard.press("Escape");
  await page.keyboard.press("e");
  await page.waitForFunction((at) => location.hash.includes("at=" + at), args.error);
  await page.locator(".entry.chosen").waitFor();
  await accessible(page, "a search in a trace");
}

/** Markdown, changes of files, exit codes and colours, and that none of it is more than text. */
export async function readable(page, args) {
  await openTrace(page, args);
  const said = page.locator(".markdown").first();
  await said.waitFor();
  equal(await said.locator(".heading").innerText(), "The plan", "the heading");
  equal(await said.locator("ol > li").count(), 2, "the list");
  equal(await said.locator("ol ul li").innerText(), "with care", "the list within");
  equal(await said.locator("table tbody td").allInnerTexts(), ["calc.go", "4"], "the table");
  equal(await said.locator("strong").innerText(), "Read", "what is strong");
  equal(await said.locator("pre .hljs-keyword").innerText(), "func", "the code");
  equal(await page.locator("main .entry :is(script, img, .markdown a)").count(), 0, "what a model wrote is text");
  await reads(page, "<script>alert(1)</script><img src=x onerror=alert(2)>");
  await reads(page, "the docs (https://evil.example/x)");
  await page.getByLabel("source").check();
  await reads(page, "**Read** `calc.go`");
  equal(await page.locator(".entry .markdown").count(), 0, "Markdown where the source is wanted");
  await page.reload();
  await reads(page, "**Read** `calc.go`");
  await page.getByLabel("source").uncheck();
  const failed = page.locator(".call", { hasText: "go test ./..." });
  equal((await failed.innerText()).replace(/\s+/g, " "), "Bash go test ./... ✕ exit 2 syntax error near here", "a closed call");
  for (const summary of await page.locator(".entry details > summary").all()) await summary.click();
  const lines = (n) => page.locator(".edit").nth(n).locator(".line").evaluateAll((list) => list.map((l) => l.querySelector(".sign").innerText + l.querySelector("code").innerText));
  equal(await lines(0), [" func Add() {", "-\treturn 1", "+\treturn 2", " }"], "the edit");
  equal(await lines(1), ["+first", "+second"], "the file that was written");
  equal(await page.locator(".ansi-2").innerText(), "green", "what a terminal shows in green");
  equal(await page.locator(".ansi-1").innerText(), "red", "what a terminal shows in red");
  await reads(page, "\\x1b]0;title\\x07 \\x1b[2J");
  await accessible(page, "what an agent wrote");
  await page.emulateMedia({ colorScheme: "dark" });
  await contrast(page, "what an agent wrote, in the dark");
}

export async function filters(page, args) {
  await openTrace(page, args);
  await page.getByLabel("Filter by tool").selectOption(args.tool);
  await reads(page, args.shown);
  check(page.url().includes("tool=" + args.tool), "the filter is in the address");
  await page.getByLabel("Filter by tool").selectOption("");
  await page.getByLabel("errors only").check();
  await reads(page, args.errors);
}

/** The address of an entry opens that entry, alone in a new window and after a reload. */
export async function permalink(page, args) {
  // The clipboard is that of the whole browser, which other scenarios use, and "copied" is said only for a moment.
  await page.addInitScript(() => {
    const write = navigator.clipboard.writeText.bind(navigator.clipboard);
    navigator.clipboard.writeText = (text) => {
      window.copied = text;
      return write(text);
    };
    new MutationObserver(() => (window.said ||= document.body?.innerText.includes("copied"))).observe(document, { subtree: true, childList: true, characterData: true });
  });
  const hash = await openTrace(page, args);
  await page.evaluate((to) => (location.hash = to), `${hash}?at=${args.at}`);
  const chosen = page.locator(".entry.chosen");
  await chosen.waitFor();
  await chosen.getByText(args.text).first().waitFor();
  check(await chosen.isVisible(), "the entry is in sight");
  await page.reload();
  await chosen.waitFor();
  equal(await chosen.locator(".who a").innerText(), String(args.at), "the entry after a reload");
  await chosen.getByRole("button", { name: "copy as Markdown" }).click();
  await page.waitForFunction(() => window.said && window.copied);
  const copied = await page.evaluate(() => window.copied);
  check(copied.includes(args.text), "Markdown: " + copied);
  const served = await page.evaluate(async ([id, at]) => (await fetch(`/api/trace/markdown?trace=${id}&n=${at}`)).text(), [hash.split("/trace/")[1], args.at]);
  equal(copied, served, "what is copied and what the endpoint says");
}

/** A link to an entry is followed also before the page knows how many there are. */
export async function earlyLink(page, args) {
  let release;
  const gate = new Promise((done) => (release = done));
  await page.route("**/api/trace/overview*", async (route) => {
    await gate;
    await route.continue();
  });
  const hash = await openTrace(page, args);
  await page.evaluate((to) => (location.hash = to), `${hash}?at=${args.at}`);
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  release();
  await page.locator(".entry.chosen").getByText(args.text).first().waitFor();
}

/** Images are shown, of the kinds that cannot hold a script, and only those. */
export async function images(page, args) {
  if (args.path) await page.goto("file://" + args.path);
  else await openTrace(page, args);
  await page.waitForSelector(".entry");
  const folds = page.locator(".entry details:not([open]) > summary");
  while (await folds.count()) await folds.first().click();
  await page.waitForFunction((n) => [...document.querySelectorAll("img.picture")].filter((i) => i.complete && i.naturalWidth === 1).length === n, args.shown);
  equal(await page.locator("img.picture").count(), args.shown, "images on the page");
  await reads(page, args.text);
  await accessible(page, "a trace with images");
}

/** A trace that grows: nothing moves, a pill says how many are new, and it leads to them. */
export async function grows(page, args) {
  await openTrace(page, args);
  await page.waitForFunction(() => /\d+ entr(y|ies)/.test(document.body.innerText));
  const before = await page.evaluate(() => document.querySelector(".scroller").scrollTop);
  await page.evaluate(() => (document.title = "ready"));
  await page.waitForSelector(".pill");
  equal(await page.evaluate(() => document.querySelector(".scroller").scrollTop), before, "the place of the reader");
  await page.locator(".pill").click();
  await reads(page, args.text);
}

/** A hostile trace is shown as text: nothing runs, nothing is hidden, nothing becomes a link. */
export async function hostile(page, args) {
  await page.addInitScript(() => (window.hit = 0));
  await openTrace(page, args);
  for (let i = 0; i < args.entries; i++) {
    await page.evaluate((at) => {
      const [path, query] = location.hash.split("?");
      const q = new URLSearchParams(query);
      q.set("at", at);
      location.hash = path + "?" + q;
    }, String(i));
    await page.waitForSelector(".entry.chosen");
    for (const fold of await page.locator(".entry.chosen details:not([open]) > summary").all()) await fold.click();
  }
  for (const text of args.texts) {
    await page.evaluate((at) => (location.hash = location.hash.replace(/at=\d+/, "at=" + at)), text.at);
    await reads(page, text.text);
  }
  const state = await page.evaluate(() => ({
    hit: window.hit,
    scripts: document.querySelectorAll("main script, main iframe, main object, main img[onerror], main style").length,
    links: [...document.querySelectorAll("a")].filter((a) => !a.getAttribute("href").startsWith("#")).length,
    handlers: [...document.querySelectorAll("main *")].filter((e) => [...e.attributes].some((a) => a.name.startsWith("on"))).length,
    bidi: /[\u202a-\u202e\u2066-\u2069\u001b]/.test(document.body.innerText),
    title: document.title,
  }));
  equal({ ...state, title: undefined }, { hit: 0, scripts: 0, links: 0, handlers: 0, bidi: false, title: undefined }, "what the page made of it");
  await accessible(page, "a hostile trace");
}

/** A line of many megabytes: the page answers at once, and more of it is shown on request. */
export async function longLine(page, args) {
  await openTrace(page, args, "?at=" + args.at);
  await page.waitForSelector(".entry.chosen");
  const more = page.getByRole("button", { name: /show more of/ }).first();
  check((await more.innerText()).includes(args.size), "the size is named: " + (await more.innerText()));
  const length = () => page.evaluate(() => document.querySelector(".entry.chosen :is(pre, .prose)").innerText.length);
  const before = await length();
  await more.click();
  await page.waitForFunction((n) => document.querySelector(".entry.chosen :is(pre, .prose)").innerText.length > n, before);
}

/** A long trace: both ends, few elements in the page, and quick. */
export async function longTrace(page, args) {
  await openTrace(page, args);
  await page.keyboard.press("G");
  await page.waitForFunction((last) => document.querySelector(".entry.chosen .who a")?.innerText === last, String(args.entries - 1));
  await reads(page, args.last);
  const elements = await page.evaluate(() => document.querySelectorAll(".scroller *").length);
  check(elements < 3000, `${elements} elements for ${args.entries} entries`);
  await together(page, "g", "g");
  await page.waitForFunction(() => document.querySelector(".entry.chosen .who a")?.innerText === "0");
}

/** A team: lanes, the sequence chart, and asks without an answer. */
export async function team(page, args) {
  await openTrace(page, args);
  await page.waitForSelector(".sequence .chart svg path");
  check((await page.locator(".messages li").count()) >= args.messages, "messages in words");
  await page.getByLabel("Filter by lane").selectOption(args.lane);
  await reads(page, " of ");
}

/** The exported file, opened from disk: the claim, the grid, a cell and its transcript. */
export async function file(page, args) {
  await page.goto("file://" + args.path);
  await reads(page, args.word);
  check((await page.locator("table.grid tbody tr").count()) === args.tasks, "every task is in the table");
  await accessible(page, "the exported file");
  await page.locator(".grid .marks a").first().click();
  await page.waitForSelector(".outcome h1");
  await page.waitForSelector(".transcript .entry .said, .transcript .problem");
  await page.goBack();
  await page.waitForSelector("table.grid");
  await page.setViewportSize({ width: 390, height: 800 });
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  check(wide <= 1, `the page is ${wide} pixels wider than a phone`);
  const pdf = await page.pdf({ format: "A4" });
  return pdf.length;
}

/** Two run directories compared, as one file: the decision and every cell, without transcripts. */
export async function compareFile(page, args) {
  await page.goto("file://" + args.path);
  await page.waitForSelector("table.grid tbody tr");
  for (const text of args.texts) await reads(page, text);
  equal(await page.locator("table.grid tbody tr").count(), args.tasks, "tasks");
  equal(await page.locator(".grid .marks a").count(), args.cells, "cells");
  await accessible(page, "the exported comparison");
}

/** The exported trace, opened from disk. */
export async function traceFile(page, args) {
  await page.goto("file://" + args.path);
  await page.waitForSelector(".entry .said");
  await page.keyboard.press("/");
  await page.keyboard.type(args.word);
  await reads(page, args.hits);
  await accessible(page, "the exported trace");
}

/** A trace that did not fit into its file: the beginning, the end and the error are there, and what is missing is said. */
export async function cutTrace(page, args) {
  await page.goto("file://" + args.path);
  await page.waitForSelector(".entry .said");
  await reads(page, `of ${args.total} entries`);
  await page.keyboard.press("e");
  await page.waitForSelector(".entry.chosen:has-text('make')");
  await reads(page, "entries are not in this file");
  await page.keyboard.press("G");
  await reads(page, "the last words");
  await accessible(page, "a trace that is cut");
}
