// Drives one Chromium for all tests. Each line on stdin asks for a scenario by name; each line on
// stdout is its answer. A page that logs an error or breaks its policy fails its scenario.
import { chromium } from "playwright-core";
import { createInterface } from "node:readline";
import * as pages from "./scenarios/pages.mjs";
import * as traces from "./scenarios/traces.mjs";
import * as live from "./scenarios/live.mjs";
import * as bench from "./scenarios/bench.mjs";
import * as threads from "./scenarios/threads.mjs";
import * as walks from "./scenarios/walk.mjs";

// For what does not come at all: a loaded machine takes its time, and figures are measured by make bench-view.
const limit = 600_000;
// Playwright's own list, which this one replaces, and two processes that every window would start beside its page: the
// browser's own frame, and a renderer in reserve.
const without = [
  "AvoidUnnecessaryBeforeUnloadCheckSync",
  "DestroyProfileOnBrowserClose",
  "HttpsUpgrades",
  "HttpsFirstBalancedModeAutoEnable",
  "LensOverlay",
  "MediaRouter",
  "PaintHolding",
  "ThirdPartyStoragePartitioning",
  "OptimizationHints",
  "PreconnectToSearch",
  "PreloadTopChromeWebUI",
  "SpareRendererForSitePerProcess",
];
// A page is gone before it has got back what compiling it well has cost; figures are those of users' browsers.
const unoptimised = process.env.FIT_BENCH ? "" : " --no-opt --no-maglev";
const scenarios = { ...pages, ...traces, ...live, ...bench, ...threads, ...walks };
const browser = await chromium.launch({
  executablePath: process.argv[2],
  timeout: limit,
  args: [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--js-flags=--expose-gc" + unoptimised,
    "--enable-precise-memory-info",
    "--disable-features=" + without.join(","),
  ],
});

async function run(request) {
  const context = await browser.newContext({
    viewport: { width: 1280, height: 800 },
    colorScheme: request.args.scheme ?? "light",
    reducedMotion: "reduce", // an animation is drawn sixty times a second
    permissions: ["clipboard-read", "clipboard-write"],
    ...request.args.context,
  });
  context.setDefaultTimeout(limit);
  const page = await context.newPage();
  const wait = page.waitForFunction.bind(page);
  page.waitForFunction = (holds, arg, options) => wait(holds, arg, { polling: 50, ...options }); // the default is every frame
  const problems = [];
  const allowed = request.args.allow ?? [];
  const note = (text) => allowed.some((a) => text.includes(a)) || problems.push(text);
  page.on("console", (m) => m.type() === "error" && note("console: " + m.text()));
  page.on("pageerror", (e) => note("page: " + e.message));
  page.on("dialog", (d) => {
    note("dialog: " + d.message());
    void d.dismiss();
  });
  page.on("request", (r) => {
    const host = new URL(r.url()).hostname;
    if (!["127.0.0.1", "localhost", ""].includes(host)) note("a request left the machine: " + r.url());
  });
  const asked = new Set(); // what the page has asked for and not yet got
  page.on("request", (r) => r.resourceType() === "fetch" && asked.add(r));
  for (const end of ["requestfinished", "requestfailed"]) page.on(end, (r) => asked.delete(r));
  page.answered = async () => {
    do {
      while (asked.size > 0) await page.waitForTimeout(20);
      await page.evaluate(() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn))));
    } while (asked.size > 0); // what was drawn may have asked for more
  };
  try {
    const value = await scenarios[request.name](page, request.args);
    if (problems.length) throw new Error("the page reported: " + problems.join("; "));
    return { id: request.id, value: value ?? null };
  } catch (e) {
    if (process.env.FIT_VIEW_SHOT) await page.screenshot({ path: process.env.FIT_VIEW_SHOT }).catch(() => {});
    return { id: request.id, error: `${e.stack ?? e}${problems.length ? "\nthe page reported: " + problems.join("; ") : ""}` };
  } finally {
    await context.close();
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  const request = JSON.parse(line);
  if (scenarios[request.name]) void run(request).then((answer) => process.stdout.write(JSON.stringify(answer) + "\n"));
  else process.stdout.write(JSON.stringify({ id: request.id, error: "there is no scenario " + request.name }) + "\n");
}
await browser.close();
